import { getPriority } from 'node:os';
import { hash as argon2 } from '@node-rs/argon2';
import { beforeAll, describe, expect, it } from 'vitest';
import { Fault, Refusal } from '../../src/domain/errors.ts';
import { poolThreads } from '../../src/identity/hashing-threads.ts';
import { Passwords } from '../../src/identity/passwords.ts';

const PASSWORD = 'a winter morning in Uppsala';
let passwords: Passwords;
let stored: string;

beforeAll(async () => {
  passwords = await Passwords.start();
  stored = await passwords.hash(PASSWORD);
});

describe('a password', () => {
  it('is kept as argon2id with m=19456, t=2, p=1, with a salt of its own', async () => {
    expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await passwords.hash(PASSWORD)).not.toBe(stored);
  });

  it('is right or wrong', async () => {
    expect(await passwords.verify(stored, PASSWORD)).toBe(true);
    expect(await passwords.verify(stored, `${PASSWORD} `)).toBe(false);
    expect(await passwords.verify(stored, '')).toBe(false);
    expect(await passwords.verify(stored, 'x'.repeat(1_000_000))).toBe(false);
  });

  it('is the same however its letters were composed', async () => {
    const composed = await passwords.hash('Malm\u00f6 i solsken, jaha');
    expect(await passwords.verify(composed, 'Malmo\u0308 i solsken, jaha')).toBe(true);
  });

  it('is wrong, after the same kind of work, where there is no hash to compare with', async () => {
    expect(await passwords.verify(undefined, PASSWORD)).toBe(false);
    expect(await passwords.verify(undefined, '')).toBe(false);
  });

  it('is hashed again if its hash has other parameters than the current ones', async () => {
    expect(passwords.needsRehash(stored)).toBe(false);
    expect(passwords.needsRehash(await argon2(PASSWORD, { memoryCost: 8192, timeCost: 2, parallelism: 1 }))).toBe(true);
    expect(passwords.needsRehash(stored.replace('argon2id', 'argon2i'))).toBe(true);
  });

  it('with an invalid stored hash is a fault, not a wrong password', async () => {
    await expect(passwords.verify('not a hash', PASSWORD)).rejects.toBeInstanceOf(Fault);
  });
});

describe('the password queue', () => {
  it('has a place for a login while a tenant asks for any number of hashes', async () => {
    const small = await Passwords.start({ maxRunning: 1, maxWaiting: 4 });
    const asked = Array.from({ length: 10 }, () => small.hash(PASSWORD, 'acme'));
    const login = small.verify(stored, PASSWORD);
    expect((await Promise.allSettled(asked)).filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(await login).toBe(true);
  });

  it('is bounded: beyond it the answer is unavailable at once, and what waits is still done', async () => {
    const small = await Passwords.start({ maxRunning: 1, maxWaiting: 2 });
    const attempts = Array.from({ length: 5 }, () => small.verify(stored, PASSWORD));
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.map((outcome) => outcome.status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ]);
    const refusal = outcomes.flatMap((outcome): unknown[] =>
      outcome.status === 'rejected' ? [outcome.reason] : [],
    )[0];
    expect(refusal).toBeInstanceOf(Refusal);
    expect(refusal).toMatchObject({ code: 'unavailable', extras: { retryAfter: 1 } });
    expect(await small.verify(stored, PASSWORD)).toBe(true);
  });

  it('frees its place when the work fails', async () => {
    const small = await Passwords.start({ maxRunning: 1, maxWaiting: 0 });
    await expect(small.verify('not a hash', PASSWORD)).rejects.toBeInstanceOf(Fault);
    expect(await small.verify(stored, PASSWORD)).toBe(true);
  });
});

// Other systems give no thread a priority of its own.
describe.runIf(process.platform === 'linux')('the threads that hash', () => {
  it('run at a lower priority than the thread that decides', () => {
    const threads = poolThreads();
    expect(threads.length).toBeGreaterThan(0);
    expect(threads.filter((thread) => getPriority(thread) <= getPriority())).toEqual([]);
  });
});
