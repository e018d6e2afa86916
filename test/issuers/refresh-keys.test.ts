/**
 * The keys of issuers in the database: fetched by one process at a time, kept while an issuer fails, sent to gates when
 * they change.
 */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type IssuerId, makeId } from '../../src/domain/ids.ts';
import { countKeyStates, insertKeyState, resetKeyState } from '../../src/iam/issuers/key-queries.ts';
import {
  beginDueRefreshes,
  type KeyRefreshParts,
  keyRefreshTurns,
  type RefreshReport,
  refreshIssuerKeys,
  startKeyRefresh,
} from '../../src/iam/issuers/refresh-keys.ts';
import { issuerKeyRequests } from '../../src/store/issuer-key-requests.ts';
import { seedTenant, tenantId } from '../store/seed.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { makeIssuerKey, sendJson, startIssuer, type TestIssuer } from '../support/issuer.ts';

const HOUR_MS = 3_600_000;
const ACME = tenantId('acme');
let database: FreshDatabase;
let provider: TestIssuer;
let secure: TestIssuer;
let mark = 0;

beforeAll(async () => {
  database = await freshDatabase();
  await seedTenant(database.db, 'acme');
  await seedTenant(database.db, 'globex');
  [provider, secure] = await Promise.all([startIssuer(), startIssuer({ tls: true, path: '/realms/staff' })]);
});
beforeEach(async () => {
  mark = await position();
});
afterEach(async () => {
  for (const one of [provider, secure]) {
    one.answer = undefined;
    one.requests.length = 0;
  }
  await run('delete from issuers');
});
afterAll(async () => {
  await Promise.all([provider.close(), secure.close()]);
  await database.close();
});

async function run(sql: string, ...values: unknown[]): Promise<readonly Record<string, unknown>[]> {
  return database.db.query({ text: sql, values });
}

interface IssuerMembers {
  readonly issuer?: string;
  readonly tenant?: string;
  readonly kind?: 'oidc' | 'spiffe';
  readonly jwksUri?: string;
  readonly jwks?: object;
  readonly ca?: string | undefined;
  readonly enabled?: boolean;
}

let made = 0;

/** Creates an issuer as the API does: with the state of its keys in the same transaction. */
async function addIssuer(members: IssuerMembers = {}): Promise<IssuerId> {
  const { issuer = provider.url, tenant = 'acme', kind = 'oidc', jwksUri, jwks, ca, enabled = true } = members;
  const id = makeId('iss', Date.now(), Buffer.from(String(++made).padStart(10, '0')));
  await run(
    `insert into issuers (id, tenant_id, name, kind, issuer, audiences, jwks_uri, jwks, ca, algorithms, enabled)
     values ($1, $2, $3, $4, $5, '{postern}', $6, $7, $8, '{ES256}', $9)`,
    id,
    tenant,
    `issuer-${made}`,
    kind,
    issuer,
    jwksUri ?? null,
    jwks === undefined ? null : JSON.stringify(jwks),
    ca ?? null,
    enabled,
  );
  await insertKeyState(database.db.knex, id);
  return id;
}

interface KeyRow {
  readonly keys: readonly Record<string, unknown>[] | null;
  readonly error: string | null;
  readonly failures: number;
  /** Seconds from now. */
  readonly next: number;
  readonly fetched: boolean;
}

async function stateOf(id: IssuerId): Promise<KeyRow> {
  const { rows } = await database.db.knex.raw<{ rows: KeyRow[] }>(
    `select keys, error, failures, extract(epoch from next_fetch_at - clock_timestamp())::float as next, fetched_at is not null as fetched
     from issuer_keys where issuer_id = ?`,
    [id],
  );
  const [row] = rows;
  if (row === undefined) throw new Error('the issuer has no state of keys');
  return row;
}

/** Makes an issuer due, as if its last attempt began a minute ago. */
const isDue = (id: IssuerId) =>
  run(
    `update issuer_keys set next_fetch_at = clock_timestamp(), attempted_at = clock_timestamp() - interval '1 minute'
     where issuer_id = $1`,
    id,
  );

/** The parts of one process. */
function processParts(more: Partial<KeyRefreshParts> = {}): KeyRefreshParts {
  return {
    db: database.db,
    fetch: { allowedHosts: ['127.0.0.1', secure.host] },
    maxStalenessMs: 24 * HOUR_MS,
    turns: keyRefreshTurns(),
    ...more,
  };
}

async function refreshDue(parts: KeyRefreshParts = processParts()): Promise<number> {
  const begun = await beginDueRefreshes(parts);
  await Promise.all(begun);
  return begun.length;
}

async function position(): Promise<number> {
  const [row] = await run('select feed_position() as position');
  return Number(row?.['position']);
}

/** Returns the changes in the feed since the last call. */
async function changes(): Promise<readonly string[]> {
  const rows = await run('select kind, key from changes where seq > $1 order by seq', mark);
  mark = await position();
  return rows.map((row) => `${String(row['kind'])} ${String(row['key'])}`);
}

const refuse = (status: number) => {
  provider.answer = (_request, response) => {
    sendJson(response, { error: 'secret text of the issuer' }, status);
    return true;
  };
};

test('a new issuer is due at once, its keys come from its discovery document, and the next fetch is in 9 to 10 min', async () => {
  const id = await addIssuer({ issuer: secure.url, ca: secure.ca });
  expect(await refreshDue()).toBe(1);
  expect(secure.requests).toEqual(['/realms/staff/.well-known/openid-configuration', '/realms/staff/jwks']);
  const { next, ...state } = await stateOf(id);
  expect(state).toEqual({ keys: [secure.key.jwk], error: null, failures: 0, fetched: true });
  expect(next).toBeGreaterThan(530);
  expect(next).toBeLessThanOrEqual(600);
  expect(await refreshDue()).toBe(0);
});

test('with `jwks_uri` there is no discovery', async () => {
  const id = await addIssuer({ issuer: 'https://login.acme.example', jwksUri: provider.jwksUri });
  await refreshDue();
  expect(provider.requests).toEqual(['/jwks']);
  expect((await stateOf(id)).keys).toEqual([provider.key.jwk]);
});

test('the request accepts the media type of key sets, without which Kubernetes answers 406', async () => {
  const id = await addIssuer();
  provider.answer = ({ url, headers }, response) => {
    const types = headers.accept?.split(/, */) ?? [];
    if (url === '/jwks' ? types.includes('application/jwk-set+json') : types.includes('application/json')) return false;
    sendJson(response, {}, 406);
    return true;
  };
  await refreshDue();
  expect((await stateOf(id)).keys).toEqual([provider.key.jwk]);
});

test('a SPIFFE bundle gives its keys for JWT-SVIDs', async () => {
  const { jwk } = provider.key;
  provider.answer = (_request, response) => {
    sendJson(response, {
      keys: [
        { ...jwk, use: 'jwt-svid' },
        { ...makeIssuerKey().jwk, use: 'x509-svid' },
      ],
    });
    return true;
  };
  const id = await addIssuer({ kind: 'spiffe', issuer: 'spiffe://acme.example', jwksUri: provider.jwksUri });
  await refreshDue();
  expect((await stateOf(id)).keys).toEqual([jwk]);
});

test('disabled issuers and those with a pasted key set are not fetched', async () => {
  const pasted = await addIssuer({ jwks: provider.jwks() });
  const disabled = await addIssuer({ enabled: false });
  expect(await refreshDue()).toBe(0);
  const parts = processParts();
  const refresh = (id: IssuerId) => refreshIssuerKeys(parts, { id, tenantId: ACME });
  expect(await refresh(pasted)).toMatchObject({ kind: 'failed', reason: expect.stringMatching(/pasted/) });
  expect(provider.requests).toEqual([]);
  // A request for a refresh does not depend on the state of the issuer.
  expect(await refresh(disabled)).toEqual({ kind: 'ok', keys: [provider.key.jwk] });
});

describe('the change feed', () => {
  test('gates hear of the first keys, of other keys and of a recovery, and not of keys that stay', async () => {
    const id = await addIssuer();
    await changes();
    await refreshDue();
    expect(await changes()).toEqual([`issuer ${provider.url}`]);

    const old = provider.jwks().keys;
    const key = provider.rotate({ keepsOld: true });
    const refetched = async () => {
      await isDue(id);
      await refreshDue();
      return changes();
    };
    expect(await refetched()).toEqual([`issuer ${provider.url}`]);
    expect((await stateOf(id)).keys).toHaveLength(2);

    provider.answer = ({ url }, response) => {
      if (url !== '/jwks') return false;
      sendJson(response, { keys: [{ ...key.jwk, x5t: 'another member' }, ...old] });
      return true;
    };
    expect(await refetched()).toEqual([]);

    refuse(503);
    expect(await refetched()).toEqual([]);
    provider.answer = undefined;
    expect(await refetched()).toEqual([`issuer ${provider.url}`]);
  });
});

describe('a failure', () => {
  test('keeps the last good keys, and the next attempt comes after 5 s, doubled with each failure up to 10 min', async () => {
    const id = await addIssuer();
    await refreshDue();
    const { keys } = await stateOf(id);
    provider.rotate();
    refuse(500);
    const waits: number[] = [];
    for (let failure = 1; failure <= 9; failure++) {
      await isDue(id);
      await refreshDue();
      const state = await stateOf(id);
      expect(state).toMatchObject({ keys, failures: failure, error: expect.stringMatching(/status 500/) });
      expect(state.error).not.toMatch(/secret/);
      waits.push(Math.ceil(state.next / 5) * 5);
    }
    expect(waits).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600]);

    provider.answer = undefined;
    await isDue(id);
    await refreshDue();
    expect(await stateOf(id)).toMatchObject({ keys: [provider.key.jwk], failures: 0, error: null });
  });

  test('is reported with the failures before it, and says when the keys are too old or absent', async () => {
    const reports: RefreshReport[] = [];
    const parts = processParts({ onRefresh: (report) => reports.push(report) });
    const id = await addIssuer();
    const attempt = async (age: string) => {
      await isDue(id);
      await run('update issuer_keys set fetched_at = clock_timestamp() - $1::interval', age);
      await refreshDue(parts);
    };
    refuse(500);
    await refreshDue(parts);
    provider.answer = undefined;
    await attempt('0');
    refuse(500);
    await attempt('23 hours');
    await attempt('25 hours');
    const of = reports.map(({ issuer, outcome, isStale }) => [issuer.id, outcome.kind, issuer.failures, isStale]);
    expect(of).toEqual([
      [id, 'failed', 0, true],
      [id, 'ok', 1, false],
      [id, 'failed', 0, false],
      [id, 'failed', 1, true],
    ]);
  });

  const answers = (path: string, body: unknown, status = 200) => {
    provider.answer = ({ url }, response) => {
      if (url !== path) return false;
      if (typeof body === 'string') response.writeHead(status).end(body);
      else sendJson(response, body, status);
      return true;
    };
  };
  const DISCOVERY = '/.well-known/openid-configuration';
  test.each<readonly [what: string, path: string, body: unknown, reason: RegExp]>([
    ['another issuer', DISCOVERY, { issuer: 'https://other.example', jwks_uri: 'x' }, /another `issuer`/],
    ['an issuer with a slash more', DISCOVERY, { issuer: 'SLASH' }, /another `issuer`/],
    ['no issuer', DISCOVERY, { jwks_uri: 'x' }, /another `issuer`/],
    ['no key set', DISCOVERY, { issuer: 'OWN' }, /no `jwks_uri`/],
    [
      'a key set at a private address',
      DISCOVERY,
      { issuer: 'OWN', jwks_uri: 'https://10.0.0.7/jwks' },
      /private or reserved/,
    ],
    ['a key set in a file', DISCOVERY, { issuer: 'OWN', jwks_uri: 'file:///etc/passwd' }, /not an https URL/],
    ['a key set without TLS', DISCOVERY, { issuer: 'OWN', jwks_uri: 'http://keys.example/jwks' }, /begin with https/],
    ['a document that is no object', DISCOVERY, [], /not an object/],
    ['a document that is no JSON', DISCOVERY, '<html>', /not JSON/],
    ['keys that are no JSON', '/jwks', '{"keys":[', /not JSON/],
    ['a document of 100,000 lists', DISCOVERY, { issuer: 'OWN', x: Array(100_000).fill([]) }, /more than 64000 values/],
    ['keys of 100,000 lists', '/jwks', { keys: Array(100_000).fill([]) }, /more than 64000 values/],
    ['a document with a member twice', DISCOVERY, '{"issuer":"a","issuer":"b"}', /repeats a member/],
    ['a name that ends with a backslash', '/jwks', '{"keys":[],"n\\\\":1}', /ends with a backslash/],
    ['keys of another form', '/jwks', { key: [] }, /must be an object with the member `keys`/],
    ['10,000 keys', '/jwks', { keys: Array(10_000).fill({ kty: 'oct', k: 'AA' }) }, /at most 100 keys/],
    ['keys of more than 512 KiB', '/jwks', 'x'.repeat(600_000), /more than 524288 bytes/],
  ])('has a reason for an issuer with %s, and stores no keys', async (_what, path, body, reason) => {
    const text = JSON.stringify(body).replace('"OWN"', JSON.stringify(provider.url));
    answers(path, JSON.parse(text.replace('"SLASH"', JSON.stringify(`${provider.url}/`))));
    const id = await addIssuer();
    await refreshDue();
    const state = await stateOf(id);
    expect(state).toMatchObject({ keys: null, fetched: false, error: expect.stringMatching(reason) });
    expect(state.error?.length).toBeLessThan(400);
  });

  test('at a private address needs the operator, who can name the host', async () => {
    const id = await addIssuer();
    await refreshDue(processParts({ fetch: { allowedHosts: [] } }));
    expect(await stateOf(id)).toMatchObject({ keys: null, error: expect.stringMatching(/issuers\.allowed-hosts/) });
    expect(provider.requests).toEqual([]);
  });
});

test('a key set on another host than the issuer is allowed, and goes through the same checks', async () => {
  const id = await addIssuer({ issuer: secure.url, ca: secure.ca });
  secure.answer = ({ url }, response) => {
    if (url === '/realms/staff/jwks') return false;
    sendJson(response, { issuer: secure.url, jwks_uri: provider.jwksUri });
    return true;
  };
  await refreshDue();
  expect((await stateOf(id)).keys).toEqual([provider.key.jwk]);
});

describe('several processes', () => {
  test('one of two processes refreshes an issuer', async () => {
    for (let n = 0; n < 3; n++)
      await addIssuer({ issuer: `https://${n}.example`, jwksUri: `${provider.url}/jwks?${n}` });
    provider.answer = (_request, response) => {
      sendJson(response, provider.jwks());
      return true;
    };
    await Promise.all(Array.from({ length: 6 }, () => refreshDue()));
    expect(provider.requests.toSorted()).toEqual(['/jwks?0', '/jwks?1', '/jwks?2']);
  });

  test('an attempt without a result, of a process that died, is taken over after 30 s', async () => {
    const id = await addIssuer();
    const stop = new AbortController();
    provider.answer = () => {
      stop.abort();
      return true;
    };
    await refreshDue(processParts({ fetch: { allowedHosts: ['127.0.0.1'], signal: stop.signal } }));
    const { next, ...state } = await stateOf(id);
    expect(state).toEqual({ keys: null, error: null, failures: 0, fetched: false });
    expect(next).toBeGreaterThan(20);
    expect(next).toBeLessThanOrEqual(30);
  });
});

describe('unknown keys', () => {
  test('1,000 requests in a second, in each of three processes, cause one fetch in 5 s', async () => {
    const id = await addIssuer({ jwksUri: provider.jwksUri });
    await refreshDue();
    let nowMs = 0;
    const gates = [1, 2, 3].map(() =>
      issuerKeyRequests({
        db: database.db,
        monotonicMs: () => nowMs,
        onFault: (error) => expect(error).toBeUndefined(),
      }),
    );
    const flood = async (): Promise<void> => {
      for (let n = 0; n < 1000; n++) {
        nowMs++;
        for (const gate of gates) gate.request(id);
      }
      // After the statements of the requests, which the pool runs in their order.
      await expect.poll(async () => (await stateOf(id)).next).toBeLessThan(6);
    };
    await flood();
    expect(await refreshDue()).toBe(0);
    expect(provider.requests).toHaveLength(1);

    await run(`update issuer_keys set attempted_at = attempted_at - interval '6 seconds'`);
    nowMs += 5000;
    await flood();
    await expect.poll(async () => (await stateOf(id)).next).toBeLessThanOrEqual(0);
    await Promise.all([refreshDue(), refreshDue()]);
    expect(provider.requests).toHaveLength(2);
  });

  test('a request while an issuer answers slowly does not begin another fetch, and the result is stored', async () => {
    const id = await addIssuer();
    const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    provider.answer = ({ url }, response) => {
      if (url !== '/jwks') return false;
      asked.resolve();
      void answer.promise.then(() => sendJson(response, provider.jwks()));
      return true;
    };
    const refresh = refreshDue();
    await asked.promise;
    await run('update issuer_keys set next_fetch_at = clock_timestamp()');
    expect(await refreshDue()).toBe(0);
    answer.resolve();
    await refresh;
    expect((await stateOf(id)).keys).toEqual([provider.key.jwk]);
  });

  test('discovery and keys have one bound together, shorter than the time to the next fetch', async () => {
    const id = await addIssuer();
    const unanswered: string[] = [];
    provider.answer = ({ url }) => {
      if (url !== '/jwks') return false;
      unanswered.push(url);
      return true;
    };
    await refreshDue(processParts({ fetch: { allowedHosts: ['127.0.0.1'], timeoutMs: 300 } }));
    expect(await stateOf(id)).toMatchObject({
      keys: null,
      error: expect.stringMatching(/not answer completely in time/),
    });
    expect(unanswered).toHaveLength(1);
  });
});

describe('a result is not stored', () => {
  test.each<readonly [what: string, isGood: boolean]>([
    ['keys', true],
    ['a failure', false],
  ])('if the issuer changed while %s of the former place came', async (_what, isGood) => {
    const id = await addIssuer();
    const [asked, change] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    provider.answer = ({ url }, response) => {
      if (url !== '/jwks') return false;
      asked.resolve();
      void change.promise.then(() => sendJson(response, provider.jwks(), isGood ? 200 : 500));
      return true;
    };
    const refresh = refreshDue();
    await asked.promise;
    await run(`update issuers set issuer = 'https://new.example' where id = $1`, id);
    await resetKeyState(database.db.knex, id);
    change.resolve();
    await refresh;
    const { next, ...state } = await stateOf(id);
    expect(state).toEqual({ keys: null, error: null, failures: 0, fetched: false });
    expect(next).toBeLessThanOrEqual(0);
  });

  test('if the issuer was deleted', async () => {
    const id = await addIssuer();
    provider.answer = ({ url }, response) => {
      if (url !== '/jwks') return false;
      void run('delete from issuers where id = $1', id).then(() => sendJson(response, provider.jwks()));
      return true;
    };
    expect(await refreshDue()).toBe(1);
    expect(await run('select from issuer_keys')).toEqual([]);
  });
});

describe('turns', () => {
  /** Answers nothing until `release`. */
  function holding(): { readonly release: () => void; readonly held: () => number } {
    const waiting: (() => void)[] = [];
    provider.answer = ({ url }, response) => {
      if (url?.startsWith('/slow') !== true) return false;
      waiting.push(() => sendJson(response, provider.jwks()));
      return true;
    };
    return {
      held: () => waiting.length,
      release: () => {
        provider.answer = undefined;
        for (const answer of waiting) answer();
      },
    };
  }

  const addSlow = (n = 0): Promise<IssuerId> =>
    addIssuer({ issuer: `https://${n}.example`, jwksUri: `${provider.url}/slow/${n}` });

  test('a tenant with many slow issuers holds half of the turns, and the issuers of others are refreshed', async () => {
    const slow = holding();
    for (let n = 0; n < 20; n++) await addSlow(n);
    const parts = processParts();
    const first = await beginDueRefreshes(parts);
    await expect.poll(slow.held).toBe(4);
    const other = await addIssuer({ tenant: 'globex' });
    const second = await beginDueRefreshes(parts);
    expect(second).toHaveLength(1);
    await Promise.all(second);
    expect((await stateOf(other)).fetched).toBe(true);
    expect(slow.held()).toBe(4);
    slow.release();
    await Promise.all(first);
  });

  test('requests for a refresh beyond the queue are refused, and those in it get their turn', async () => {
    const slow = holding();
    const id = await addSlow();
    const parts = processParts();
    const refreshes = Array.from({ length: 30 }, () => refreshIssuerKeys(parts, { id, tenantId: ACME }));
    await expect.poll(slow.held).toBe(4);
    slow.release();
    provider.answer = (_request, response) => {
      sendJson(response, provider.jwks());
      return true;
    };
    const kinds = (await Promise.all(refreshes)).map((outcome) => outcome.kind);
    // 4 turns, and 16 of the 32 places of the queue.
    expect(kinds.filter((kind) => kind === 'ok')).toHaveLength(20);
    expect(kinds.filter((kind) => kind === 'failed')).toHaveLength(10);
  });

  test('the job refreshes a new issuer while another one does not answer, and ends with its fetches', async () => {
    const slow = holding();
    await addSlow();
    const stopped = new AbortController();
    const faults: unknown[] = [];
    const parts = processParts({ fetch: { allowedHosts: ['127.0.0.1'], signal: stopped.signal } });
    const stop = startKeyRefresh(parts, (error) => faults.push(error), 10);
    await expect.poll(slow.held).toBe(1);
    const id = await addIssuer();
    await expect.poll(async () => (await stateOf(id)).fetched).toBe(true);
    stopped.abort();
    await stop();
    expect(slow.held()).toBe(1);
    expect(faults).toEqual([]);
  });
});

test('issuers are counted by the state of their keys', async () => {
  const count = () => countKeyStates(database.db.knex, 24 * HOUR_MS);
  expect(await count()).toEqual({ current: 0, failing: 0, stale: 0 });
  const states = [
    ['1 minute', null],
    ['23 hours', null],
    ['23 hours', 'x'],
    ['25 hours', 'x'],
    [null, 'x'],
    [null, null],
  ] as const;
  for (const [n, [age, error]] of states.entries()) {
    const id = await addIssuer({ issuer: `https://${n}.example` });
    await run(
      'update issuer_keys set fetched_at = clock_timestamp() - $2::interval, error = $3 where issuer_id = $1',
      id,
      age,
      error,
    );
  }
  await addIssuer({ issuer: 'https://pasted.example', jwks: provider.jwks() });
  await addIssuer({ issuer: 'https://disabled.example', enabled: false });
  expect(await count()).toEqual({ current: 2, failing: 1, stale: 3 });
});
