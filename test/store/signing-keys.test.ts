import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { rotationTimes } from '../../src/identity/signing-key-plan.ts';
import { rotateSigningKeys, SigningKeys } from '../../src/identity/signing-keys.ts';
import { openDatabase } from '../../src/store/database.ts';
import { signingKeyStore } from '../../src/store/signing-keys.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

const SECRET = 'a secret key of more than 32 characters';
const DAY_MS = 86_400_000;
const time = { nowMs: Date.parse('2026-11-18T11:00:00.123Z') };
let database: FreshDatabase;

beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.close());

const server = (): SigningKeys =>
  new SigningKeys({
    store: signingKeyStore(database.db),
    secretKey: SECRET,
    times: rotationTimes(3_600_000),
    clock: () => time.nowMs,
    monotonicMs: () => performance.now(),
    onFault: (error) => expect.fail(String(error)),
  });

describe('signing keys in the database', () => {
  it('are created once when several servers start at once, with a change in the feed', async () => {
    const servers = Array.from({ length: 8 }, server);
    await Promise.all(servers.map((keys) => keys.maintain()));
    expect(new Set(servers.map((keys) => keys.current().kid)).size).toBe(1);
    const [row] = await database.db.query({
      text: `select count(*)::int as n from changes where kind = 'signing_keys'`,
    });
    expect(row?.['n']).toBe(1);
  });

  it('are read as they were stored, and can be opened', async () => {
    const [stored] = await signingKeyStore(database.db).load();
    expect(stored).toMatchObject({
      signsFromMs: time.nowMs,
      retiredAtMs: undefined,
      publicJwk: { kty: 'EC', crv: 'P-256' },
    });
    const keys = server();
    await keys.maintain();
    expect(keys.current()).toMatchObject({ kid: stored?.kid, publicJwk: stored?.publicJwk });
  });

  it('are retired by their successor and removed after their time', async () => {
    const keys = server();
    const by = { secretKey: SECRET, times: rotationTimes(3_600_000), nowMs: time.nowMs };
    const rotations = await Promise.all([1, 2, 3].map(() => rotateSigningKeys(signingKeyStore(database.db), by)));
    expect(rotations.filter(({ made }) => made)).toHaveLength(1);
    const [old, next] = await signingKeyStore(database.db).load();
    expect([old?.retiredAtMs, next?.signsFromMs]).toEqual([time.nowMs + DAY_MS, time.nowMs + DAY_MS]);
    time.nowMs += 3 * DAY_MS;
    await keys.maintain();
    expect(keys.published().map((key) => key.kid)).toEqual([next?.kid]);
  });

  it('are a fault while the database is unreachable', async () => {
    const away = openDatabase({ url: 'postgresql://postern@127.0.0.1:1/postern' });
    await expect(signingKeyStore(away).load()).rejects.toBeInstanceOf(Fault);
    await away.close();
  });
});
