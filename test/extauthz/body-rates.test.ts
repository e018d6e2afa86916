import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BodyRates } from '../../src/extauthz/body-rates.ts';
import { type CheckHandler, createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { runs } from '../support/properties.ts';
import { type Answer, readAnswer } from './support/definition.ts';
import { builtinRoutes, littleWorld, NOW_MS, OWNED_KEY_ID } from './support/little-world.ts';
import { checkRequest } from './support/requests.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

describe('the rates of bodies', () => {
  const body = fc.record({
    caller: fc.constantFrom('key_a', 'key_b', 'usr_c'),
    tenant: fc.constantFrom('acme', 'globex'),
    bytes: fc.oneof(fc.integer({ min: 0, max: 8 * KIB }), fc.integer({ min: 0, max: 2 * MIB })),
    pauseMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 3000 })),
  });

  /** Returns the debt of one id after all its reads: it decreases with time, never below 0. */
  function debtMs(
    read: readonly { readonly atMs: number; readonly bytes: number }[],
    rate: number,
    nowMs: number,
  ): number {
    let paidAtMs = 0;
    for (const { atMs, bytes } of read) paidAtMs = Math.max(atMs, paidAtMs) + (bytes * 1000) / rate;
    return paidAtMs - nowMs;
  }

  test('read a body exactly if a second of bytes is not yet owed by its caller, nor by its tenant', () => {
    const callerRate = MIB;
    const tenantRate = 1.5 * MIB;
    fc.assert(
      fc.property(fc.array(body, { maxLength: 60 }), (bodies) => {
        const rates = new BodyRates({ callerRate, tenantRate });
        const read: { readonly atMs: number; readonly bytes: number; readonly of: readonly string[] }[] = [];
        let nowMs = 0;
        for (const { caller, tenant, bytes, pauseMs } of bodies) {
          nowMs += pauseMs;
          const of = (id: string): typeof read => read.filter((each) => each.of.includes(id));
          const owedMs = Math.max(debtMs(of(caller), callerRate, nowMs), debtMs(of(tenant), tenantRate, nowMs));
          const isRead = bytes <= 4 * KIB || owedMs <= 1000;
          const waitSeconds = rates.take(caller, tenant, bytes, nowMs);
          expect(waitSeconds === undefined).toBe(isRead);
          if (waitSeconds !== undefined) {
            expect(Number.isInteger(waitSeconds) && waitSeconds >= 1).toBe(true);
            expect(owedMs - 1000).toBeLessThanOrEqual(waitSeconds * 1000);
          } else if (bytes > 4 * KIB) read.push({ atMs: nowMs, bytes, of: [caller, tenant] });
        }
      }),
      { numRuns: runs(300) },
    );
  });

  test('keep nothing of callers that owe nothing', () => {
    const rates = new BodyRates({ callerRate: MIB, tenantRate: MIB });
    for (let i = 0; i < 10_000; i++) rates.take(`key_${i}`, `tenant-${i}`, 5 * KIB, i);
    expect(rates.size).toBeLessThan(3000);
    rates.take('key_a', 'acme', 5 * KIB, 20_000);
    expect(rates.size).toBe(2);
  });
});

describe('a check beyond the rate of bodies', () => {
  const world = littleWorld();
  const outcomes: CheckOutcome[] = [];
  let nowMs = 0;
  const gateWith = (callerRate: number, tenantRate: number): CheckHandler =>
    createCheckHandler({
      routes: builtinRoutes(),
      resolver: world.resolver,
      observer: { observe: (outcome) => outcomes.push(outcome) },
      trustedHops: 0,
      forwardCredential: false,
      now: () => NOW_MS,
      monotonicMs: () => nowMs,
      bodyRates: { callerRate, tenantRate },
    });

  function ask(
    gate: CheckHandler,
    credential: string | undefined,
    body: string,
    path = '/v1/chat/completions',
  ): Answer {
    const headers: [string, string][] = [['content-type', 'application/json']];
    if (credential !== undefined) headers.push(['authorization', `Bearer ${credential}`]);
    const answer = gate(checkRequest({ path, headers, body }));
    if (answer instanceof Promise) throw new Error('a warm check waits for nothing');
    return readAnswer(answer);
  }

  const text = 'x'.repeat(900 * KIB);
  const LARGE = JSON.stringify({ model: 'llama-3-70b', max_tokens: 10, messages: [text] });
  const SMALL = JSON.stringify({ model: 'llama-3-70b', max_tokens: 10, messages: [] });

  test('gets 429 with Retry-After before its body is read, and the next one passes after that time', () => {
    const gate = gateWith(MIB, 100 * MIB);
    nowMs = 0;
    expect([ask(gate, world.ownedKey, LARGE).code, ask(gate, world.ownedKey, LARGE).code]).toEqual([0, 0]);
    // No JSON, so that a gate that reads it would answer 400.
    const refused = ask(gate, world.ownedKey, `${LARGE}}`);
    expect(refused).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      body: { code: 'rate_limit_exceeded', error: { type: 'rate_limit_error' } },
    });
    expect(outcomes.at(-1)).toMatchObject({
      code: 'rate_limit_exceeded',
      decision: { kind: 'deny', principal: { id: OWNED_KEY_ID } },
    });
    nowMs = 1000;
    expect(ask(gate, world.ownedKey, LARGE).code).toBe(0);
  });

  test('does not take the rate of another caller; those of one tenant share its rate', () => {
    const gate = gateWith(MIB, 100 * MIB);
    nowMs = 0;
    while (ask(gate, world.ownedKey, LARGE).code === 0);
    expect(ask(gate, world.tenantKey, LARGE).code).toBe(0);
    const shared = gateWith(100 * MIB, MIB);
    while (ask(shared, world.ownedKey, LARGE).code === 0);
    expect(ask(shared, world.tenantKey, LARGE).status).toBe(429);
  });

  test('is still decided if its body has up to 4 KiB, if its route reads no body, and without a credential', () => {
    const gate = gateWith(MIB, MIB);
    nowMs = 0;
    while (ask(gate, world.ownedKey, LARGE).code === 0);
    expect(ask(gate, world.ownedKey, SMALL).code).toBe(0);
    expect(ask(gate, world.ownedKey, LARGE, '/v1/iam/users').code).toBe(0);
    expect(ask(gate, undefined, LARGE).body).toMatchObject({ code: 'missing_credential' });
  });
});
