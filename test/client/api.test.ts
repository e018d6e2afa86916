/** The API through the client, against a real server: lists, errors, versions, repetition, tenants. */

import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, createClient, type ProblemError } from '../../client/index.ts';
import { type Network, network } from './support/network.ts';
import { ADMIN, startTestServer, type TestServer } from './support/server.ts';

let server: TestServer;
let net: Network;
let client: Client;
beforeAll(async () => {
  server = await startTestServer();
  net = network();
  client = createClient({ baseUrl: server.url, fetch: net.fetch });
  await client.login(ADMIN);
});
afterAll(async () => {
  await server?.close();
});

const failure = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'no failure',
    (error: unknown) => error,
  );
let people = 0;
const person = () => ({ email: `person-${people++}@example.com`, name: 'A person' });

describe('a list', () => {
  it('comes as one sequence: every row once, in the order of its pages', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `team-${index}`);
    for (const name of names) await client.roles.create({ name, permissions: [] });
    const seen = await Array.fromAsync(client.pages('/v1/iam/roles', { query: { limit: 2 } }), ({ name }) => name);
    const whole = await client.request('GET', '/v1/iam/roles', { query: { limit: 200 } });
    expect(seen).toEqual(whole.data.map(({ name }) => name));
    expect(seen).toEqual(expect.arrayContaining(names));
    expect(new Set(seen).size).toBe(seen.length);
  });

  it('fetches only the pages that the program reads', async () => {
    const before = net.seen.length;
    for await (const role of client.roles.list({ limit: 2 })) if (role.name !== '') break;
    expect(net.seen.slice(before)).toEqual(['GET /v1/iam/roles?limit=2 200']);
  });

  it('is filtered, and empty when nothing is found', async () => {
    expect(await Array.fromAsync(client.users.list({ email: ADMIN.email }), ({ email }) => email)).toEqual([
      ADMIN.email,
    ]);
    expect(await Array.fromAsync(client.users.list({ q: 'nobody is called that' }))).toEqual([]);
  });

  it('stops when its signal says so, with the reason', async () => {
    const stop = new AbortController();
    const rows = client.roles.list({ limit: 2 }, { signal: stop.signal });
    await rows.next();
    await rows.next();
    const reason = new Error('changed my mind');
    stop.abort(reason);
    expect(await failure(rows.next())).toBe(reason);
  });
});

describe('an error', () => {
  it('of a body says which member is wrong', async () => {
    const error = await failure(client.users.create({ email: 'no address', name: '' }));
    expect(error).toMatchObject({
      name: 'ProblemError',
      status: 422,
      code: 'invalid_field',
      requestId: expect.stringMatching(/^req_/),
    });
    const wrong = (error as ProblemError).errors;
    expect(wrong.map(({ path }) => path).sort()).toEqual(['/email', '/name']);
    expect(wrong.every(({ message }) => message !== '')).toBe(true);
  });

  it.each<[string, number, (client: Client) => Promise<unknown>]>([
    ['not_found', 404, (c) => c.users.get('usr_01jd5k3v8m2x7q9w4r6t0y1z3b')],
    ['builtin_role', 403, (c) => c.roles.delete('admin')],
    ['invalid_parameter', 400, (c) => c.request('GET', '/v1/iam/users', { query: { cursor: 'none of ours' } })],
    ['already_exists', 409, (c) => c.users.create({ ...person(), email: ADMIN.email })],
    ['last_admin', 409, async (c) => c.users.deactivate((await c.me()).id)],
  ])('of the server is one of its catalogue: %s', async (code, status, call) => {
    const error = await failure(call(client));
    expect(error).toMatchObject({
      name: 'ProblemError',
      code,
      status,
      title: expect.stringMatching(/./),
      retryAfter: undefined,
    });
    expect(String(error)).toContain(`${status} ${code}: ${(error as ProblemError).detail}`);
  });

  it('of a token exchange has its code and the description of RFC 6749', async () => {
    const body = {
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
      subject_token: 'eyJhbGciOiJFUzI1NiJ9.e30.AA',
    };
    expect(await failure(client.request('POST', '/v1/auth/token', { body }))).toMatchObject({
      ...{ name: 'ProblemError', status: 400, code: 'invalid_subject_token' },
      detail: 'The subject token is not valid.',
      requestId: expect.stringMatching(/^req_/),
    });
  });

  it('names the policy that denies', async () => {
    const analyst = await client.users.create({
      ...person(),
      password: 'the password of an analyst',
      roles: ['tenant-admin'],
    });
    await client.policies.create({ name: 'no-keys', effect: 'deny', actions: ['admin:keys'], resources: ['*'] });
    const other = createClient({ baseUrl: server.url });
    await other.login({ email: analyst.email ?? '', password: 'the password of an analyst' });
    const error = await failure(
      Array.fromAsync(other.apiKeys.list()).then(() => other.apiKeys.create({ description: 'x', scopes: [] })),
    );
    expect(error).toMatchObject({ status: 403, code: 'denied_by_policy', policy: 'no-keys' });
    await client.policies.delete('no-keys');
  });
});

describe('a version', () => {
  it('keeps two writers from overwriting each other: the second one gets 412', async () => {
    const made = await client.users.create(person());
    const { etag, data, status, requestId } = await client.send('GET', '/v1/iam/users/{id}', { path: { id: made.id } });
    expect({ status, name: data.name }).toEqual({ status: 200, name: 'A person' });
    expect(requestId).toMatch(/^req_/);
    const ifMatch = etag ?? 'none';
    await client.users.update(made.id, { name: 'First' }, { ifMatch });
    expect(await failure(client.users.update(made.id, { name: 'Second' }, { ifMatch }))).toMatchObject({
      status: 412,
      code: 'precondition_failed',
    });
    expect((await client.users.get(made.id)).name).toBe('First');
  });
});

describe('repetition', () => {
  it('of a creation whose answer was lost makes nothing twice', async () => {
    let losses = 1;
    net.losing = (method, path) => method === 'POST' && path === '/v1/iam/users' && losses-- > 0;
    const { email, name } = person();
    const made = await client.users.create({ email, name });
    expect(made).toMatchObject({ email, name });
    expect(await Array.fromAsync(client.users.list({ email }))).toHaveLength(1);
    expect(net.seen.filter((line) => line.startsWith('POST /v1/iam/users ')).slice(-2)).toEqual([
      'POST /v1/iam/users lost',
      'POST /v1/iam/users 201',
    ]);
  });

  it('of a lost key says that its text is gone', async () => {
    let losses = 1;
    net.losing = (method, path) => method === 'POST' && path === '/v1/iam/api-keys' && losses-- > 0;
    const made = await client.apiKeys.create({ description: 'lost', scopes: ['chat:read'], expires_in_days: 1 });
    expect(made.key).toBeUndefined();
    expect(made.secret_available).toBe(false);
    expect((await client.apiKeys.rotate(made.id)).key).toMatch(/^psk_/);
  });
});

describe('a key', () => {
  it('calls as itself', async () => {
    const { key, id } = await client.apiKeys.create({
      description: 'a program',
      scopes: ['chat:read'],
      expires_in_days: 1,
    });
    const program = createClient({ baseUrl: server.url, apiKey: key ?? '' });
    expect(await program.me()).toMatchObject({ id, type: 'api_key', permissions: ['chat:read'] });
    await client.apiKeys.revoke(id);
    expect(await failure(program.me())).toMatchObject({ status: 401, code: 'invalid_credential' });
  });
});

describe('keys of another system', () => {
  it('are imported by digest, work as they are, and are revoked together after a dry run', async () => {
    const text = `sk-old-${randomBytes(24).toString('hex')}`;
    const digest = createHash('sha256').update(text).digest('hex');
    const row = {
      digest,
      prefix: 'sk-old-',
      last_four: text.slice(-4),
      description: 'old',
      scopes: ['chat:read'],
      expires_in_days: 1,
    };
    const { imported, data } = await client.apiKeys.import({ keys: [row] });
    const id = data[0]?.id ?? '';
    expect(imported).toBe(1);
    const program = createClient({ baseUrl: server.url, apiKey: text });
    expect(await program.me()).toMatchObject({ id });
    expect(await client.apiKeys.revokeSeveral({ filter: { prefix: 'sk-old-' } }, { dry_run: true })).toMatchObject({
      revoked: 1,
    });
    expect(await program.me()).toMatchObject({ id });
    expect(await client.apiKeys.revokeSeveral({ ids: [id] })).toMatchObject({ revoked: 1, dry_run: false });
    expect(await failure(program.me())).toMatchObject({ status: 401, code: 'invalid_credential' });
  });
});

describe('another tenant', () => {
  it('is acted in by the same session', async () => {
    await client.tenants.create({ id: 'acme', name: 'Acme' });
    const acme = client.inTenant('acme');
    const made = await acme.users.create(person());
    expect(made.tenant_id).toBe('acme');
    expect(await Array.fromAsync(client.users.list(), ({ id }) => id)).not.toContain(made.id);
    // The server finds the tenant of an id that a platform administrator names.
    expect(await client.users.get(made.id)).toMatchObject({ id: made.id, tenant_id: 'acme' });
    expect((await client.users.get(made.id, { tenant: 'acme' })).id).toBe(made.id);
    expect(await Array.fromAsync(acme.users.list(), ({ id }) => id)).toEqual([made.id]);
  });
});

describe('an answer without a body', () => {
  it('is undefined, and says where what was made is', async () => {
    const { status, location, data } = await client.send('POST', '/v1/iam/users', { body: person() });
    expect({ status, location }).toEqual({ status: 201, location: `/v1/iam/users/${data.id}` });
    expect(await client.users.delete(data.id)).toBeUndefined();
  });
});

it('the audit log streams as it comes', async () => {
  const answer = await client.stream('GET', '/v1/iam/audit', {
    query: { action: 'auth.login' },
    accept: 'application/x-ndjson',
  });
  expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
  const lines = (await answer.text()).trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).action)).toContain('auth.login');
});
