import { createHash } from 'node:crypto';
import { hash as argon2 } from '@node-rs/argon2';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { addPerson, auditOf, clear, everythingStored, PASSWORD } from './people.ts';
import { bearer, fromAddress, type Reply, refreshTokenOf, type Stand, type StandOptions, startStand } from './stand.ts';

let database: FreshDatabase;
let usual: Stand;
const others: Stand[] = [];

beforeAll(async () => {
  database = await freshDatabase();
  usual = await startStand(database.url);
});
afterEach(async () => {
  for (const stand of others.splice(0)) await stand.close();
  await clear(database.db);
  await usual.parts.feed.catchUp();
});
afterAll(async () => {
  await usual.close();
  await database.close();
});

async function start(options: StandOptions): Promise<Stand> {
  const stand = await startStand(database.url, options);
  others.push(stand);
  return stand;
}

const LOGIN = '/v1/auth/login';

/** Returns the parts of an answer that can distinguish failures: all except the request id, the date and the length. */
function visible({ status, headers, json }: Reply): unknown {
  const { date: _date, 'x-request-id': _id, 'content-length': _length, ...shown } = headers;
  return { status, shown, json: { ...json, request_id: '' } };
}

describe('a correct login', () => {
  test('gives an access token that proves the user, and a refresh token', async () => {
    const stand = usual;
    const id = await addPerson(stand.db, { email: 'ada@example.com', tenant: 'acme', roles: ['developer'] });
    const reply = await stand.post(LOGIN, { email: 'Ada@Example.com ', password: PASSWORD });
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      access_token: expect.any(String),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^prt_/),
    });
    expect(reply.headers['cache-control']).toBe('no-store');
    const me = await stand.get('/v1/auth/me', bearer(reply));
    expect(me.json).toEqual({
      id,
      type: 'user',
      email: 'ada@example.com',
      name: 'Name of ada@example.com',
      tenant_id: 'acme',
      source: 'local',
      roles: ['developer'],
      permissions: ['agents:*', 'chat:*', 'embeddings:*', 'rag:*'],
      platform_admin: false,
      budgets: [],
    });
    expect(await auditOf(stand.db)).toEqual([
      { actor: id, tenant: 'acme', action: 'auth.login', target: id, result: 'success', address: '127.0.0.1' },
    ]);
  });

  test('is accepted by every server on the same database', async () => {
    const [one, other] = [usual, await start({})];
    await addPerson(one.db, { email: 'ada@example.com' });
    const reply = await one.post(LOGIN, { email: 'ada@example.com', password: PASSWORD });
    expect((await other.get('/v1/auth/me', bearer(reply))).status).toBe(200);
    const { keys } = (await other.get('/.well-known/jwks.json')).json;
    const header: unknown = JSON.parse(
      Buffer.from(String(reply.json['access_token']).split('.')[0] ?? '', 'base64url').toString(),
    );
    expect(keys).toContainEqual(expect.objectContaining({ kid: Object(header).kid, kty: 'EC', alg: 'ES256' }));
    expect(JSON.stringify(keys)).not.toContain('"d"');
  });

  test('leaves nothing in the database that could be used again', async () => {
    const stand = usual;
    await addPerson(stand.db, { email: 'ada@example.com' });
    const reply = await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD });
    const stored = await everythingStored(stand.db);
    expect(stored).toContain('ada@example.com');
    for (const secret of [PASSWORD, refreshTokenOf(reply), String(reply.json['access_token'])]) {
      expect(stored).not.toContain(secret);
      expect(stored).not.toContain(Buffer.from(secret).toString('hex'));
    }
  });

  test('brings a hash of older parameters up to date, without disturbing logins at the same time', async () => {
    const stand = usual;
    const old = await argon2(PASSWORD, { memoryCost: 8192, timeCost: 1, parallelism: 1 });
    await addPerson(stand.db, { email: 'ada@example.com', hash: old });
    const logins = await Promise.all(
      [1, 2, 3, 4].map(() => stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })),
    );
    expect(logins.map((reply) => reply.status)).toEqual([200, 200, 200, 200]);
    const row: unknown = await stand.db.knex('users').first('password_hash');
    expect(Object(row).password_hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect((await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })).status).toBe(200);
  });
});

describe('a failed login', () => {
  test('answers the same, after the same work, for every reason', async () => {
    let checks = 0;
    const stand = await start({
      passwords: (real) => ({
        hash: (password) => real.hash(password),
        needsRehash: (stored) => real.needsRehash(stored),
        verify: (stored, password) => {
          checks++;
          return real.verify(stored, password);
        },
      }),
    });
    await addPerson(stand.db, { email: 'ada@example.com' });
    await addPerson(stand.db, { email: 'gone@example.com', status: 'deactivated' });
    await addPerson(stand.db, { email: 'fresh@example.com', hash: null });
    await addPerson(stand.db, { email: 'dir@example.com', source: 'ldap' });
    await addPerson(stand.db, { email: 'halted@example.com', tenant: 'halted' });
    await stand.db.knex('tenants').where({ id: 'halted' }).update({ status: 'suspended' });
    const attempts = [
      { email: 'ada@example.com', password: 'wrong' },
      { email: 'ada@example.com', password: '' },
      { email: 'ada@example.com', password: 'x'.repeat(16_000) },
      { email: 'nobody@example.com', password: PASSWORD },
      { email: '', password: '' },
      { email: `${'x'.repeat(400)}@example.com`, password: PASSWORD },
      { email: 'gone@example.com', password: PASSWORD },
      { email: 'fresh@example.com', password: PASSWORD },
      { email: 'fresh@example.com', password: '' },
      { email: 'dir@example.com', password: PASSWORD },
      { email: 'halted@example.com', password: 'wrong' },
      { username: 'ada', password: PASSWORD, auth_type: 'ldap' },
      { username: 'ada\0\ud800', password: `${PASSWORD}\0`, auth_type: 'ldap' },
    ];
    const seen: unknown[] = [];
    for (const [index, attempt] of attempts.entries()) {
      seen.push(visible(await stand.post(LOGIN, attempt)));
      expect(checks).toBe(index + 1);
    }
    expect(seen[0]).toMatchObject({ status: 401, json: { code: 'invalid_credential' } });
    for (const answer of seen) expect(answer).toEqual(seen[0]);
  });

  test('is in the audit log, with an anonymous actor, the email address as its target and no password', async () => {
    const stand = usual;
    await addPerson(stand.db, { email: 'ada@example.com', tenant: 'acme' });
    await stand.post(LOGIN, { email: 'Ada@example.com', password: 'hunter2 hunter2' }, fromAddress('203.0.113.9'));
    await stand.post(LOGIN, { email: 'who@example.com', password: 'hunter2 hunter2' }, fromAddress('203.0.113.9'));
    const failure = { actor: 'anonymous', action: 'auth.login', result: 'failure', address: '203.0.113.9' };
    expect(await auditOf(stand.db)).toEqual([
      { ...failure, tenant: 'acme', target: 'ada@example.com' },
      { ...failure, tenant: null, target: 'who@example.com' },
    ]);
    expect(await everythingStored(stand.db)).not.toContain('hunter2');
  });

  test('of a suspended tenant reports the suspension only after the correct password', async () => {
    const stand = usual;
    await addPerson(stand.db, { email: 'ada@example.com', tenant: 'acme' });
    await stand.db.knex('tenants').where({ id: 'acme' }).update({ status: 'suspended' });
    const right = await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD });
    expect([right.status, right.json['code']]).toEqual([403, 'tenant_suspended']);
    expect((await stand.post(LOGIN, { email: 'ada@example.com', password: 'wrong' })).status).toBe(401);
    expect(await stand.db.knex('sessions').count('* as n')).toEqual([{ n: 0 }]);
  });

  test.each([
    ['the password is reset', `password_hash = 'another', password_changed_at = clock_timestamp()`],
    ['the user is deactivated', `status = 'deactivated'`],
  ])('is the result of a correct password if %s during its check', async (_name, change) => {
    const stand = await start({
      passwords: (real) => ({
        hash: (password) => real.hash(password),
        needsRehash: (stored) => real.needsRehash(stored),
        verify: async (stored, password) => {
          const right = await real.verify(stored, password);
          await database.db.knex.raw(`update users set ${change}`);
          return right;
        },
      }),
    });
    await addPerson(stand.db, { email: 'ada@example.com' });
    expect((await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })).status).toBe(401);
    expect(await stand.db.knex('sessions').count('* as n')).toEqual([{ n: 0 }]);
  });

  test('with a malformed body is 422 with the path, or 400 without a body', async () => {
    const stand = usual;
    const check = async (body: unknown, path: string): Promise<void> => {
      const reply = await stand.post(LOGIN, body);
      expect([reply.status, reply.json['errors']]).toEqual([422, [{ path, message: expect.any(String) }]]);
    };
    await check({ email: 'a@b.c' }, '/password');
    await check({ password: 'x' }, '/email');
    await check({ email: 5, password: 'x' }, '/email');
    await check({ email: 'a@b.c', password: null }, '/password');
    await check({ email: 'a@b.c', password: 'x', otp: '1' }, '/otp');
    await check({ email: 'a@b.c', password: 'x', auth_type: 'ldap' }, '/username');
    await check({ email: 'a@b.c', username: 'a', password: 'x' }, '/username');
    await check({ username: 'a', password: 'x', auth_type: 'saml' }, '/auth_type');
    await check({ email: 'a@b.c', password: 'x', session: 'forever' }, '/session');
    await check({ email: 'a\0@b.c', password: 'x' }, '/email');
    expect((await stand.post(LOGIN)).json['code']).toBe('invalid_json');
  });
});

describe('guessing', () => {
  const wrong = (email: string) => ({ email, password: 'a wrong guess' });
  const LIMITS = { login: { failuresPerAccount: 3, failuresPerAddress: 5 } };

  test('at one account ends after its failures from an address, for the right password too, at every server', async () => {
    const [one, other] = [await start(LIMITS), await start(LIMITS)];
    await addPerson(one.db, { email: 'ada@example.com' });
    for (const stand of [one, other, one]) expect((await stand.post(LOGIN, wrong('ada@example.com'))).status).toBe(401);
    const blocked = await other.post(LOGIN, { email: 'ADA@example.com', password: PASSWORD });
    expect([blocked.status, blocked.json['code']]).toEqual([429, 'too_many_attempts']);
    const waitSeconds = Number(blocked.headers['retry-after']);
    expect(waitSeconds).toBeGreaterThan(800);
    expect(waitSeconds).toBeLessThanOrEqual(900);
  });

  test('does not reveal which accounts exist: unknown accounts are blocked alike', async () => {
    const stand = await start(LIMITS);
    await addPerson(stand.db, { email: 'ada@example.com' });
    const replies = async (email: string): Promise<unknown[]> => {
      const seen: unknown[] = [];
      for (let i = 0; i < 5; i++)
        seen.push(visible(await stand.post(LOGIN, wrong(email), fromAddress(`203.0.113.${i}`))));
      return seen;
    };
    const strip = (value: unknown): string => JSON.stringify(value).replaceAll(/"retry-after":"\d+"/g, '');
    expect(strip(await replies('ada@example.com'))).toBe(strip(await replies('nobody@example.com')));
  });

  test('from one address ends after its failures, for any accounts, and other addresses still log in', async () => {
    const stand = await start(LIMITS);
    await addPerson(stand.db, { email: 'ada@example.com' });
    for (let i = 0; i < 5; i++) {
      expect((await stand.post(LOGIN, wrong(`user${i}@example.com`), fromAddress('203.0.113.9'))).status).toBe(401);
    }
    const right = { email: 'ada@example.com', password: PASSWORD };
    expect((await stand.post(LOGIN, right, fromAddress('203.0.113.9'))).status).toBe(429);
    expect((await stand.post(LOGIN, right, fromAddress('203.0.113.10'))).status).toBe(200);
  });

  test('from a peer that is not trusted uses up the attempts of the peer, whatever it writes into X-Forwarded-For', async () => {
    const stand = await start({ ...LIMITS, trustedProxies: [] });
    await addPerson(stand.db, { email: 'ada@example.com' });
    const from = (n: number) => fromAddress(n % 2 === 0 ? `203.0.113.${n}` : 'unknown');
    for (let i = 0; i < 5; i++)
      expect((await stand.post(LOGIN, wrong(`user${i}@example.com`), from(i))).status).toBe(401);
    const right = { email: 'ada@example.com', password: PASSWORD };
    for (const headers of [from(5), from(6), {}]) expect((await stand.post(LOGIN, right, headers)).status).toBe(429);
  });

  test('from an unknown client address uses up the attempts of the account only', async () => {
    const stand = await start(LIMITS);
    await addPerson(stand.db, { email: 'ada@example.com' });
    for (let i = 0; i < 7; i++) {
      expect((await stand.post(LOGIN, wrong(`user${i}@example.com`), fromAddress('unknown'))).status).toBe(401);
    }
    const right = { email: 'ada@example.com', password: PASSWORD };
    expect((await stand.post(LOGIN, right, fromAddress('unknown'))).status).toBe(200);
    for (let i = 0; i < 3; i++) await stand.post(LOGIN, wrong('ada@example.com'), fromAddress('unknown'));
    expect((await stand.post(LOGIN, right, fromAddress('unknown'))).status).toBe(429);
  });

  test('from the addresses of one IPv6 network counts as from one', async () => {
    const stand = await start(LIMITS);
    for (let i = 0; i < 5; i++) {
      await stand.post(LOGIN, wrong(`user${i}@example.com`), fromAddress(`2001:db8:0:1::${i}`));
    }
    expect((await stand.post(LOGIN, wrong('x@example.com'), fromAddress('2001:db8:0:1:ffff::9'))).status).toBe(429);
    expect((await stand.post(LOGIN, wrong('x@example.com'), fromAddress('2001:db8:0:2::9'))).status).toBe(401);
  });

  test('with many attempts at once gets no more of them than one after the other', async () => {
    let checks = 0;
    const stand = await start({
      ...LIMITS,
      passwords: (real) => ({
        hash: (password) => real.hash(password),
        needsRehash: (stored) => real.needsRehash(stored),
        verify: (stored, password) => {
          checks++;
          return real.verify(stored, password);
        },
      }),
    });
    const replies = await Promise.all(Array.from({ length: 20 }, () => stand.post(LOGIN, wrong('ada@example.com'))));
    expect(replies.map((reply) => reply.status).sort((a, b) => a - b)).toEqual([
      401,
      401,
      401,
      ...Array<number>(17).fill(429),
    ]);
    expect(checks).toBe(3);
    expect(stand.attempts.size).toBe(0);
  });

  test('is not counted for many correct logins at once', async () => {
    const stand = await start({ login: { failuresPerAccount: 2, failuresPerAddress: 3 } });
    await addPerson(stand.db, { email: 'ada@example.com' });
    await addPerson(stand.db, { email: 'bob@example.com' });
    const logins = Array.from({ length: 24 }, (_, i) =>
      stand.post(LOGIN, { email: i % 2 === 0 ? 'ada@example.com' : 'bob@example.com', password: PASSWORD }),
    );
    expect(new Set((await Promise.all(logins)).map((reply) => reply.status))).toEqual(new Set([200]));
    expect(stand.attempts.size).toBe(0);
  });

  test('is forgotten by a success from the same address, and neither account nor address gets anything counted for it', async () => {
    const stand = await start(LIMITS);
    await addPerson(stand.db, { email: 'ada@example.com' });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 2; i++) expect((await stand.post(LOGIN, wrong('ada@example.com'))).status).toBe(401);
      expect((await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD })).status).toBe(200);
    }
    expect(await stand.db.knex('login_failures').select('scope', 'failures').orderBy('scope')).toEqual([
      { scope: 'account', failures: 4 },
      { scope: 'address', failures: 4 },
    ]);
  });

  test('is possible again after 15 minutes', async () => {
    const stand = await start(LIMITS);
    for (let i = 0; i < 4; i++) await stand.post(LOGIN, wrong('ada@example.com'));
    await stand.db.knex.raw(`update login_failures set window_start = window_start - interval '15 minutes 1 second'`);
    expect((await stand.post(LOGIN, wrong('ada@example.com'))).status).toBe(401);
    const subjects = ['email:ada@example.com', '4:2130706433', '4:2130706433\nemail:ada@example.com'].map((text) =>
      createHash('sha256').update(text).digest('hex'),
    );
    const { rows } = await stand.db.knex.raw<{ rows: { subject: string; failures: number }[] }>(
      `select encode(subject, 'hex') as subject, failures from login_failures order by scope`,
    );
    expect(rows).toEqual(subjects.map((subject) => ({ subject, failures: 1 })));
  });

  test('is not counted under overload: if too many passwords wait, the answer is 503', async () => {
    const stand = await start({ maxWaitingPasswords: 0 });
    const replies = await Promise.all(Array.from({ length: 10 }, () => stand.post(LOGIN, wrong('ada@example.com'))));
    const busy = replies.filter((reply) => reply.status === 503);
    expect(busy.length).toBeGreaterThan(0);
    expect(busy[0]?.json['code']).toBe('unavailable');
    expect(Number(busy[0]?.headers['retry-after'])).toBeGreaterThan(0);
    expect(await stand.db.knex('login_failures').where({ scope: 'account' }).select('failures')).toEqual([
      { failures: replies.length - busy.length },
    ]);
  });
});

test('with the database gone every answer is 503, and none is 401', async () => {
  const doomed = await freshDatabase();
  const stand = await startStand(doomed.url);
  others.push(stand);
  await addPerson(stand.db, { email: 'ada@example.com' });
  const reply = await stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD });
  await doomed.close();
  const answers = await Promise.all([
    stand.post(LOGIN, { email: 'ada@example.com', password: PASSWORD }),
    stand.post('/v1/auth/refresh', { refresh_token: refreshTokenOf(reply) }),
    stand.post('/v1/auth/logout', { refresh_token: refreshTokenOf(reply) }),
    stand.get('/v1/auth/me', bearer(reply)),
    stand.post('/v1/auth/password/reset', { token: `pst_${'a'.repeat(43)}`, new_password: 'a password that is long' }),
  ]);
  for (const answer of answers) expect([answer.status, answer.json['code']]).toEqual([503, 'unavailable']);
});
