/**
 * Traces: the whole server as a process, a real Envoy, PostgreSQL and slapd, and a collector that reads the protocol
 * strictly.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startUpstream, type Upstream } from '../../src/demo/upstream.ts';
import { readTraceparent } from '../../src/telemetry/traceparent.ts';
import { findParts } from '../directory/servers/packages.ts';
import { PASSWORD, PEOPLE, WRONG_PASSWORD } from '../directory/servers/people.ts';
import type { DirectoryServer } from '../directory/servers/server.ts';
import { startSlapd } from '../directory/servers/slapd.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { send } from '../support/http.ts';
import { runs } from '../support/properties.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from '../telemetry/support/otlp-receiver.ts';
import { ADMIN, decider, login, makeKey, SECRET_KEY } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { logLines, metric, openStand, type Server, type Stand } from './support/postern.ts';

const missing = (await findParts(['openldap'])).get('openldap');
if (missing !== undefined && process.env['CI'] === 'true') throw new Error(missing);

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const SOURCE = join(import.meta.dirname, '../../src');
const HEADERS = 'authorization=Bearer%20the-collectors-own-token';

let stand: Stand;
let database: FreshDatabase;
let collector: OtlpReceiver;
let slapd: DirectoryServer | undefined;
let upstream: Upstream;
let server: Server;
let edge: Edge;
let admin: string;

beforeAll(async () => {
  [stand, database, collector, slapd, upstream] = await Promise.all([
    openStand(),
    freshDatabase(),
    startOtlpReceiver(),
    missing === undefined ? startSlapd({ small: true }) : undefined,
    startUpstream('127.0.0.1', 0),
  ]);
  server = await stand.serve(settings('parent'));
  edge = await startEdge({ grpc: server.grpc, http: server.http, upstream: `127.0.0.1:${upstream.port}` });
  admin = await login(server.http);
});

afterAll(async () => {
  await edge?.stop();
  await upstream?.close();
  await stand?.close();
  await slapd?.stop();
  await collector?.close();
  await database?.close();
});

function settings(sample: 'parent' | 'always', endpoint = collector.endpoint): NodeJS.ProcessEnv {
  return {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_LOG_DECISIONS_ALLOW_ONE_IN: '1',
    POSTERN_OTLP_ENDPOINT: endpoint,
    POSTERN_OTLP_HEADERS: HEADERS,
    POSTERN_TRACES_SAMPLE: sample,
    ...(slapd === undefined ? {} : ldapOf(slapd)),
  };
}

function ldapOf({ secureUrl, caFile, suffix, service }: DirectoryServer): NodeJS.ProcessEnv {
  return {
    POSTERN_LDAP_ENABLED: 'true',
    POSTERN_LDAP_URL: secureUrl,
    POSTERN_LDAP_CA_FILE: caFile,
    POSTERN_LDAP_BASE_DN: suffix,
    POSTERN_LDAP_BIND_DN: service.dn,
    POSTERN_LDAP_BIND_PASSWORD: service.password,
  };
}

/** The client's own span. */
const PARENT = '00f067aa0ba902b7';

function traceparent(flags: string): { readonly header: string; readonly traceId: string } {
  const traceId = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString('hex');
  return { header: `00-${traceId}-${PARENT}-${flags}`, traceId };
}

function spansOf(traceId: string): readonly ReceivedSpan[] {
  return collector.spans.filter((span) => span.traceId === traceId);
}

/** The spans of a trace, once its first one has ended and was exported. */
function exported(traceId: string, first: string): Promise<readonly ReceivedSpan[]> {
  return eventually(`the spans of ${first}`, async () => {
    const spans = spansOf(traceId);
    return spans.some(({ name }) => name === first) && spans;
  });
}

/** Names from a span up to the one that no span of the trace is the parent of. */
function pathOf(span: ReceivedSpan, spans: readonly ReceivedSpan[]): readonly string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parent);
  return parent === undefined ? [span.name] : [...pathOf(parent, spans), span.name];
}

function list(credential: string, header: string): Promise<number> {
  return send(edge.url, {
    method: 'GET',
    path: '/v1/chat/history?secret=of-the-query',
    headers: { authorization: `Bearer ${credential}`, traceparent: header },
  }).then(({ status }) => status);
}

function logIn(credentials: Readonly<Record<string, string>>, header: string): Promise<number> {
  const body = JSON.stringify(credentials);
  return send(`http://${server.http}`, {
    method: 'POST',
    path: '/v1/auth/login',
    headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), traceparent: header },
    body,
  }).then(({ status }) => status);
}

describe('a check through Envoy of a request whose traceparent is sampled', () => {
  it('has spans for the check, for each cache entry that it had to load, and for their statements, each with its parent', async () => {
    const { key } = await makeKey(server.http, admin);
    const { header, traceId } = traceparent('01');
    expect(await list(key, header)).toBe(200);
    const spans = await exported(traceId, 'check');
    const check = spans.find(({ name }) => name === 'check');
    expect(check).toMatchObject({ parent: PARENT, kind: 2, failed: false, attributes: { 'postern.code': 'allow' } });
    const paths = spans.map((span) => pathOf(span, spans).slice(0, 2).join(' > '));
    expect(paths).toContain('check > fill key');
    expect(spans.every((span) => pathOf(span, spans)[0] === 'check')).toBe(true);
    const statement = spans.find(({ attributes }) => attributes['db.system.name'] === 'postgresql');
    expect(statement).toMatchObject({ kind: 3, attributes: { 'db.operation.name': 'SELECT' } });
    for (const span of spans) {
      expect(span.startMs).toBeGreaterThanOrEqual(check?.startMs ?? Number.NaN);
      expect(span.endMs).toBeGreaterThanOrEqual(span.startMs);
    }
  });

  it('is found in the decision log by its trace id, and has no span when it is answered from memory', async () => {
    const { key } = await makeKey(server.http, admin);
    await list(key, traceparent('00').header);
    const { header, traceId } = traceparent('01');
    expect(await list(key, header)).toBe(200);
    await eventually('the line of the decision', async () =>
      logLines(server.stdout()).some((line) => line['trace_id'] === traceId && line['code'] === 'allow'),
    );
    // Its spans would have been exported before the next one.
    const next = traceparent('01');
    await list((await makeKey(server.http, admin)).key, next.header);
    await exported(next.traceId, 'check');
    expect(spansOf(traceId)).toEqual([]);
  });

  it('has no span and no trace id if its traceparent is not sampled or not valid', async () => {
    const { key } = await makeKey(server.http, admin);
    const quiet = traceparent('00');
    expect(await list(key, quiet.header)).toBe(200);
    expect(await list((await makeKey(server.http, admin)).key, `${quiet.header}x`)).toBe(200);
    const next = traceparent('01');
    await list((await makeKey(server.http, admin)).key, next.header);
    await exported(next.traceId, 'check');
    expect(spansOf(quiet.traceId)).toEqual([]);
    expect(server.stdout()).not.toContain(quiet.traceId);
  });
});

describe('a login whose traceparent is sampled', () => {
  it('has a span with its status, and one for each statement', async () => {
    const { header, traceId } = traceparent('01');
    expect(await logIn(ADMIN, header)).toBe(200);
    const spans = await exported(traceId, 'POST /v1/auth/login');
    const [request] = spans.filter(({ name }) => name === 'POST /v1/auth/login');
    expect(request).toMatchObject({
      parent: PARENT,
      kind: 2,
      attributes: { 'http.request.method': 'POST', 'http.route': '/v1/auth/login', 'http.response.status_code': 200 },
    });
    const statements = spans.filter(({ attributes }) => attributes['db.system.name'] === 'postgresql');
    expect(statements.length).toBeGreaterThan(0);
    expect(statements.every((span) => pathOf(span, spans)[0] === 'POST /v1/auth/login')).toBe(true);
  });

  it.skipIf(missing !== undefined)(
    `at a directory has a span for the directory with what it answered${missing === undefined ? '' : `: ${missing}`}`,
    async () => {
      for (const [password, status, outcome] of [
        [PASSWORD, 200, 'proved'],
        [WRONG_PASSWORD, 401, 'refused'],
      ] as const) {
        const { header, traceId } = traceparent('01');
        expect(await logIn({ auth_type: 'ldap', username: PEOPLE.alice.login, password }, header)).toBe(status);
        const spans = await exported(traceId, 'POST /v1/auth/login');
        const [ldap] = spans.filter(({ name }) => name === 'ldap login');
        expect(ldap).toMatchObject({
          kind: 3,
          attributes: { 'postern.outcome': outcome, 'postern.directory': 'ldap' },
        });
        expect(ldap && pathOf(ldap, spans)).toEqual(['POST /v1/auth/login', 'ldap login']);
      }
    },
  );
});

it('what a collector receives holds no password, key, token, query or name that a person typed, and comes with the configured headers', async () => {
  const { key } = await makeKey(server.http, admin);
  const { header, traceId } = traceparent('01');
  await list(key, header);
  await exported(traceId, 'check');
  const sent = collector.requests.filter(({ path }) => path === '/v1/traces');
  expect(new Set(sent.map(({ headers }) => headers.authorization))).toEqual(
    new Set(['Bearer the-collectors-own-token']),
  );
  const text = sent.map((each) => each.text).join('\n');
  for (const secret of [
    key,
    admin,
    ADMIN.password,
    ADMIN.email,
    PASSWORD,
    WRONG_PASSWORD,
    PEOPLE.alice.login,
    'of-the-query',
  ]) {
    expect([secret, text.includes(secret)]).toEqual([secret, false]);
  }
});

it('traces.sample always begins a trace for a request without a traceparent, and honors one that is not sampled', async () => {
  const always = await stand.serveGate(settings('always'));
  const client = decider(always.grpc);
  try {
    const before = collector.spans.length;
    const { key } = await makeKey(server.http, admin);
    expect(await client.decide(key)).toBe('allow');
    const [root] = await eventually('a trace that begins here', async () => {
      const found = collector.spans
        .slice(before)
        .filter(({ name, parent }) => name === 'check' && parent === undefined);
      return found.length > 0 && found;
    });
    expect(spansOf(String(root?.traceId)).map(({ name }) => name)).toContain('fill key');
    const quiet = traceparent('00');
    const other = await makeKey(server.http, admin);
    expect(await client.decide(other.key, { headers: [['traceparent', quiet.header]] })).toBe('allow');
    await always.stop();
    expect(spansOf(quiet.traceId)).toEqual([]);
  } finally {
    client.close();
  }
});

it('a collector that takes nothing changes no decision, and the spans that it did not take are counted', async () => {
  const lost = await startOtlpReceiver();
  lost.next.push(...Array.from({ length: 100 }, () => ({ status: 400 })));
  const deaf = await stand.serveGate(settings('always', lost.endpoint));
  const client = decider(deaf.grpc);
  try {
    const { key } = await makeKey(server.http, admin);
    expect(await client.decide(key)).toBe('allow');
    await eventually('the lost spans', async () => (await metric(deaf.admin, 'postern_trace_spans_dropped_total')) > 0);
    expect(await client.decide(key)).toBe('allow');
    expect(logLines(deaf.stdout()).filter(({ msg }) => msg === 'spans are lost')).not.toHaveLength(0);
  } finally {
    client.close();
    await deaf.stop();
    await lost.close();
  }
});

describe('a traceparent', () => {
  const hex = (length: number) =>
    fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
  const part = fc.oneof(
    hex(2),
    hex(16),
    hex(32),
    fc.constantFrom('00', 'ff', '01', '0'.repeat(16), '0'.repeat(32), '', 'x', 'AB'),
  );

  /** Section 3.2 of W3C Trace Context, member by member. */
  function naive(text: string): string | undefined {
    const [version = '', traceId = '', spanId = '', flags = '', ...more] = text.split('-');
    const isHex = (value: string, length: number) =>
      value.length === length && [...value].every((c) => '0123456789abcdef'.includes(c));
    if (!isHex(version, 2) || !isHex(traceId, 32) || !isHex(spanId, 16) || !isHex(flags, 2)) return undefined;
    if (version === 'ff' || (version === '00' && more.length > 0)) return undefined;
    if (/^0*$/.test(traceId) || /^0*$/.test(spanId)) return undefined;
    return `${traceId} ${spanId} ${'13579bdf'.includes(flags[1] ?? '')}`;
  }

  it('is read as the specification says, for any bytes of a client', () => {
    const valid = fc.tuple(hex(2), hex(32), hex(16), hex(2)).map((parts) => parts.join('-'));
    const almost = fc.array(part, { minLength: 3, maxLength: 6 }).map((parts) => parts.join('-'));
    fc.assert(
      fc.property(fc.oneof(valid, almost, fc.string()), (text) => {
        const read = readTraceparent(text);
        expect(read && `${read.traceId} ${read.spanId} ${read.sampled}`).toBe(naive(text));
      }),
      { numRuns: runs(2000) },
    );
  });
});

it('no module loads the code for traces unless traces are configured', () => {
  const sources = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  const loading = sources.filter((name) =>
    /^(?:import(?! type)|export)[^;]*\/tracing\.ts'/m.test(readFileSync(join(SOURCE, name), 'utf8')),
  );
  expect(loading).toEqual([]);
  expect(sources).toContain('telemetry/tracing.ts');
});
