/** The requests that `postern gateway verify` derives, beside Gateway API's rules of precedence written plainly. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GatewayObject, GatewayObjects, ListenerObject, RouteObject } from '../../src/cli/gateway-objects.ts';
import { type Platform, type Probe, probesOf, sampleOf } from '../../src/cli/gateway-requests.ts';
import { runs } from '../support/properties.ts';

const PLATFORM: Platform = {
  paths: ['/v1/models', '/v1/chat', '/v1', '/a/b'].flatMap((path) => [
    { method: 'POST', path },
    { method: 'GET', path },
  ]),
  isPublic: (_, path) => path.startsWith('/public'),
};

const NAMES = ['a.example.com', 'b.example.com', '*.example.com', '*.b.example.com'];
const hostname = fc.constantFrom(...NAMES);
const path = fc.record({
  type: fc.constantFrom('Exact', 'PathPrefix'),
  value: fc.constantFrom('/', '/v1', '/v1/', '/v1/models', '/v1/mo', '/a', '/public'),
});
const pairs = fc.uniqueArray(fc.record({ name: fc.constantFrom('x-a', 'x-b'), value: fc.constantFrom('1', '2') }), {
  maxLength: 2,
  selector: ({ name }) => name,
});
const match = fc.record(
  { path, method: fc.constantFrom('GET', 'POST', 'DELETE'), headers: pairs, queryParams: pairs },
  { requiredKeys: [] },
);

function routeObject(
  index: number,
  hostnames: readonly string[],
  rules: readonly (readonly object[])[],
  createdAt: string,
): RouteObject {
  return {
    kind: 'HTTPRoute',
    metadata: { name: `route-${index}`, namespace: 'ai', creationTimestamp: createdAt },
    spec: {
      parentRefs: [{ name: 'ai' }],
      hostnames: [...hostnames],
      rules: rules.map((matches) => ({ matches: [...matches] })),
    },
  };
}

function gatewayObject(listeners: readonly ListenerObject[]): GatewayObject {
  return { metadata: { name: 'ai', namespace: 'ai' }, spec: { listeners: [...listeners] } };
}

function objectsOf(gateway: GatewayObject, routes: readonly RouteObject[]): GatewayObjects {
  return { gateways: [gateway], listenerSets: [], routes, streams: [], policies: [] };
}

const listeners = fc.uniqueArray(fc.option(hostname, { nil: undefined }), { minLength: 1, maxLength: 3 }).map((names) =>
  names.map(
    (name, i): ListenerObject => ({
      name: `l${i}`,
      protocol: 'HTTP',
      port: 80,
      ...(name === undefined ? {} : { hostname: name }),
    }),
  ),
);
const routes = fc
  .array(
    fc.tuple(
      fc.uniqueArray(hostname, { maxLength: 2 }),
      fc.array(fc.array(match, { maxLength: 3 }), { maxLength: 3 }),
      fc.constantFrom('2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'),
    ),
    { maxLength: 4 },
  )
  .map((all) => all.map(([hostnames, rules, createdAt], i) => routeObject(i, hostnames, rules, createdAt)));

function hostMatches(pattern: string | undefined, host: string): boolean {
  if (pattern === undefined) return true;
  return pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** A more specific hostname is larger. */
function specificity(pattern: string | undefined): number {
  if (pattern === undefined) return 0;
  return pattern.startsWith('*') ? pattern.length : 100 + pattern.length;
}

interface Target {
  readonly listener: string;
  readonly route: string;
  readonly rule: number;
  readonly match: number;
}

/** Selects the listener, then the match, for a request as it arrives. */
function select(
  gateway: GatewayObject,
  all: readonly RouteObject[],
  { host = 'other.test', request }: Probe,
): Target | undefined {
  const [listener] = gateway.spec.listeners
    .filter((one) => hostMatches(one.hostname, host))
    .toSorted((a, b) => specificity(b.hostname) - specificity(a.hostname));
  if (listener === undefined || request === undefined) return undefined;
  const url = new URL(request.path, 'http://gateway');
  const found: { readonly key: readonly (number | string)[]; readonly target: Target }[] = [];
  for (const { metadata, spec } of all) {
    const names = spec.hostnames?.length === 0 ? [undefined] : (spec.hostnames ?? [undefined]);
    for (const name of names) {
      if (!hostMatches(name, host)) continue;
      for (const [i, { matches = [] }] of (spec.rules ?? []).entries()) {
        for (const [j, one] of (matches.length === 0 ? [{}] : matches).entries()) {
          const { type = 'PathPrefix', value = '/' } = one.path ?? {};
          const base = value.endsWith('/') ? value.slice(0, -1) : value;
          const isExact = type === 'Exact';
          if (isExact ? url.pathname !== value : !(url.pathname === base || url.pathname.startsWith(`${base}/`)))
            continue;
          if (typeof one.method === 'string' && one.method !== request.method) continue;
          if ((one.headers ?? []).some((pair) => request.headers[pair.name] !== pair.value)) continue;
          if ((one.queryParams ?? []).some((pair) => url.searchParams.get(pair.name) !== pair.value)) continue;
          // The listener's hostname counts where it is the narrower one.
          const own = Math.max(specificity(name), specificity(listener.hostname));
          const key = [
            -own,
            isExact ? 0 : 1,
            isExact ? 0 : -base.length,
            one.method === undefined ? 1 : 0,
            -(one.headers ?? []).length,
            -(one.queryParams ?? []).length,
            metadata.creationTimestamp ?? '',
            metadata.name,
            i,
            j,
          ];
          found.push({ key, target: { listener: listener.name, route: metadata.name, rule: i + 1, match: j + 1 } });
        }
      }
    }
  }
  const [first] = found.toSorted((a, b) => compare(a.key, b.key));
  return first?.target;
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [i, left] of a.entries()) {
    const right = b[i] ?? 0;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

describe('the request for a match', () => {
  it('is one that Gateway API’s precedence gives to this match on this listener, unless it says so', () => {
    let own = 0;
    fc.assert(
      fc.property(listeners, routes, (all, some) => {
        const gateway = gatewayObject(all);
        for (const probe of probesOf(objectsOf(gateway, some), [gateway], PLATFORM)) {
          const target = {
            listener: probe.listener.name,
            route: probe.route.metadata.name,
            rule: probe.rule,
            match: probe.match,
          };
          if (probe.answeredBy === 'other') continue;
          own++;
          expect(select(gateway, some, probe)).toEqual(target);
          const isPublic = PLATFORM.isPublic(probe.request?.method ?? '', probe.request?.path ?? '');
          expect(isPublic).toBe(probe.answeredBy === 'public');
        }
      }),
      { numRuns: runs(3000) },
    );
    expect(own).toBeGreaterThan(100);
  });

  it('exists for each match, hostname and listener that serves it', () => {
    const gateway = gatewayObject([{ name: 'l', protocol: 'HTTP', port: 80 }]);
    fc.assert(
      fc.property(routes, (some) => {
        const matches = some.flatMap(({ spec }) =>
          (spec.rules ?? []).flatMap(({ matches: all = [] }) =>
            Array.from({ length: Math.max(1, all.length) * Math.max(1, spec.hostnames?.length ?? 0) }),
          ),
        );
        expect(probesOf(objectsOf(gateway, some), [gateway], PLATFORM)).toHaveLength(matches.length);
      }),
      { numRuns: runs(300) },
    );
  });

  it('prefers a read of a path that the platform serves', () => {
    const gateway = gatewayObject([{ name: 'l', protocol: 'HTTPS', port: 443, hostname: '*.example.com' }]);
    const some = [routeObject(0, [], [[{ path: { type: 'PathPrefix', value: '/v1/' } }]], '')];
    expect(probesOf(objectsOf(gateway, some), [gateway], PLATFORM)).toMatchObject([
      { host: 'postern-verify.example.com', request: { method: 'GET', path: '/v1/models' }, answeredBy: 'own' },
    ]);
  });

  it('exists for a route without rules, which stands for every request', () => {
    const gateway = gatewayObject([{ name: 'l', protocol: 'HTTP', port: 80 }]);
    const some = [{ ...routeObject(0, [], [], ''), spec: { parentRefs: [{ name: 'ai' }] } }];
    expect(probesOf(objectsOf(gateway, some), [gateway], PLATFORM)).toMatchObject([
      { request: { path: '/v1/models' } },
    ]);
  });

  it('is a POST for a GRPCRoute', () => {
    const gateway = gatewayObject([{ name: 'l', protocol: 'HTTP', port: 80 }]);
    const matches = [
      {},
      { method: { service: 'a.B', method: 'C' } },
      { method: { service: 'a.B' } },
      { method: { method: 'C' } },
      { method: { type: 'RegularExpression', service: 'a\\..*', method: '[^/]+' } },
    ];
    const some = [{ ...routeObject(0, [], [matches], ''), kind: 'GRPCRoute' }];
    const probes = probesOf(objectsOf(gateway, some), [gateway], PLATFORM);
    expect(probes.map(({ request }) => request?.method)).toEqual(Array.from({ length: 5 }, () => 'POST'));
    expect(probes.map(({ request }) => request?.path)).toEqual([
      '/v1/models',
      '/a.B/C',
      '/a.B/postern-verify',
      '/postern-verify/C',
      '/a.postern/postern',
    ]);
  });

  it('goes to the listeners that a route names, that accept its namespace, and that its status does not refuse', () => {
    const open = { namespaces: { from: 'All' } };
    const gateway = gatewayObject([
      { name: 'one', protocol: 'HTTP', port: 80 },
      { name: 'two', protocol: 'HTTP', port: 81, allowedRoutes: open },
      { name: 'raw', protocol: 'TCP', port: 82, allowedRoutes: open },
    ]);
    const base = routeObject(0, [], [[{}]], '');
    const reached = (changes: Partial<RouteObject>): readonly string[] =>
      probesOf(objectsOf(gateway, [{ ...base, ...changes }]), [gateway], PLATFORM).map(({ listener }) => listener.name);
    const parents = (parentRef: RouteObject['spec']['parentRefs']): Partial<RouteObject> => ({
      spec: { ...base.spec, ...(parentRef === undefined ? {} : { parentRefs: parentRef }) },
    });
    expect(reached({})).toEqual(['one', 'two']);
    expect(reached(parents([{ name: 'ai', sectionName: 'two' }]))).toEqual(['two']);
    expect(reached(parents([{ name: 'ai', port: 80 }]))).toEqual(['one']);
    expect(reached(parents([{ name: 'ai', kind: 'Service' }]))).toEqual([]);
    expect(reached({ metadata: { name: 'r', namespace: 'x' }, ...parents([{ name: 'ai', namespace: 'ai' }]) })).toEqual(
      ['two'],
    );
    const refused = { parentRef: { name: 'ai' }, conditions: [{ type: 'Accepted', status: 'False' }] };
    expect(reached({ status: { parents: [refused] } })).toEqual([]);
  });

  it('goes to the listeners of a ListenerSet as well', () => {
    const gateway = gatewayObject([{ name: 'one', protocol: 'HTTP', port: 80 }]);
    const own = { name: 'own', protocol: 'HTTP', port: 8080 };
    const set = { metadata: { name: 'set', namespace: 'ai' }, spec: { parentRef: { name: 'ai' }, listeners: [own] } };
    const base = routeObject(0, [], [[{}]], '');
    const route = { ...base, spec: { ...base.spec, parentRefs: [{ name: 'set', kind: 'ListenerSet' }] } };
    const objects = { ...objectsOf(gateway, [route]), listenerSets: [set] };
    expect(probesOf(objects, [gateway], PLATFORM).map(({ listener }) => listener.name)).toEqual(['own']);
  });

  it('is refused together with all others if there are too many', () => {
    const gateway = gatewayObject([{ name: 'l', protocol: 'HTTP', port: 80 }]);
    const some = [routeObject(0, [], [Array.from({ length: 5001 }, () => ({}))], '')];
    expect(() => probesOf(objectsOf(gateway, some), [gateway], PLATFORM)).toThrow('more than 5000 requests');
  });
});

describe('the text for a regular expression', () => {
  const pieces = fc.constantFrom(
    '/v1',
    '/models',
    '\\.',
    '[^/]+',
    '.*',
    '.+',
    '\\d+',
    '[0-9]+',
    '[\\w-]+',
    '\\w+',
    '[a-z0-9]+',
    'a',
    '-',
  );
  const hard = fc.constantFrom('(a|b)', 'a?', 'b{2}', '[xyz]', '[xyz]+', '[A-Z]+', '.+?', '\\b', '(?i)', '+', '$', '^');

  it('is one that the expression matches, whole', () => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), fc.boolean(), (all, anchored) => {
        const text = all.join('');
        const sample = sampleOf(anchored ? `^${text}$` : text);
        expect(sample).toBeDefined();
        expect(new RegExp(`^(?:${text})$`).test(sample ?? '')).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });

  it('is either one that the expression matches, or none', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, hard), { maxLength: 6 }), (all) => {
        const text = all.join('');
        const sample = sampleOf(text);
        if (sample === undefined) return;
        expect(new RegExp(`^(?:${text})$`).test(sample)).toBe(true);
      }),
      { numRuns: runs(1000) },
    );
  });
});
