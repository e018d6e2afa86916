/**
 * Failed logins of one account: what strangers can and cannot do to its owner. A real PostgreSQL; the passwords are
 * compared without hashing.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { clearFailuresOfUser } from '../../src/iam/auth/failure-queries.ts';
import type { PasswordVerifier } from '../../src/iam/auth/parts.ts';
import { forgetAccount } from '../../src/iam/auth/throttle.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { addPerson, PASSWORD } from './people.ts';
import { fromAddress, type Stand, startStand } from './stand.ts';

vi.setConfig({ testTimeout: 60_000 });

const LOGIN = '/v1/auth/login';
const ADA = 'ada@example.com';
const HOME = '198.51.100.7';
const PAIR = 10;
const ACCOUNT = 100;

let database: FreshDatabase;
let stand: Stand;
/** Another replica on the same database. */
let replica: Stand;
let ada: Awaited<ReturnType<typeof addPerson>>;

const options = {
  login: { failuresPerAccount: PAIR, failuresPerAddress: 1000 },
  passwords: (real: PasswordVerifier): PasswordVerifier => ({
    hash: (password: string) => real.hash(password),
    needsRehash: () => false,
    verify: async (stored: string | undefined, password: string) => stored !== undefined && password === PASSWORD,
  }),
};

beforeAll(async () => {
  database = await freshDatabase();
  stand = await startStand(database.url, options);
  replica = await startStand(database.url, options);
  ada = await addPerson(stand.db, { email: ADA });
});
afterAll(async () => {
  await stand?.close();
  await replica?.close();
  await database?.close();
});
beforeEach(async () => {
  for (const table of ['login_failures', 'login_addresses']) await stand.db.knex(table).delete();
});

async function logIn(address: string, password: string, at: Stand = stand, email = ADA): Promise<number> {
  return (await at.post(LOGIN, { email, password }, fromAddress(address))).status;
}

const right = (address: string, at?: Stand): Promise<number> => logIn(address, PASSWORD, at);

async function guess(address: string, times: number): Promise<readonly number[]> {
  const seen: number[] = [];
  for (let i = 0; i < times; i++) seen.push(await logIn(address, 'a wrong guess', i % 2 === 0 ? stand : replica));
  return seen;
}

/** Causes enough failures to lock the account, with each address below its own limit. */
async function lockFromEverywhere(): Promise<void> {
  for (let i = 0; i < ACCOUNT / PAIR; i++)
    expect(await guess(`203.0.113.${i}`, PAIR)).toEqual(Array<number>(PAIR).fill(401));
}

describe('wrong passwords of a stranger', () => {
  test('end after ten from one address, also for the right password, at every replica, and other addresses still log in', async () => {
    expect(await guess('203.0.113.1', PAIR + 1)).toEqual([...Array<number>(PAIR).fill(401), 429]);
    for (const at of [stand, replica]) expect(await right('203.0.113.1', at)).toBe(429);
    for (const at of [stand, replica]) expect(await right(HOME, at)).toBe(200);
  });

  test('count for a network of IPv6 as for one address', async () => {
    for (let i = 0; i < PAIR; i++) await logIn(`2001:db8:0:1::${i}`, 'a wrong guess');
    expect(await right('2001:db8:0:1:ffff::1')).toBe(429);
    expect(await right('2001:db8:0:2::1')).toBe(200);
  });

  test('below the limit of the account leave it open to addresses that it has never used', async () => {
    for (let i = 0; i < 9; i++) await guess(`203.0.113.${i}`, PAIR);
    await guess('203.0.113.9', PAIR - 1);
    expect(await right(HOME)).toBe(200);
  });

  test('from many addresses lock the account for addresses that it has not used, and not for its own', async () => {
    expect(await right(HOME)).toBe(200);
    await lockFromEverywhere();
    for (const at of [stand, replica]) expect(await right('203.0.113.200', at)).toBe(429);
    for (const at of [stand, replica]) expect(await right(HOME, at)).toBe(200);
    // A success at home gives strangers no attempt.
    expect(await guess('203.0.113.200', 1)).toEqual([429]);
  });

  test('at an address of the owner are bounded there while the account is locked', async () => {
    await right(HOME);
    await lockFromEverywhere();
    expect(await guess(HOME, PAIR + 1)).toEqual([...Array<number>(PAIR).fill(401), 429]);
    expect(await right(HOME)).toBe(429);
  });
});

test('an address is no longer the own one of an account after 30 days without a login from it', async () => {
  await right(HOME);
  await right('198.51.100.8');
  await stand.db.knex.raw(`update login_addresses set last_login_at = last_login_at - interval '30 days 1 second'`);
  await right('198.51.100.8');
  await lockFromEverywhere();
  expect(await right(HOME)).toBe(429);
  expect(await right('198.51.100.8')).toBe(200);
});

test('a limit per account and address above 100 is the limit of the account as well', async () => {
  const wide = await startStand(database.url, {
    ...options,
    login: { failuresPerAccount: 110, failuresPerAddress: 1000 },
  });
  for (let i = 0; i < 110; i++) expect(await logIn('203.0.113.1', 'a wrong guess', wide)).toBe(401);
  expect(await logIn('203.0.113.2', 'a wrong guess', wide)).toBe(429);
  await wide.close();
});

describe('a total of three failures per account', () => {
  const login = { failuresPerAccount: 2, totalAccountFailures: 3, failuresPerAddress: 1000 };
  let careful: Stand;
  beforeAll(async () => {
    careful = await startStand(database.url, { ...options, login });
  });
  afterAll(() => careful?.close());
  const lockedUntil = async () =>
    (await stand.db.knex('login_failures').where({ scope: 'account' }).select('locked_until'))[0]?.locked_until;

  test('ends the attempts of strangers after three, from any addresses', async () => {
    for (let i = 0; i < 3; i++) expect(await logIn(`203.0.113.${i}`, 'a wrong guess', careful)).toBe(401);
    expect(await logIn('203.0.113.3', 'a wrong guess', careful)).toBe(429);
    expect(await logIn('203.0.113.4', PASSWORD, careful)).toBe(429);
  });

  test('leaves the account unlocked after a correct password at the last attempt', async () => {
    for (let i = 0; i < 2; i++) await logIn(`203.0.113.${i}`, 'a wrong guess', careful);
    expect(await logIn(HOME, PASSWORD, careful)).toBe(200);
    expect(await lockedUntil()).toBeNull();
  });

  test('keeps the account locked for strangers when its owner logs in after more failures', async () => {
    await logIn(HOME, PASSWORD, careful);
    for (let i = 0; i < 3; i++) await logIn(`203.0.113.${i}`, 'a wrong guess', careful);
    for (let i = 0; i < 2; i++) {
      expect(await logIn(HOME, 'a wrong guess', careful)).toBe(401);
    }
    expect(await logIn('203.0.113.9', PASSWORD, careful)).toBe(429);
    await stand.db.knex('login_failures').where({ scope: 'pair' }).delete();
    expect(await logIn(HOME, PASSWORD, careful)).toBe(200);
    expect(await lockedUntil()).toBeInstanceOf(Date);
    expect(await logIn('203.0.113.9', PASSWORD, careful)).toBe(429);
  });
});

test('an account knows at most 100 addresses, and keeps those that it knows', async () => {
  for (let i = 0; i < 101; i++) expect(await right(`192.0.2.${i}`)).toBe(200);
  const known = async () => Number((await stand.db.knex('login_addresses').count())[0]?.['count']);
  expect(await known()).toBe(100);
  await lockFromEverywhere();
  expect(await right('192.0.2.0')).toBe(200);
  expect(await right('192.0.2.100')).toBe(429);
});

describe('an account that is locked', () => {
  const reliefs = {
    'an administrator that unlocks the user': () => clearFailuresOfUser(stand.db.knex, ada),
    'a new password that the user sets with a token': () => forgetAccount(stand.db.knex, `email:${ADA}`),
  };
  test.each(Object.entries(reliefs))(
    'is opened to all addresses, and no other account is, by %s',
    async (_name, relieve) => {
      await lockFromEverywhere();
      await guess('203.0.113.1', 1);
      for (let i = 0; i < PAIR; i++) await logIn('203.0.113.1', 'a wrong guess', stand, 'bob@example.com');
      await relieve();
      expect(await right('203.0.113.1')).toBe(200);
      expect(await right(HOME)).toBe(200);
      expect(await logIn('203.0.113.1', 'a wrong guess', stand, 'bob@example.com')).toBe(429);
    },
  );
});

test('concurrent guesses at several replicas exceed no limit', async () => {
  const replies = await Promise.all(
    Array.from({ length: 120 }, (_, i) => logIn(`203.0.113.${i % 4}`, 'a wrong guess', i % 3 === 0 ? replica : stand)),
  );
  expect(replies.filter((status) => status === 401)).toHaveLength(4 * PAIR);
  expect(replies.filter((status) => status === 429)).toHaveLength(120 - 4 * PAIR);
});

describe('random attempts at an account that exists and at one that does not', () => {
  /** The limits, applied to one attempt after the other. */
  class Twin {
    readonly #failures = new Map<string, number>();
    readonly #known = new Set<string>();
    readonly #limits = { pair: 2, account: 4, address: 5 };

    attempt(account: string, address: string, isRight: boolean): number {
      const own = this.#known.has(`${account} ${address}`);
      const counts = { pair: `${account} ${address}`, account, address };
      const count = (scope: keyof typeof counts) => this.#failures.get(`${scope} ${counts[scope]}`) ?? 0;
      const scopes = ['pair', 'account', 'address'] as const;
      if (scopes.some((scope) => count(scope) >= this.#limits[scope] && !(scope === 'account' && own))) return 429;
      if (!isRight) {
        for (const scope of scopes) this.#failures.set(`${scope} ${counts[scope]}`, count(scope) + 1);
        return 401;
      }
      this.#failures.delete(`pair ${counts.pair}`);
      this.#known.add(`${account} ${address}`);
      return 200;
    }
  }

  test('get the answers that the limits define, equal for both accounts after wrong passwords', async () => {
    const login = { failuresPerAccount: 2, totalAccountFailures: 4, failuresPerAddress: 5 };
    const strict = await startStand(database.url, { ...options, login });
    const step = fc.record({
      account: fc.constantFrom(ADA, 'nobody@example.com'),
      address: fc.constantFrom('203.0.113.1', '203.0.113.2', '203.0.113.3'),
      isRight: fc.boolean(),
    });
    try {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 24 }), async (steps) => {
          for (const table of ['login_failures', 'login_addresses']) await stand.db.knex(table).delete();
          const twin = new Twin();
          for (const { account, address, isRight } of steps) {
            const seen = await logIn(address, isRight ? PASSWORD : 'a wrong guess', strict, account);
            expect(seen).toBe(twin.attempt(account, address, isRight && account === ADA));
          }
        }),
        { numRuns: runs(25) },
      );
    } finally {
      await strict.close();
    }
  });
});
