/**
 * The full profile in a mesh: the settings of envoy/production.yaml that the resources of Istio or Envoy Gateway cannot
 * express, as patches of the Envoy configuration that they generate.
 *
 * The check itself comes from the mesh's policy, and the patches only change it. If they are not applied, the plain
 * profile remains.
 */

import { parse } from 'yaml';
import {
  at,
  type EnvoyAddress,
  EXT_AUTHZ,
  edgeOf,
  HCM,
  itemNamed,
  listAt,
  type Mapping,
  mapping,
  ROUTER,
  splitAddress,
} from './envoy-config.ts';

const LUA = 'envoy.filters.http.lua';
const USAGE = 'postern.usage';
const TYPES = 'type.googleapis.com/envoy.extensions.filters';
const LISTENER = 'envoy.config.listener.v3.Listener';
const ROUTES = 'envoy.config.route.v3.RouteConfiguration';

/** Expressions that match no path of Postern's own, by their first segments. */
const NEVER_PUBLIC = /^\/(?:v1\/(?!auth|iam|\[)|(?!v1|console|docs|openapi|\\\.well-known|\[))/;
/** Matches every path except Postern's own, which the decision lets pass without a credential. */
const NOT_PUBLIC = {
  name: ':path',
  string_match: {
    safe_regex: {
      regex: '/(v1/(auth|iam)|console|docs|openapi\\.json|\\.well-known/(jwks\\.json|openid-configuration))([/?].*)?',
    },
  },
  invert_match: true,
};

/** The listener's settings apart from its filters and routes. The mesh itself determines the client's address. */
const MANAGER_MEMBERS = [
  'access_log_options',
  'early_header_mutation_extensions',
  'local_reply_config',
  'normalize_path',
  'merge_slashes',
  'path_with_escaped_slashes_action',
  'max_request_headers_kb',
  'request_headers_timeout',
  'common_http_protocol_options',
  'stream_idle_timeout',
  'http2_protocol_options',
] as const;

/** The check's settings that the mesh's policy lacks or sets otherwise. The policy has the server and the timeout. */
const CHECK_MEMBERS = [
  'failure_mode_allow',
  'status_on_error',
  'validate_mutations',
  'encode_raw_headers',
  'with_request_body',
  'allowed_headers',
  'decoder_header_mutation_rules',
  'enable_dynamic_metadata_ingestion',
  'max_denied_response_body_bytes',
  'enforce_response_header_limits',
] as const;

interface Parts {
  readonly bufferBytes: number;
  readonly manager: Mapping;
  readonly check: Mapping;
  readonly retryPolicy: unknown;
  readonly headersFilter: Mapping;
  readonly usageFilter: Mapping;
  readonly routes: readonly Mapping[];
}

/** @param text envoy/production.yaml in agreement with Postern's configuration */
function partsOf(text: string): Parts {
  const { listener, manager } = edgeOf(parse(text, { merge: true }));
  const configOf = (filter: string): Mapping => mapping(itemNamed(manager, filter, 'http_filters')['typed_config']);
  const check = configOf(EXT_AUTHZ);
  return {
    bufferBytes: Number(listener['per_connection_buffer_limit_bytes']),
    manager: chosen(manager, MANAGER_MEMBERS),
    check: chosen(check, CHECK_MEMBERS),
    retryPolicy: at(check, 'grpc_service', 'retry_policy'),
    headersFilter: {
      name: 'postern.headers',
      typed_config: withoutAppending(configOf('envoy.filters.http.header_mutation')),
    },
    usageFilter: { name: USAGE, typed_config: configOf(LUA) },
    routes: listAt(manager, 'route_config', 'virtual_hosts', 0, 'routes'),
  };
}

/** A mesh appends the client's address to `X-Forwarded-For` itself. */
function withoutAppending(config: Mapping): Mapping {
  const removing = listAt(config, 'mutations', 'request_mutations').filter((mutation) => 'remove_on_match' in mutation);
  return { ...config, mutations: { request_mutations: removing } };
}

/**
 * Returns the `configPatches` of an EnvoyFilter.
 * @param text envoy/production.yaml in agreement with Postern's configuration
 * @param upstream `host:port` of the platform's Service. With it, the check gets only the bodies that the decision
 *   reads, and their time is limited; without it, it gets every body
 */
export function istioPatches(text: string, upstream?: EnvoyAddress): readonly Mapping[] {
  const parts = partsOf(text);
  const routes = upstream === undefined ? [] : istioRoutes(parts.routes, upstream);
  return [
    istioPatch('LISTENER', {}, 'MERGE', { per_connection_buffer_limit_bytes: parts.bufferBytes }),
    istioPatch('VIRTUAL_HOST', {}, 'MERGE', { request_body_buffer_limit: parts.bufferBytes }),
    istioPatch('NETWORK_FILTER', { listener: { filterChain: { filter: { name: HCM } } } }, 'MERGE', {
      name: HCM,
      typed_config: { '@type': `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`, ...parts.manager },
    }),
    istioPatch('HTTP_FILTER', atFilter(EXT_AUTHZ), 'INSERT_BEFORE', parts.headersFilter),
    istioPatch('HTTP_FILTER', atFilter(EXT_AUTHZ), 'MERGE', {
      name: EXT_AUTHZ,
      typed_config: {
        '@type': `${TYPES}.http.ext_authz.v3.ExtAuthz`,
        grpc_service: { retry_policy: parts.retryPolicy },
        ...(routes.length === 0 ? {} : { clear_route_cache: true }),
        ...parts.check,
      },
    }),
    istioPatch('HTTP_FILTER', atFilter(ROUTER), 'INSERT_BEFORE', parts.usageFilter),
    ...routes,
  ];
}

/**
 * Inserts the routes whose body Envoy sends to the check before the routes of the mesh, whose body it then does not
 * send. Before each of them that applies to requests without an allow, it inserts a route that does not send the body
 * of a request without a credential.
 */
function istioRoutes(routes: readonly Mapping[], upstream: EnvoyAddress): readonly Mapping[] {
  const { host, port } = splitAddress(upstream);
  const bare = mapping(routes.find((route) => at(route, 'match', 'dynamic_metadata', 0, 'invert') === true));
  const inspected = routes
    .filter((route) => 'request_body_buffer_limit' in route)
    .map(withoutPublic)
    .flatMap((route) =>
      at(route, 'match', 'dynamic_metadata') === undefined ? [withoutCredential(route, bare), route] : [route],
    )
    .map(({ route, ...others }) => ({ ...others, route: { ...mapping(route), cluster: `outbound|${port}||${host}` } }));
  return [
    // Istio merges into its own routes before it inserts others.
    istioPatch('HTTP_ROUTE', {}, 'MERGE', { typed_per_filter_config: routes.at(-1)?.['typed_per_filter_config'] }),
    // Istio inserts each before those that it inserted earlier.
    ...inspected.toReversed().map((route) => istioPatch('HTTP_ROUTE', {}, 'INSERT_FIRST', route)),
  ];
}

/** The routes come before those of the mesh, so a wide template must not lead requests to Postern to the platform. */
function withoutPublic({ match, ...route }: Mapping): Mapping {
  const regex = at(match, 'safe_regex', 'regex');
  if (typeof regex === 'string' && NEVER_PUBLIC.test(regex)) return { match, ...route };
  return { match: { ...mapping(match), headers: [...listAt(match, 'headers'), NOT_PUBLIC] }, ...route };
}

/** @param bare the route of requests without a credential */
function withoutCredential({ match, ...inspected }: Mapping, bare: Mapping): Mapping {
  const headers = [...listAt(match, 'headers'), ...listAt(bare, 'match', 'headers')];
  return { ...inspected, ...bare, match: { ...mapping(match), headers } };
}

function istioPatch(applyTo: string, match: Mapping, operation: string, value: Mapping): Mapping {
  return { applyTo, match: { context: 'GATEWAY', ...match }, patch: { operation, value } };
}

function atFilter(name: string): Mapping {
  return { listener: { filterChain: { filter: { name: HCM, subFilter: { name } } } } };
}

/** The Gateway that is guarded, and the SecurityPolicy of the same namespace that guards it. */
interface GuardedGateway {
  readonly namespace: string;
  readonly gateway: string;
  readonly listener: string;
  readonly policy: string;
}

/**
 * Returns the `jsonPatches` of an EnvoyPatchPolicy. If a patch fails, Envoy Gateway still applies the others. Therefore
 * no patch adds a route: it would be open if the patch of its check failed.
 * @param text envoy/production.yaml in agreement with Postern's configuration
 */
export function envoyGatewayPatches(text: string, guarded: GuardedGateway): readonly Mapping[] {
  const { namespace, gateway, listener, policy } = guarded;
  const parts = partsOf(text);
  const filter = `..http_filters[?(@.name=='${EXT_AUTHZ}/securitypolicy/${namespace}/${policy}')]`;
  const add = (type: string, place: Mapping, value: unknown): Mapping => ({
    type: `type.googleapis.com/${type}`,
    name: `${namespace}/${gateway}/${listener}`,
    operation: { op: 'add', ...place, value },
  });
  const members = (jsonPath: string, values: Mapping): readonly Mapping[] =>
    Object.entries(values).map(([member, value]) => add(LISTENER, { jsonPath, path: `/${member}` }, value));
  // A patch would replace the early headers of a ClientTrafficPolicy.
  const { early_header_mutation_extensions: _early, ...manager } = parts.manager;
  return [
    add(LISTENER, { path: '/per_connection_buffer_limit_bytes' }, parts.bufferBytes),
    add(ROUTES, { jsonPath: '$.virtual_hosts[*]', path: '/request_body_buffer_limit' }, parts.bufferBytes),
    ...members(`..filters[?(@.name=='${HCM}')].typed_config`, manager),
    ...members(`${filter}.typed_config`, parts.check),
    add(LISTENER, { jsonPath: `${filter}.typed_config`, path: '/grpc_service/retry_policy' }, parts.retryPolicy),
    // A filter that is added at the position of another one comes before it.
    add(LISTENER, { jsonPath: filter }, parts.headersFilter),
    add(LISTENER, { jsonPath: `..http_filters[?(@.name=='${ROUTER}')]` }, parts.usageFilter),
  ];
}

function chosen(from: Mapping, names: readonly string[]): Mapping {
  return Object.fromEntries(
    names.map((name) => {
      if (!(name in from)) throw new Error(`envoy/production.yaml does not say ${name}.`);
      return [name, from[name]];
    }),
  );
}
