import { describe, expect, test } from 'vitest';
import { LoadLimiter, type Patience } from '../../src/credential-cache/load-limiter.ts';
import type { VerifiedToken } from '../../src/credential-cache/ports.ts';
import { MAX_ENTRY_AGE_MS } from '../../src/credential-cache/read-through-cache.ts';
import { REJECTED_TTL_MS } from '../../src/credential-cache/verification-cache.ts';
import { VerifiedTokens } from '../../src/credential-cache/verified-tokens.ts';
import { Fault } from '../../src/domain/errors.ts';
import { sessionId, userId } from './support/ids.ts';

const VALID: VerifiedToken = {
  kind: 'valid',
  userId: userId(1),
  sessionId: sessionId(1),
  validFromMs: 0,
  validUntilMs: 1,
};
const BAD: VerifiedToken = { kind: 'invalid', reason: 'signature' };

const SOON: Patience = { client: '', untilMs: 2000 };
const limiter = (permits: number) => new LoadLimiter({ permits, maxWaiting: 1, monotonicMs: () => 0 });

function someTokens({ capacity = 10, maxVerifications = 10 } = {}) {
  const verifications: PromiseWithResolvers<VerifiedToken>[] = [];
  const tokens = new VerifiedTokens({
    capacity,
    limiter: limiter(10),
    unseenLimiter: limiter(maxVerifications),
    monotonicMs: () => 0,
    verifier: {
      hasOwnHeader: () => true,
      verify: () => {
        const verification = Promise.withResolvers<VerifiedToken>();
        verifications.push(verification);
        return verification.promise;
      },
    },
  });
  const verify = async (digest: string, outcome: VerifiedToken): Promise<void> => {
    const filled = tokens.fill(digest, 'token', SOON);
    verifications.at(-1)?.resolve(outcome);
    expect(await filled).toBe(true);
  };
  return { tokens, verifications, verify };
}

describe('verified tokens', () => {
  test('concurrent requests with one token share one verification', async () => {
    const { tokens, verifications } = someTokens();
    const fills = Array.from({ length: 20 }, () => tokens.fill('digest', 'token', SOON));
    expect(verifications).toHaveLength(1);
    verifications[0]?.resolve(VALID);
    await Promise.all(fills);
    expect(tokens.peek('digest', 0)).toEqual(VALID);
  });

  test('a change of the signing keys clears valid and invalid tokens', async () => {
    const { tokens, verify } = someTokens();
    await verify('good', VALID);
    await verify('bad', BAD);
    tokens.clear();
    expect(tokens.peek('good', 0)).toBeUndefined();
    expect(tokens.peek('bad', 0)).toBeUndefined();
  });

  test('a verification that began before a change of the signing keys is not stored, and runs again', async () => {
    const { tokens, verifications } = someTokens();
    const filled = tokens.fill('digest', 'token', SOON);
    tokens.clear();
    verifications[0]?.resolve(VALID);
    await new Promise(setImmediate);
    expect(tokens.peek('digest', 0)).toBeUndefined();
    verifications[1]?.resolve(BAD);
    expect(await filled).toBe(true);
    expect(tokens.peek('digest', 0)).toEqual(BAD);
  });

  test('an invalid token is cached for ten seconds, a valid one for at most an hour', async () => {
    const { tokens, verify } = someTokens();
    await verify('bad', BAD);
    await verify('good', VALID);
    expect(tokens.peek('bad', REJECTED_TTL_MS - 1)).toEqual(BAD);
    expect(tokens.peek('bad', REJECTED_TTL_MS)).toBeUndefined();
    expect(tokens.peek('good', MAX_ENTRY_AGE_MS - 1)).toEqual(VALID);
    expect(tokens.peek('good', MAX_ENTRY_AGE_MS)).toBeUndefined();
  });

  test('the tokens never exceed the capacity, and a flood of invalid ones evicts no valid one', async () => {
    const { tokens, verify } = someTokens({ capacity: 3 });
    for (let index = 0; index < 5; index++) await verify(`good ${index}`, VALID);
    for (let index = 0; index < 50; index++) await verify(`bad ${index}`, BAD);
    expect(tokens.stats().size).toBe(3);
    expect(tokens.peek('good 4', 0)).toEqual(VALID);
  });

  test('a verification that fails is a Fault, and so is one above the bound on waiting', async () => {
    const { tokens, verifications } = someTokens({ maxVerifications: 1 });
    const first = tokens.fill('a', 'token', SOON);
    const second = tokens.fill('b', 'token', SOON);
    await expect(tokens.fill('c', 'token', SOON)).rejects.toThrow(Fault);
    verifications[0]?.reject(new Error('no key ring'));
    await expect(first).rejects.toThrow(Fault);
    expect(tokens.peek('a', 0)).toBeUndefined();
    await new Promise(setImmediate);
    verifications[1]?.resolve(BAD);
    expect(await second).toBe(true);
  });

  test('a token that was valid before is verified again although made-up ones take all of their own capacity', async () => {
    const { tokens, verifications, verify } = someTokens({ maxVerifications: 1 });
    const digest = 'ab'.repeat(32);
    await verify(digest, VALID);
    tokens.clear();
    const madeUp = tokens.fill('cd'.repeat(32), 'token', SOON);
    const again = tokens.fill(digest, 'token', SOON);
    expect(verifications).toHaveLength(3);
    verifications[2]?.resolve(VALID);
    expect(await again).toBe(true);
    verifications[1]?.resolve(BAD);
    await madeUp;
  });
});
