/** Requests that a plain profile may treat otherwise than the full one, through a real Envoy in each profile. */

import { connect } from 'node:http2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CaseStand, startCaseStand } from '../support/case-stand.ts';
import { startCheckServer } from '../support/check-server.ts';
import { type Edge, startConfig } from '../support/envoy.ts';
import { type Call, send } from '../support/http.ts';
import { loadCases } from '../support/world.ts';
import { envoyGatewayBootstrap } from './support/envoy-gateway.ts';
import { istioBootstrap } from './support/istio.ts';
import { kgatewayBootstrap } from './support/kgateway.ts';
import {
  envoyGatewayManifests,
  istioManifests,
  kgatewayManifests,
  outcomeOf,
  PATCHED,
  type Patched,
  PROFILES,
  type Profile,
  startPatched,
  startProfile,
  withProvider,
} from './support/profiles.ts';
import { tableOf } from './support/tables.ts';

const CHAT = '/v1/chat/completions';
const MAX_BYTES = 1_048_576;

type Headers = Readonly<Record<string, string | string[]>>;

interface Request extends Omit<Call, 'headers'> {
  /** The case whose principal sends it. */
  readonly as: string;
  readonly headers?: Headers;
}

const chat = (body: string | Uint8Array, headers: Headers = {}, as = 'developer chats'): Request => ({
  as,
  method: 'POST',
  path: CHAT,
  headers: { 'content-type': 'application/json', ...headers },
  body,
});
const bytes = (...parts: readonly (string | number)[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part))));
const ofLength = (length: number): string => {
  const [before, after] = ['{"model":"llama-3-70b","messages":[{"role":"user","content":"', '"}]}'];
  return before + 'a'.repeat(length - before.length - after.length) + after;
};

const REQUESTS: Readonly<Record<string, Request>> = {
  'a body of 1 MiB': chat(ofLength(MAX_BYTES)),
  'a body of 1 MiB without Content-Length': chat(ofLength(MAX_BYTES), { 'transfer-encoding': 'chunked' }),
  'a body of 1 MiB and one byte': chat(ofLength(MAX_BYTES + 1)),
  'a text in the body that is not UTF-8': chat(
    bytes('{"model":"llama-3-70b","messages":[{"role":"user","content":"', 0xff, '"}]}'),
  ),
  'a text in the body with an exclamation mark': chat(
    '{"model":"llama-3-70b","messages":[{"role":"user","content":"Hello!"}]}',
  ),
  'a model whose name is not UTF-8': chat(bytes('{"model":"llama', 0xff, '"}')),
  'a model whose name contains an exclamation mark': chat('{"model":"llama!"}'),
  'a model whose name contains an escaped exclamation mark': chat(String.raw`{"model":"llama\u0021"}`),
  'a member of the body whose name is not UTF-8': chat(bytes('{"mod', 0xff, 'el":"llama"}')),
  'a compressed body': chat('{"model":"llama-3-70b"}', { 'content-encoding': 'gzip' }),
  'a repeated Content-Type': chat('{"model":"llama-3-70b"}', {
    'content-type': ['application/json', 'application/json'],
  }),
  'a repeated X-Tenant-ID': chat('{"model":"llama-3-70b"}', { 'x-tenant-id': ['acme', 'acme'] }),
  'a model in x-ai-eg-model that the key may use, and another in the body': chat(
    '{"model":"llama-3-70b"}',
    { 'x-ai-eg-model': 'llama-3-8b' },
    'model outside the constraint',
  ),
  'a model in the body that the key may use, and another in x-ai-eg-model': chat(
    '{"model":"llama-3-8b"}',
    { 'x-ai-eg-model': 'llama-3-70b' },
    'model in the constraint',
  ),
  'a model name with an escaped slash': { as: 'model name with a slash', path: '/v1/models/meta-llama%2FLlama-3' },
  'a preflight of a browser': {
    as: 'no credential',
    method: 'OPTIONS',
    path: CHAT,
    headers: { origin: 'https://app.example.com', 'access-control-request-method': 'POST' },
  },
  'x_postern_subject from the client': chat('{"model":"llama-3-70b"}', { x_postern_subject: 'me' }),
  'X-Postern-Subject from the client': chat('{"model":"llama-3-70b"}', { 'x-postern-subject': 'me' }),
};

const { cases } = loadCases();
const edges = new Map<Profile | Patched, Edge>();
const alone = new Map<Profile | Patched, Edge>();
const stated = new Map(tableOf('profiles', 'Other requests').map((row) => [row['request'] ?? '', row]));
let stand: CaseStand;

beforeAll(async () => {
  stand = await startCaseStand();
  // A port of loopback on which nothing listens: the Postern of these does not answer.
  const missing = { ...stand, grpc: '127.0.0.1:1', isGrpcDown: true };
  for (const [into, parts] of [
    [edges, stand],
    [alone, missing],
  ] as const) {
    const started = await Promise.all(
      PROFILES.map(async (profile) => [profile, await startProfile(profile, parts)] as const),
    );
    for (const [profile, edge] of started) into.set(profile, edge);
    for (const profile of PATCHED) into.set(profile, await startPatched(profile, parts));
  }
});

afterAll(async () => {
  await Promise.all([...edges.values(), ...alone.values()].map((edge) => edge.stop()));
  await stand?.close();
});

async function ask(edge: Edge | undefined, { as, headers = {}, ...call }: Request): Promise<string> {
  const principal = cases.find(({ name }) => name === as)?.as ?? null;
  const credential = principal === null ? {} : { authorization: await stand.authorizationOf(principal) };
  return outcomeOf(
    await send(edge?.url ?? expect.fail('no Envoy'), {
      ...call,
      headers: { ...credential, 'x-forwarded-for': stand.file.defaults.ip, ...headers },
    }),
  );
}

/**
 * Patched, a mesh does what the page states of the full profile, except that Istio's CORS filter stays behind the
 * check.
 */
function statedOf(profile: Profile | Patched, name: string): string | undefined {
  if (profile.startsWith('Istio, ') && name === 'a preflight of a browser') return stated.get(name)?.['Istio'];
  return stated.get(name)?.[profile.endsWith('patched') || profile.endsWith('routes') ? 'full' : profile];
}

describe.each([...PROFILES, ...PATCHED])('%s', (profile) => {
  test.each(Object.entries(REQUESTS))('%s', async (name, request) => {
    expect(await ask(edges.get(profile), request)).toBe(statedOf(profile, name));
  });

  test('any request while Postern does not answer', async () => {
    const name = 'any request while Postern does not answer';
    expect(await ask(alone.get(profile), chat('{"model":"llama-3-70b"}'))).toBe(statedOf(profile, name));
  });

  test.each(['x-postern-subject', 'X_Postern.Subject', 'x.postern_subject'])(
    'lets no client bring an identity to the upstream as %s',
    async (name) => {
      const credential = await stand.authorizationOf(cases.find((one) => one.name === 'developer chats')?.as ?? '');
      const headers = {
        authorization: credential,
        'x-forwarded-for': stand.file.defaults.ip,
        'content-type': 'application/json',
        [name]: 'me',
      };
      const answer = await send(edges.get(profile)?.url ?? '', {
        method: 'POST',
        path: CHAT,
        headers,
        body: '{"model":"llama-3-70b"}',
      });
      if (answer.status === 400) return;
      const seen: Record<string, string> = JSON.parse(answer.body).headers;
      expect(seen['x-postern-subject']).toMatch(/^usr_/);
      expect(Object.values(seen)).not.toContain('me');
    },
  );

  test('decides a body of 900 kB that arrives over HTTP/2', async () => {
    const credential = await stand.authorizationOf(cases.find(({ name }) => name === 'developer chats')?.as ?? '');
    expect(await overHttp2(edges.get(profile)?.url ?? '', credential, ofLength(900_000))).toBe(200);
  });
});

test.each(['full', ...PATCHED] as const)(
  '%s lets an upload of 3 MB pass, whose decision needs no body',
  async (profile) => {
    const upload = {
      as: 'the same role still writes',
      method: 'POST',
      path: '/v1/rag/collections/hr/documents',
      headers: { 'content-type': 'application/octet-stream' },
      body: 'a'.repeat(3_000_000),
    };
    expect(await ask(edges.get(profile), upload)).toBe('200 allow');
  },
);

test.each(['full', ...PATCHED] as const)('%s sends a body of unknown length, also an empty one', async (profile) => {
  const chunked = { 'transfer-encoding': 'chunked' };
  expect(await ask(edges.get(profile), chat('', chunked))).toBe('400 malformed_body');
  expect(await ask(edges.get(profile), chat('{"model":"llama-3-70b"}', chunked))).toBe('200 allow');
});

test('the page states exactly these requests', () => {
  expect(new Set(stated.keys())).toEqual(
    new Set([...Object.keys(REQUESTS), 'any request while Postern does not answer']),
  );
});

function overHttp2(url: string, authorization: string, body: string): Promise<number> {
  const session = connect(url);
  return new Promise<number>((resolve, reject) => {
    session.on('error', reject);
    const stream = session.request({
      ':method': 'POST',
      ':path': CHAT,
      authorization,
      'x-forwarded-for': stand.file.defaults.ip,
      'content-type': 'application/json',
    });
    stream.on('error', reject);
    stream.on('response', (headers) => resolve(Number(headers[':status'])));
    stream.resume();
    stream.end(body);
  }).finally(() => session.destroy());
}

describe('the provider of the Istio guide', () => {
  test('sends the body as bytes, because as text a model with an exclamation mark is denied', async () => {
    const text = { maxRequestBytes: MAX_BYTES, allowPartialMessage: false };
    const edge = await startConfig(
      istioBootstrap(withProvider(istioManifests(), { includeRequestBodyInCheck: text }), stand),
    );
    try {
      expect(await ask(edge, chat('{"model":"llama!"}'))).toBe('400 malformed_body');
      expect(await ask(edges.get('Istio'), chat('{"model":"llama!"}'))).toBe('200 allow');
    } finally {
      await edge.stop();
    }
  });

  test('allows no partial message, because the buffer of a connection would then be the limit', async () => {
    const partial = { maxRequestBytes: MAX_BYTES, allowPartialMessage: true, packAsBytes: true };
    const edge = await startConfig(
      istioBootstrap(withProvider(istioManifests(), { includeRequestBodyInCheck: partial }), stand),
    );
    try {
      expect(await ask(edge, chat(ofLength(500_000)))).toBe('413 by the proxy');
      expect(await ask(edges.get('Istio'), chat(ofLength(500_000)))).toBe('200 allow');
    } finally {
      await edge.stop();
    }
  });
});

describe('a SecurityPolicy without bodyToExtAuth', () => {
  test('lets uploads of any size pass, and no request whose decision needs the body', async () => {
    const manifests = envoyGatewayManifests();
    const spec = JSON.parse(
      JSON.stringify(manifests.securityPolicy['spec'], (name, value) => (name === 'bodyToExtAuth' ? undefined : value)),
    );
    const securityPolicy = { ...manifests.securityPolicy, spec };
    const edge = await startConfig(envoyGatewayBootstrap({ ...manifests, securityPolicy }, stand));
    try {
      const as = 'the same role still writes';
      const upload = {
        as,
        method: 'POST',
        path: '/v1/rag/collections/hr/documents',
        headers: { 'content-type': 'application/octet-stream' },
        body: 'a'.repeat(3_000_000),
      };
      expect(await ask(edge, upload)).toBe('200 allow');
      expect(await ask(edges.get('Envoy Gateway'), upload)).toBe('413 by the proxy');
      for (const more of [{}, { 'transfer-encoding': 'chunked' }]) {
        expect(await ask(edge, chat('{"model":"llama-3-70b"}', more))).not.toMatch(/^200/);
      }
    } finally {
      await edge.stop();
    }
  });
});

describe('the AuthorizationPolicy of the Istio guide', () => {
  const policy = (spec: object) => ({
    ...istioManifests(),
    policy: { metadata: { name: 'postern', namespace: 'ai' }, spec },
  });

  test('names a provider, because without one Istio rejects every request', async () => {
    const edge = await startConfig(istioBootstrap(policy({ action: 'CUSTOM', rules: [{}] }), stand));
    try {
      expect(await ask(edge, chat('{"model":"llama-3-70b"}'))).toBe('403 by the proxy');
    } finally {
      await edge.stop();
    }
  });

  test('has a rule for every request, because without rules Istio checks none', async () => {
    const edge = await startConfig(istioBootstrap(policy({ action: 'CUSTOM', provider: { name: 'postern' } }), stand));
    try {
      expect(await ask(edge, { as: 'no credential', path: '/v1/models' })).toBe('200 allow');
      expect(await ask(edges.get('Istio'), { as: 'no credential', path: '/v1/models' })).toBe('401 missing_credential');
    } finally {
      await edge.stop();
    }
  });
});

describe('a policy of kgateway for one route', () => {
  test.each<[string, unknown, string]>([
    ['without a check keeps the check of the Gateway', undefined, '401 missing_credential'],
    ['that names the check keeps it', { extensionRef: { name: 'postern' } }, '401 missing_credential'],
    ['that disables checks removes it', { disable: {} }, '200 allow'],
  ])('%s', async (_name, routeExtAuth, expected) => {
    const edge = await startConfig(kgatewayBootstrap({ ...kgatewayManifests(), routeExtAuth }, stand));
    try {
      expect(await ask(edge, { as: 'no credential', path: '/v1/models' })).toBe(expected);
    } finally {
      await edge.stop();
    }
  });
});

function withOne<T>(manifests: T, member: string): T {
  return JSON.parse(JSON.stringify(manifests, (name, value) => (name === member ? 1 : value)));
}

test.each<[string, (parts: CaseStand) => readonly object[]]>([
  [
    'Envoy Gateway',
    (parts) =>
      [envoyGatewayManifests(), withOne(envoyGatewayManifests(), 'maxParallelRequests')].map((one) =>
        envoyGatewayBootstrap(one, parts),
      ),
  ],
  [
    'kgateway',
    (parts) =>
      [kgatewayManifests(), withOne(kgatewayManifests(), 'maxRequests')].map((one) => kgatewayBootstrap(one, parts)),
  ],
])(
  'a circuit breaker of %s that is too small answers 503 while other checks wait, and the one of the guide does not',
  async (_gateway, bootstrapsOf) => {
    const checks = await startCheckServer(() => ({ kind: 'silent' }));
    const edges = await Promise.all(bootstrapsOf({ ...stand, grpc: checks.address }).map((one) => startConfig(one)));
    try {
      for (const edge of edges) {
        const before = checks.seen.length;
        await Promise.all([1, 2].map(() => send(edge.url, { path: '/v1/models' })));
        expect(checks.seen.length - before).toBe(edge === edges[0] ? 2 : 1);
      }
    } finally {
      await Promise.all(edges.map((edge) => edge.stop()));
      checks.close();
    }
  },
);
