/** The manifests in the guides for meshes: valid by the projects' own schemas, and right in what no schema can say. */

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { GATEWAY_COUNTS } from '../../src/extauthz/access-log/usage.ts';
import { load, problemsOf as problemsOfConfig } from '../config/support/load.ts';
import {
  at,
  BASES,
  documentsOf,
  GUIDES,
  type Guide,
  isMapping,
  listAt,
  type Mapping,
  manifest,
  manifestsOf,
  pageText,
} from './support/guides.ts';
import { mistakesOf } from './support/mistakes.ts';
import { problemsOf, problemsWith } from './support/schema.ts';

describe.each(GUIDES)('the guide %s', (guide) => {
  test('has manifests that are valid, without unknown fields', () => {
    const manifests = manifestsOf(guide);
    expect(manifests.length).toBeGreaterThan(3);
    expect(manifests.flatMap(problemsOf)).toEqual([]);
    const others = documentsOf(guide).filter((one) => 'binds' in one);
    expect(others.flatMap((one) => problemsWith('agentgateway configuration', one))).toEqual([]);
    expect(others).toHaveLength(guide === 'agentgateway' ? 1 : 0);
  });

  test('ends in a curl that sends a chat, and fits a page', () => {
    const text = pageText(guide);
    expect(text).toContain('/v1/chat/completions" -H "Authorization: Bearer $KEY"');
    expect(text.split('\n').length).toBeLessThan(190);
  });

  test('names no resource that it, or the page it builds on, does not have', () => {
    const base = BASES[guide];
    const all = [...manifestsOf(guide), ...(base === undefined ? [] : manifestsOf(base))];
    const names = new Set(all.map((one) => `${one['kind']} ${at(one, 'metadata', 'name')}`));
    const refs = manifestsOf(guide).flatMap((one) => [
      ...listAt(one, 'spec', 'targetRefs'),
      ...listAt(one, 'spec', 'parentRefs').map((ref) => ({ kind: 'Gateway', name: at(ref, 'name') })),
      ...[at(one, 'spec', 'infrastructure', 'parametersRef')].filter((ref) => ref !== undefined),
    ]);
    // The Services are those of the chart and of the platform.
    const named = refs
      .filter((ref) => at(ref, 'kind') !== 'Service')
      .map((ref) => `${at(ref, 'kind')} ${at(ref, 'name')}`);
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });

  test('makes none of the mistakes that let requests pass without a check', () => {
    const base = BASES[guide];
    expect(mistakesOf([...documentsOf(guide), ...(base === undefined ? [] : documentsOf(base))])).toEqual([]);
  });
});

/** The decision lets these pass without a credential, so none of them may lead to the platform. */
const PUBLIC_PATHS = [
  '/v1/auth',
  '/v1/iam',
  '/console',
  '/docs',
  '/openapi.json',
  '/.well-known/jwks.json',
  '/.well-known/openid-configuration',
];

describe('every public path, also with a slash at its end, leads to Postern', () => {
  test.each(['istio', 'envoy-gateway', 'kgateway', 'agentgateway'] as const)(
    'in the HTTPRoute of the guide %s',
    (guide) => {
      const [rule] = listAt(manifest(guide, 'HTTPRoute', 'ai'), 'spec', 'rules');
      const paths = PUBLIC_PATHS.map((value) => ({ path: { type: 'PathPrefix', value } }));
      expect([at(rule, 'backendRefs', 0, 'name'), listAt(rule, 'matches')]).toEqual(['postern-http', paths]);
    },
  );

  test('in the standalone configuration of agentgateway', () => {
    const [own] = documentsOf('agentgateway').filter((one) => 'binds' in one);
    const [route] = listAt(own, 'binds', 0, 'listeners', 0, 'routes');
    const paths = PUBLIC_PATHS.map((pathPrefix) => ({ path: { pathPrefix } }));
    expect([at(route, 'name'), listAt(route, 'matches')]).toEqual(['postern', paths]);
  });
});

describe('the page about the token for the upstream', () => {
  const documents = [...pageText('upstream-token').matchAll(/^```yaml\n(.*?)^```$/gms)].flatMap(([, block = '']) =>
    parseAllDocuments(block).map((document): unknown => document.toJS()),
  );

  test('has valid policies for Envoy Gateway and Istio, and settings that Postern accepts', () => {
    const manifests = documents.filter(isMapping).filter((one) => 'apiVersion' in one);
    // Istio's repository has no schema of a RequestAuthentication among those that the tests keep.
    const checked = manifests.filter((one) => one['kind'] !== 'RequestAuthentication');
    expect(checked.map((one) => one['kind'])).toEqual(['AuthorizationPolicy', 'SecurityPolicy']);
    expect(checked.flatMap(problemsOf)).toEqual([]);
    const settings = documents.filter(isMapping).filter((one) => 'upstream-token' in one);
    expect(settings).toHaveLength(1);
    for (const one of settings) expect(problemsOfConfig(load(JSON.stringify(one)))).toEqual([]);
  });
});

describe('the settings of Postern in the guides', () => {
  test.each(['istio', 'envoy-gateway', 'kgateway'] as const)('that %s shows are settings of Postern', (guide) => {
    const settings = documentsOf(guide).filter((document) => 'http' in document);
    expect(settings).toHaveLength(1);
    for (const document of settings) expect(problemsOfConfig(load(JSON.stringify(document)))).toEqual([]);
  });

  test('send bodies to the check up to the size that Postern inspects', () => {
    const config = parse(readFileSync(new URL('../../envoy/production.yaml', import.meta.url), 'utf8'), {
      merge: true,
    });
    const manager = at(config, 'static_resources', 'listeners', 0, 'filter_chains', 0, 'filters', 0, 'typed_config');
    const check = listAt(manager, 'http_filters').find(
      (filter) => at(filter, 'name') === 'envoy.filters.http.ext_authz',
    );
    const bytes = at(check, 'typed_config', 'with_request_body', 'max_request_bytes');
    const provider = listAt(documentsOf('istio')[0], 'meshConfig', 'extensionProviders')[0];
    expect(at(provider, 'envoyExtAuthzGrpc', 'includeRequestBodyInCheck', 'maxRequestBytes')).toBe(bytes);
    expect(at(manifest('envoy-gateway', 'SecurityPolicy'), 'spec', 'extAuth', 'bodyToExtAuth', 'maxRequestBytes')).toBe(
      bytes,
    );
  });
});

describe('the guide for Envoy AI Gateway', () => {
  test('gives an MCPRoute the check of the Gateway, and routes that Postern accepts', () => {
    expect(at(manifest('ai-gateway', 'MCPRoute'), 'spec', 'securityPolicy')).toEqual({
      extAuth: at(manifest('envoy-gateway', 'SecurityPolicy'), 'spec', 'extAuth'),
    });
    const settings = documentsOf('ai-gateway').filter((document) => 'routes' in document);
    expect(settings).toHaveLength(1);
    expect(settings.flatMap((one) => problemsOfConfig(load(JSON.stringify(one))))).toEqual([]);
  });

  test('names exactly the metadata keys that Postern reads', () => {
    const costs = listAt(manifest('ai-gateway', 'AIGatewayRoute'), 'spec', 'llmRequestCosts');
    expect(new Set(costs.map((cost) => at(cost, 'metadataKey')))).toEqual(new Set(GATEWAY_COUNTS.keys()));
  });
});

/** A guide's documents with one part changed. */
function changed(guide: Guide, kind: string, change: (spec: Mapping) => Mapping): readonly Mapping[] {
  return documentsOf(guide).map((one) =>
    one['kind'] === kind && isMapping(one['spec']) ? { ...one, spec: change(one['spec']) } : one,
  );
}

/** A SecurityPolicy's spec with other members in its check. */
function withCheck(spec: Mapping, members: Mapping): Mapping {
  const check = spec['extAuth'];
  return { ...spec, extAuth: { ...(isMapping(check) ? check : {}), ...members } };
}

/** An AgentgatewayPolicy's spec with other members in its check. */
function withExtAuth(spec: Mapping, members: Mapping): Mapping {
  const traffic = spec['traffic'];
  if (!isMapping(traffic) || !isMapping(traffic['extAuth'])) return spec;
  return { ...spec, traffic: { ...traffic, extAuth: { ...traffic['extAuth'], ...members } } };
}

describe('a mistake that schemas accept is found', () => {
  test.each<[string, readonly Mapping[], RegExp]>([
    [
      'an AuthorizationPolicy CUSTOM without provider',
      changed('istio', 'AuthorizationPolicy', ({ provider: _provider, ...spec }) => spec),
      /names no provider/,
    ],
    [
      'a provider that the mesh does not have',
      changed('istio', 'AuthorizationPolicy', (spec) => ({ ...spec, provider: { name: 'other' } })),
      /no provider named other/,
    ],
    [
      'an AuthorizationPolicy without rules',
      changed('istio', 'AuthorizationPolicy', ({ rules: _rules, ...spec }) => spec),
      /no rule that matches every request/,
    ],
    [
      'an AuthorizationPolicy that leaves out a path',
      changed('istio', 'AuthorizationPolicy', (spec) => ({
        ...spec,
        rules: [{ to: [{ operation: { notPaths: ['/health'] } }] }],
      })),
      /no rule that matches every request/,
    ],
    [
      'a way to Postern in clear text',
      changed('istio', 'DestinationRule', (spec) => ({ ...spec, trafficPolicy: { tls: { mode: 'DISABLE' } } })),
      /no DestinationRule encrypts/,
    ],
    [
      'a check that fails open',
      changed('envoy-gateway', 'SecurityPolicy', (spec) => withCheck(spec, { failOpen: true })),
      /fails open/,
    ],
    [
      'a check that sees some headers only',
      changed('envoy-gateway', 'SecurityPolicy', (spec) => withCheck(spec, { headersToExtAuth: ['authorization'] })),
      /headersToExtAuth/,
    ],
    [
      'a policy for pods in ambient mode',
      changed('istio-ambient', 'AuthorizationPolicy', ({ targetRefs: _targetRefs, ...spec }) =>
        spec['action'] === 'CUSTOM' ? { ...spec, selector: { matchLabels: { app: 'platform' } } } : spec,
      ),
      /selects pods: ztunnel/,
    ],
    [
      'a check by kgateway of a share of the requests',
      changed('kgateway', 'GatewayExtension', (spec) => withCheck(spec, { percentageEnabled: 50 })),
      /percentageEnabled lets the other requests pass/,
    ],
    [
      'a check that kgateway may try again',
      changed('kgateway', 'GatewayExtension', (spec) =>
        withCheck(spec, { grpcService: { backendRef: { name: 'postern-grpc' } } }),
      ),
      /may be tried again/,
    ],
    [
      'a policy of kgateway that switches the check off',
      changed('kgateway', 'TrafficPolicy', (spec) => ({ ...spec, extAuth: { disable: {} } })),
      /switches every check off/,
    ],
    [
      'decisions that agentgateway keeps',
      changed('agentgateway', 'AgentgatewayPolicy', (spec) =>
        withExtAuth(spec, { cache: { key: ['request.headers["authorization"]'], ttl: '5m' } }),
      ),
      /kept beyond a revocation/,
    ],
    [
      'a check by agentgateway that fails open',
      changed('agentgateway', 'AgentgatewayPolicy', (spec) => withExtAuth(spec, { failureMode: 'FailOpen' })),
      /fails open/,
    ],
    [
      'a check by agentgateway that policies of routes can replace',
      changed('agentgateway', 'AgentgatewayPolicy', ({ strategy: _strategy, ...spec }) => spec),
      /more specific policy can replace/,
    ],
    [
      'a check of one route only',
      changed('envoy-gateway', 'SecurityPolicy', (spec) => ({
        ...spec,
        targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'ai' }],
      })),
      /not for the Gateway/,
    ],
  ])('%s', (_name, documents, message) => {
    expect(documents.filter((one) => 'apiVersion' in one).flatMap(problemsOf)).toEqual([]);
    expect(mistakesOf(documents).join('\n')).toMatch(message);
  });

  test('an unknown field, which the schemas reject', () => {
    const documents = changed('envoy-gateway', 'SecurityPolicy', (spec) => ({ ...spec, extAuthz: {} }));
    expect(documents.flatMap((one) => ('apiVersion' in one ? problemsOf(one) : []))).toHaveLength(1);
  });
});
