/** The objects of Gateway API and Envoy Gateway that `postern gateway verify` reads, of a dump or a cluster. */

import { type Static, type TSchema, Type } from 'typebox';
import { validatorOf } from '../http/validation.ts';
import { printable } from './apply-plan.ts';

const TEXT = Type.String({ maxLength: 8192 });
const METADATA = Type.Object({
  name: TEXT,
  namespace: Type.Optional(TEXT),
  creationTimestamp: Type.Optional(Type.Union([TEXT, Type.Null()])),
});
const LISTENERS = Type.Array(
  Type.Object({
    name: TEXT,
    hostname: Type.Optional(TEXT),
    port: Type.Integer(),
    protocol: TEXT,
    allowedRoutes: Type.Optional(
      Type.Object({ namespaces: Type.Optional(Type.Object({ from: Type.Optional(TEXT) })) }),
    ),
  }),
);
const PARENT = Type.Object({
  kind: Type.Optional(TEXT),
  namespace: Type.Optional(TEXT),
  name: TEXT,
  sectionName: Type.Optional(TEXT),
  port: Type.Optional(Type.Integer()),
});
const PAIRS = Type.Optional(Type.Array(Type.Object({ type: Type.Optional(TEXT), name: TEXT, value: TEXT })));
const GRPC_METHOD = Type.Object({
  type: Type.Optional(TEXT),
  service: Type.Optional(TEXT),
  method: Type.Optional(TEXT),
});
const MATCH = Type.Object({
  path: Type.Optional(Type.Object({ type: Type.Optional(TEXT), value: Type.Optional(TEXT) })),
  /** HTTPRoute: a text; GRPCRoute: an object. */
  method: Type.Optional(Type.Union([TEXT, GRPC_METHOD])),
  headers: PAIRS,
  queryParams: PAIRS,
});
const TARGET = Type.Object({ kind: TEXT, name: TEXT, sectionName: Type.Optional(TEXT) });

const GATEWAY = Type.Object({
  metadata: METADATA,
  spec: Type.Object({ listeners: LISTENERS }),
  status: Type.Optional(
    Type.Object({ addresses: Type.Optional(Type.Array(Type.Object({ value: Type.Optional(TEXT) }))) }),
  ),
});
const LISTENER_SET = Type.Object({
  metadata: METADATA,
  spec: Type.Object({ parentRef: PARENT, listeners: LISTENERS }),
});
const ROUTE = Type.Object({
  metadata: METADATA,
  spec: Type.Object({
    parentRefs: Type.Optional(Type.Array(PARENT)),
    hostnames: Type.Optional(Type.Array(TEXT)),
    rules: Type.Optional(Type.Array(Type.Object({ matches: Type.Optional(Type.Array(MATCH)) }))),
  }),
  status: Type.Optional(
    Type.Object({
      parents: Type.Optional(
        Type.Array(
          Type.Object({
            parentRef: PARENT,
            conditions: Type.Optional(Type.Array(Type.Object({ type: TEXT, status: TEXT }))),
          }),
        ),
      ),
    }),
  ),
});
const POLICY = Type.Object({
  metadata: METADATA,
  spec: Type.Object({
    mergeType: Type.Optional(TEXT),
    extAuth: Type.Optional(Type.Object({ failOpen: Type.Optional(Type.Boolean()) })),
    targetRef: Type.Optional(TARGET),
    targetRefs: Type.Optional(Type.Array(TARGET)),
    targetSelectors: Type.Optional(Type.Array(Type.Object({ kind: TEXT }))),
  }),
});

export type GatewayObject = Static<typeof GATEWAY>;
type ListenerSetObject = Static<typeof LISTENER_SET>;
export type ListenerObject = GatewayObject['spec']['listeners'][number];
export type ParentRef = Static<typeof PARENT>;
export type RouteMatchObject = Static<typeof MATCH>;
export type PolicyObject = Static<typeof POLICY>;
export interface RouteObject extends Static<typeof ROUTE> {
  readonly kind: string;
}

export interface GatewayObjects {
  readonly gateways: readonly GatewayObject[];
  readonly listenerSets: readonly ListenerSetObject[];
  /** HTTPRoutes and GRPCRoutes. */
  readonly routes: readonly RouteObject[];
  /** Routes whose connections no check sees: TCPRoute, TLSRoute, UDPRoute. */
  readonly streams: readonly RouteObject[];
  readonly policies: readonly PolicyObject[];
}

const readers = {
  gateway: readerOf(GATEWAY),
  listenerSet: readerOf(LISTENER_SET),
  route: readerOf(ROUTE),
  policy: readerOf(POLICY),
};

/** Skips objects of other kinds. Throws if an object of these kinds does not have their form. */
export function readGatewayObjects(items: readonly unknown[]): GatewayObjects {
  const seen = new Set<string>();
  const gateways: GatewayObject[] = [];
  const listenerSets: ListenerSetObject[] = [];
  const routes: RouteObject[] = [];
  const streams: RouteObject[] = [];
  const policies: PolicyObject[] = [];
  for (const item of items) {
    const [kind, id] = identityOf(item);
    if (seen.has(id)) continue;
    seen.add(id);
    if (kind === 'Gateway') gateways.push(readers.gateway(item, id));
    else if (kind === 'ListenerSet' || kind === 'XListenerSet') listenerSets.push(readers.listenerSet(item, id));
    else if (kind === 'HTTPRoute' || kind === 'GRPCRoute') routes.push({ ...readers.route(item, id), kind });
    else if (kind === 'TCPRoute' || kind === 'TLSRoute' || kind === 'UDPRoute')
      streams.push({ ...readers.route(item, id), kind });
    else if (kind === 'SecurityPolicy') policies.push(readers.policy(item, id));
  }
  return { gateways, listenerSets, routes, streams, policies };
}

/** Returns `namespace/name`. */
export function idOf({ metadata }: { readonly metadata: Static<typeof METADATA> }): string {
  return `${metadata.namespace ?? 'default'}/${metadata.name}`;
}

function readerOf<S extends TSchema>(schema: S): (item: unknown, id: string) => Static<S> {
  const validate = validatorOf(schema);
  return (item, id) => {
    const checked = validate(item, false);
    if (checked.kind === 'valid') return checked.value;
    const [error] = checked.errors;
    // Without the value: it may be the text of a header.
    throw new Error(`${printable(id)} is not one that this version can read: ${printable(error?.path ?? '')}.`);
  };
}

const identity = validatorOf(Type.Object({ apiVersion: Type.Optional(TEXT), kind: TEXT, metadata: METADATA }));

/** Returns the kind, and the group, kind and name in one text. The kinds of two groups may have the same name: Istio has a Gateway too. */
function identityOf(item: unknown): readonly [kind: string, id: string] {
  const checked = identity(item, false);
  if (checked.kind === 'invalid') throw new Error('The dump has an element without kind and metadata.name.');
  const { apiVersion = '', kind, metadata } = checked.value;
  const group = apiVersion.split('/')[0] ?? '';
  const isOther = kind === 'Gateway' && group !== '' && !group.startsWith('gateway.networking.');
  return [isOther ? '' : kind, `${kind} ${idOf({ metadata })}${isOther ? ` of ${group}` : ''}`];
}
