/**
 * One request for each match of each route on each listener of a Gateway, so that Gateway API's rules of precedence
 * select this match for it. Pure.
 */

import {
  type GatewayObject,
  type GatewayObjects,
  idOf,
  type ListenerObject,
  type ParentRef,
  type RouteMatchObject,
  type RouteObject,
} from './gateway-objects.ts';

export interface ProbeRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Probe {
  readonly gateway: GatewayObject;
  readonly listener: ListenerObject;
  readonly route: RouteObject;
  /** From 1. */
  readonly rule: number;
  /** From 1. */
  readonly match: number;
  /** The `Host` header; undefined if neither listener nor route has a hostname. */
  readonly host: string | undefined;
  /** Undefined if the match has a regular expression from which no text follows. */
  readonly request: ProbeRequest | undefined;
  /**
   * `own`: precedence selects this match. `public`: so it does, and every request that was found for it needs no
   * credential. `other`: another match takes every request that was found.
   */
  readonly answeredBy: 'own' | 'public' | 'other';
}

/** A path that the platform serves, by which a prefix is tried. */
interface KnownPath {
  readonly method: string;
  readonly path: string;
}

export interface Platform {
  readonly paths: readonly KnownPath[];
  readonly isPublic: (method: string, path: string) => boolean;
}

/** The last segment of a path, and the label of a hostname, that no other rule names. */
const OWN_NAME = 'postern-verify';
/** A text for a part of an expression that takes letters. */
const WORD = 'postern';
const MAX_CANDIDATES = 16;
export const MAX_PROBES = 5_000;

type Path =
  | { readonly kind: 'exact'; readonly value: string }
  | { readonly kind: 'prefix'; readonly value: string }
  /** `sample`: a text that the expression matches; undefined if none was found. */
  | { readonly kind: 'expression'; readonly sample: string | undefined };

interface Pair {
  readonly name: string;
  readonly value: string | undefined;
  readonly isExpression: boolean;
}

interface Entry extends Pick<Probe, 'gateway' | 'listener' | 'route' | 'rule' | 'match'> {
  /** A pattern; empty = any. */
  readonly hostname: string;
  readonly path: Path;
  readonly method: string | undefined;
  readonly headers: readonly Pair[];
  readonly query: readonly Pair[];
}

/** @throws Error if there are more than `MAX_PROBES` */
export function probesOf(
  objects: GatewayObjects,
  gateways: readonly GatewayObject[],
  platform: Platform,
): readonly Probe[] {
  const probes: Probe[] = [];
  for (const gateway of gateways) {
    const attached = listenersOf(objects, gateway).map((own) => entriesOf(objects, gateway, own));
    const listeners = attached.map(({ listener }) => listener);
    for (const { listener, entries } of attached) {
      if (probes.length + entries.length > MAX_PROBES)
        throw new Error(`There are more than ${MAX_PROBES} requests to send. Name fewer Gateways.`);
      for (const entry of entries) {
        const host = hostOf(entry.hostname);
        if (!listeners.some((other) => takesHost(other, listener, host)))
          probes.push(probeOf(entry, entries, platform));
      }
    }
  }
  return probes;
}

/** Returns the routes of connections, not of requests, that a Gateway has. */
export function streamsOf(objects: GatewayObjects, gateway: GatewayObject): readonly RouteObject[] {
  const own = listenersOf(objects, gateway);
  return objects.streams.filter((route) => own.some((listener) => isAttached(route, listener)));
}

interface OwnListener {
  readonly listener: ListenerObject;
  /** The object that has the listener. */
  readonly parent: { readonly kind: 'Gateway' | 'ListenerSet'; readonly namespace: string; readonly name: string };
}

function listenersOf({ listenerSets }: GatewayObjects, gateway: GatewayObject): readonly OwnListener[] {
  const { name, namespace = 'default' } = gateway.metadata;
  const ofSets = listenerSets.filter(({ metadata, spec: { parentRef } }) => {
    const parent = parentRef.namespace ?? metadata.namespace ?? 'default';
    return parentRef.name === name && parent === namespace;
  });
  return [
    ...gateway.spec.listeners.map((listener) => ({ listener, parent: { kind: 'Gateway' as const, namespace, name } })),
    ...ofSets.flatMap(({ metadata, spec }) =>
      spec.listeners.map((listener) => ({
        listener,
        parent: { kind: 'ListenerSet' as const, namespace: metadata.namespace ?? 'default', name: metadata.name },
      })),
    ),
  ];
}

function isAttached(route: RouteObject, { listener, parent }: OwnListener): boolean {
  const namespace = route.metadata.namespace ?? 'default';
  const from = listener.allowedRoutes?.namespaces?.from ?? 'Same';
  // A selector needs the labels of namespaces. The status of the route says whether it selects the route's.
  if (from === 'None' || (from === 'Same' && namespace !== parent.namespace)) return false;
  return (route.spec.parentRefs ?? []).some((ref) => {
    const { kind = 'Gateway', sectionName, port } = ref;
    const isNamed = ref.name === parent.name && (ref.namespace ?? namespace) === parent.namespace;
    if (!isNamed || kind.replace(/^X/, '') !== parent.kind) return false;
    if (sectionName !== undefined && sectionName !== listener.name) return false;
    return (port === undefined || port === listener.port) && isAccepted(route, ref);
  });
}

/** A route without a status of this parent counts as accepted, as in a hand-written file. */
function isAccepted(route: RouteObject, ref: ParentRef): boolean {
  const namespace = route.metadata.namespace ?? 'default';
  const own = (route.status?.parents ?? []).filter(
    ({ parentRef }) =>
      parentRef.name === ref.name &&
      (parentRef.namespace ?? namespace) === (ref.namespace ?? namespace) &&
      parentRef.sectionName === ref.sectionName &&
      parentRef.port === ref.port,
  );
  return (
    own.length === 0 ||
    own.some(({ conditions = [] }) => !conditions.some(({ type, status }) => type === 'Accepted' && status === 'False'))
  );
}

function entriesOf(
  { routes }: GatewayObjects,
  gateway: GatewayObject,
  own: OwnListener,
): { readonly listener: ListenerObject; readonly entries: readonly Entry[] } {
  const { listener } = own;
  const isHttp = listener.protocol === 'HTTP' || listener.protocol === 'HTTPS';
  const attached = isHttp ? routes.filter((route) => isAttached(route, own)) : [];
  const entries = attached.flatMap((route) =>
    hostnamesOf(listener, route).flatMap((hostname) =>
      // Gateway API's default: one rule for every request.
      (route.spec.rules ?? [{}]).flatMap(({ matches = [] }, rule) =>
        (matches.length === 0 ? [{}] : matches).map(
          (match, index): Entry => ({
            gateway,
            listener,
            route,
            hostname,
            rule: rule + 1,
            match: index + 1,
            ...(route.kind === 'GRPCRoute' ? grpcOf(match) : httpOf(match)),
            headers: pairsOf(match.headers),
            query: pairsOf(match.queryParams),
          }),
        ),
      ),
    ),
  );
  return { listener, entries };
}

function httpOf({ path, method }: RouteMatchObject): Pick<Entry, 'path' | 'method'> {
  const value = path?.value ?? '/';
  const verb = typeof method === 'string' ? method : undefined;
  if (path?.type === 'RegularExpression')
    return { path: { kind: 'expression', sample: sampleOf(value) }, method: verb };
  if (path?.type === 'Exact') return { path: { kind: 'exact', value }, method: verb };
  return { path: { kind: 'prefix', value: value.replace(/\/$/, '') }, method: verb };
}

function grpcOf({ method }: RouteMatchObject): Pick<Entry, 'path' | 'method'> {
  const { type, service, method: name } = typeof method === 'object' ? method : {};
  if (service === undefined && name === undefined) return { path: { kind: 'prefix', value: '' }, method: 'POST' };
  if (type === 'RegularExpression' || service === undefined) {
    const parts = [service, name].map((part) =>
      part === undefined ? OWN_NAME : type === 'RegularExpression' ? sampleOf(part) : part,
    );
    const sample = parts.includes(undefined) ? undefined : `/${parts.join('/')}`;
    return { path: { kind: 'expression', sample }, method: 'POST' };
  }
  return {
    path:
      name === undefined ? { kind: 'prefix', value: `/${service}` } : { kind: 'exact', value: `/${service}/${name}` },
    method: 'POST',
  };
}

function pairsOf(pairs: RouteMatchObject['headers'] = []): readonly Pair[] {
  return pairs.map(({ type, name, value }) =>
    type === 'RegularExpression'
      ? { name, value: sampleOf(value), isExpression: true }
      : { name, value, isExpression: false },
  );
}

/** The pieces of an expression from which a text follows, each with its text. */
const PIECES: readonly (readonly [RegExp, (text: string) => string])[] = [
  [/^\\([./\-_])/, (text) => text.slice(1)],
  [/^(?:\[\^\/\]|\.|\\w|\[\\w\.?-?\]|\[a-z\]|\[a-z0-9-?\]|\[a-zA-Z0-9_?-?\])[+*](?![?+])/, () => WORD],
  [/^(?:\[0-9\]|\\d)[+*](?![?+])/, () => '1'],
  [/^\((?:\?:)?\/\.\*\)\?/, () => ''],
  [/^[\w/~%:@=&,-](?![?*+{])/, (text) => text],
];

/** Returns a text that a simple expression matches. Nothing evaluates the expression, because it may take forever. */
export function sampleOf(expression: string): string | undefined {
  let rest = expression.replace(/^\^/, '').replace(/\$$/, '');
  let sample = '';
  while (rest !== '') {
    const piece = PIECES.map(([pattern, textOf]) => [pattern.exec(rest)?.[0], textOf] as const).find(
      ([text]) => text !== undefined,
    );
    const text = piece?.[0];
    if (piece === undefined || text === undefined) return undefined;
    sample += piece[1](text);
    rest = rest.slice(text.length);
  }
  return sample;
}

/** Returns the hostnames of the route that the listener serves; an empty text = any. */
function hostnamesOf({ hostname = '' }: ListenerObject, { spec }: RouteObject): readonly string[] {
  const own = spec.hostnames ?? [];
  if (own.length === 0) return [hostname];
  if (hostname === '') return own;
  return own.flatMap((one) => (covers(hostname, one) ? [one] : covers(one, hostname) ? [hostname] : []));
}

/** Reports whether each host that `pattern` matches is one that `wider` matches. `*.a` matches `x.a` and `x.y.a`, not `a`. */
function covers(wider: string, pattern: string): boolean {
  const [whole, part] = [wider.toLowerCase(), pattern.toLowerCase()];
  if (whole === '' || whole === part) return true;
  return whole.startsWith('*.') && part.length > whole.length - 1 && part.endsWith(whole.slice(1));
}

function hostOf(hostname: string): string | undefined {
  return hostname === '' ? undefined : hostname.replace(/^\*/, OWN_NAME);
}

/** Reports whether another listener of the same port gets the requests for the host. */
function takesHost(other: ListenerObject, listener: ListenerObject, host: string | undefined): boolean {
  if (other === listener || other.port !== listener.port || other.protocol !== listener.protocol) return false;
  const [theirs, own] = [other.hostname ?? '', listener.hostname ?? ''];
  return theirs !== '' && host !== undefined && covers(theirs, host) && hostRank(theirs) > hostRank(own);
}

function hostRank(hostname: string): number {
  if (hostname === '') return 0;
  return hostname.startsWith('*') ? hostname.length : 1_000 + hostname.length;
}

function probeOf(entry: Entry, all: readonly Entry[], platform: Platform): Probe {
  const { gateway, listener, route, rule, match } = entry;
  const host = hostOf(entry.hostname);
  const probe = { gateway, listener, route, rule, match, host };
  const candidates = requestsFor(entry, platform);
  const [first] = candidates;
  if (first === undefined) return { ...probe, request: undefined, answeredBy: 'own' };
  const own = candidates.filter((request) => isSelected(entry, all, host, request));
  const guarded = own.find(({ method, path }) => !platform.isPublic(method, path));
  if (guarded !== undefined) return { ...probe, request: guarded, answeredBy: 'own' };
  const [open] = own;
  return { ...probe, request: open ?? first, answeredBy: open === undefined ? 'other' : 'public' };
}

function requestsFor(entry: Entry, platform: Platform): readonly ProbeRequest[] {
  const pairs = [...entry.headers, ...entry.query];
  if (pairs.some(({ value }) => value === undefined)) return [];
  const headers = Object.fromEntries(entry.headers.map(({ name, value = '' }) => [name.toLowerCase(), value]));
  const query = entry.query.map(({ name, value = '' }) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
  const suffix = query.length === 0 ? '' : `?${query.join('&')}`;
  return targetsOf(entry, platform).map(({ method, path }) => ({ method, path: path + suffix, headers }));
}

/** The platform's own paths first: Postern answers 401 only to a request that has a route. Reads come before writes. */
function targetsOf({ path, method }: Entry, { paths }: Platform): readonly KnownPath[] {
  const ofMethod = paths
    .filter((one) => method === undefined || one.method === method)
    .toSorted((a, b) => Number(b.method === 'GET') - Number(a.method === 'GET'));
  const verb = method ?? 'GET';
  if (path.kind === 'prefix') {
    const known = ofMethod.filter((one) => isUnder(one.path, path.value)).slice(0, MAX_CANDIDATES);
    return [...known, { method: verb, path: `${path.value}/${OWN_NAME}` }];
  }
  const text = path.kind === 'exact' ? path.value : path.sample;
  if (text === undefined || !text.startsWith('/')) return [];
  return [...ofMethod.filter((one) => one.path === text), { method: verb, path: text }];
}

function isUnder(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** Reports whether precedence selects the entry among all of its listener. */
function isSelected(entry: Entry, all: readonly Entry[], host: string | undefined, request: ProbeRequest): boolean {
  const [path = '', query = ''] = request.path.split('?');
  const params = new URLSearchParams(query);
  return !all.some(
    (other) =>
      other !== entry &&
      precedes(other, entry) &&
      covers(other.hostname, host ?? '') &&
      matchesPath(other.path, path) &&
      (other.method === undefined || other.method === request.method) &&
      other.headers.every((pair) => hasPair(pair, request.headers[pair.name.toLowerCase()])) &&
      other.query.every((pair) => hasPair(pair, params.get(pair.name) ?? undefined)),
  );
}

function matchesPath(path: Path, text: string): boolean {
  switch (path.kind) {
    case 'exact':
      return path.value === text;
    case 'prefix':
      return isUnder(text, path.value);
    case 'expression':
      return path.sample === text;
    default:
      return path satisfies never;
  }
}

function hasPair({ value, isExpression }: Pair, actual: string | undefined): boolean {
  return !isExpression && value !== undefined && actual === value;
}

/**
 * The order of Gateway API: hostname, exact path, longest prefix, method, number of headers, number of query
 * parameters, age of the route, its name, place in the route. It leaves the place of expressions open.
 */
function precedes(left: Entry, right: Entry): boolean {
  const [a, b] = [ranks(left), ranks(right)];
  const [x, y] = [names(left), names(right)];
  for (const [i, rank] of a.entries()) if (rank !== b[i]) return rank > (b[i] ?? 0);
  for (const [i, name] of x.entries()) if (name !== y[i]) return name < (y[i] ?? '');
  return left.rule === right.rule ? left.match < right.match : left.rule < right.rule;
}

function ranks({ hostname, path, method, headers, query }: Entry): readonly number[] {
  const kind = { exact: 2, expression: 1, prefix: 0 }[path.kind];
  const length = path.kind === 'prefix' ? path.value.length : 0;
  return [hostRank(hostname), kind, length, Number(method !== undefined), headers.length, query.length];
}

function names({ route }: Entry): readonly string[] {
  return [route.metadata.creationTimestamp ?? '', idOf(route)];
}
