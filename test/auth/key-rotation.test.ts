/**
 * Signing keys change under tokens in use: by schedule and by command, at several servers, with verifiers that keep
 * copies of the key set.
 */

import { randomBytes } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { DEFAULT_TENANT, makeId } from '../../src/domain/ids.ts';
import { rotateSigningKey } from '../../src/iam/auth/rotate-signing-key.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../src/identity/tokens.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { auditOf } from './people.ts';
import { SECRET_KEY, type Stand, startStand } from './stand.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TTL_SECONDS = 3600;
const USER = makeId('usr', 0, randomBytes(10));
const SESSION = makeId('ses', 0, randomBytes(10));
const times = rotationTimes(TTL_SECONDS * 1000);
const started: SigningKeys[] = [];
let database: FreshDatabase;

beforeAll(async () => {
  database = await freshDatabase();
});
afterEach(async () => {
  for (const keys of started.splice(0)) keys.close();
  await database.db.knex.raw('delete from signing_keys');
  await database.db.knex.raw('delete from audit_log');
});
afterAll(() => database.close());

interface Replica {
  readonly keys: SigningKeys;
  readonly tokens: AccessTokens;
}

/** @param clock may differ by some seconds, as the clocks of real servers do */
async function replica(clock: () => number): Promise<Replica> {
  const keys = new SigningKeys({
    store: signingKeyStore(database.db),
    secretKey: SECRET_KEY,
    times,
    clock,
    monotonicMs: clock,
    onFault: (error) => expect.fail(String(error)),
  });
  await keys.maintain();
  started.push(keys);
  return {
    keys,
    tokens: new AccessTokens({ keys, issuer: 'test', audience: 'platform', ttlSeconds: TTL_SECONDS, clock }),
  };
}

const command = (nowMs: number) =>
  rotateSigningKey({
    db: database.db,
    feed: { catchUp: async () => undefined },
    flush: () => undefined,
    now: () => nowMs,
    secretKey: SECRET_KEY,
    times,
  });

test('through eighty days of rotations by schedule and by command, no server and no verifier rejects an unexpired token', async () => {
  const time = { nowMs: Date.parse('2026-11-21T11:00:00Z') };
  const start = time.nowMs;
  // One keeps up with the feed; of the other the feed is cut off, and its clock is slow.
  const [prompt, deaf] = [await replica(() => time.nowMs), await replica(() => time.nowMs - 4000)];
  let copy = { atMs: time.nowMs, keys: prompt.tokens.jwks() };
  const kids = new Set<string>();
  let live: { readonly token: string; readonly untilMs: number }[] = [];
  for (let hours = 0; hours < 80 * 24; hours += 11) {
    time.nowMs = start + hours * HOUR_MS;
    if (hours % 242 === 0) await command(time.nowMs);
    await prompt.keys.maintain();
    // A verifier outside that looks as seldom as it may: no copy is older than a day.
    if (time.nowMs + HOUR_MS > copy.atMs + DAY_MS) copy = { atMs: time.nowMs, keys: prompt.tokens.jwks() };
    for (const { tokens } of [prompt, deaf]) {
      const grant = { userId: USER, sessionId: SESSION, tenantId: DEFAULT_TENANT, nowMs: time.nowMs };
      const { token } = await tokens.issue({ ...grant, jti: randomBytes(9).toString('base64url') });
      live.push({ token, untilMs: time.nowMs + TTL_SECONDS * 1000 });
    }
    kids.add(prompt.keys.current().kid);
    for (const atMs of [time.nowMs, time.nowMs + TTL_SECONDS * 1000 - 1]) {
      time.nowMs = atMs;
      await prompt.keys.maintain();
      for (const { token } of live.filter(({ untilMs }) => untilMs > atMs)) {
        expect((await prompt.tokens.verify(token)).kind).toBe('valid');
        expect((await deaf.tokens.verify(token)).kind).toBe('valid');
        const outside = { keys: copy.keys.keys.map((key) => ({ ...key })) };
        await jwtVerify(token, createLocalJWKSet(outside), { currentDate: new Date(atMs) });
      }
    }
    live = live.filter(({ untilMs }) => untilMs > time.nowMs);
  }
  expect(kids.size).toBeGreaterThanOrEqual(7);
  expect(prompt.keys.published().length).toBeLessThanOrEqual(3);
});

describe('the command', () => {
  const now = Date.parse('2026-11-21T11:00:00Z');

  test('publishes a key that signs a day later, returns the schedule, and leaves an audit row', async () => {
    const { keys } = await replica(() => now);
    const current = keys.current().kid;
    const rotation = await command(now);
    expect(rotation).toEqual({
      made: true,
      current,
      next: { kid: expect.any(String), signsFromMs: now + DAY_MS, currentGoneMs: now + DAY_MS + 25 * HOUR_MS },
    });
    await keys.maintain();
    expect(keys.published().map((key) => key.kid)).toEqual([current, rotation.next?.kid]);
    expect(keys.current().kid).toBe(current);
    const rows = await auditOf(database.db);
    expect(rows.filter(({ action }) => action === 'signing_key.rotate')).toEqual([
      {
        actor: 'system',
        tenant: null,
        action: 'signing_key.rotate',
        target: rotation.next?.kid,
        result: 'success',
        address: null,
      },
    ]);
  });

  test('given twice, or by two at once, makes one key', async () => {
    await replica(() => now);
    const rotations = await Promise.all([command(now), command(now)]);
    expect(rotations.map(({ made }) => made).sort()).toEqual([false, true]);
    expect(new Set(rotations.map(({ next }) => next?.kid)).size).toBe(1);
    expect(await command(now + HOUR_MS)).toEqual({ ...rotations[0], made: false });
  });

  test('on a database that never served makes the first key', async () => {
    expect(await command(now)).toEqual({ made: true, current: expect.any(String), next: undefined });
  });

  test('writes no private key in the clear', async () => {
    await command(now);
    const { rows } = await database.db.knex.raw<{ rows: { sealed: Buffer }[] }>(
      'select private_sealed as sealed from signing_keys',
    );
    // The object identifier of elliptic-curve keys is in every PKCS#8 that holds one.
    for (const { sealed } of rows) expect(sealed.includes(Buffer.from('2a8648ce3d0201', 'hex'))).toBe(false);
    expect(rows).toHaveLength(1);
  });
});

describe('the key set', () => {
  let stand: Stand;
  beforeAll(async () => {
    stand = await startStand(database.url);
  });
  afterAll(() => stand.close());

  const get = (headers: Record<string, string> = {}) => stand.get('/.well-known/jwks.json', headers);

  test('may be cached publicly for five minutes, and is 304 for its current tag', async () => {
    const whole = await get();
    expect(whole.status).toBe(200);
    expect(whole.headers['cache-control']).toBe('public, max-age=300, must-revalidate');
    const etag = String(whole.headers['etag']);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) {
      const unchanged = await get({ 'if-none-match': known });
      expect([unchanged.status, unchanged.text, unchanged.headers['etag']]).toEqual([304, '', etag]);
      expect(unchanged.headers['cache-control']).toBe('public, max-age=300, must-revalidate');
    }
    for (const stale of ['"other"', 'no tag at all', ''])
      expect((await get({ 'if-none-match': stale })).status).toBe(200);
  });

  test('has another tag as soon as a key is added', async () => {
    const before = await get();
    await command(Date.now());
    await stand.parts.feed.catchUp();
    const after = await vi.waitUntil(async () => {
      const reply = await get({ 'if-none-match': String(before.headers['etag']) });
      return reply.status === 200 && reply;
    }, 20_000);
    expect(after.headers['etag']).not.toBe(before.headers['etag']);
  });
});
