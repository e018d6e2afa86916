import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { CheckInput } from '../../src/decision/model.ts';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, parsePolicyName } from '../../src/domain/ids.ts';
import { checkObserver } from '../../src/telemetry/check-observer.ts';
import type { CheckCode, CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { jsonLine } from '../../src/telemetry/decision-json.ts';
import { DecisionLog, type DecisionLogParts, type DecisionSink } from '../../src/telemetry/decision-log.ts';
import { DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { loginReports } from '../../src/telemetry/login-metrics.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { RecentDecisions } from '../../src/telemetry/recent-decisions.ts';
import { anyCharacter } from '../support/properties.ts';
import { must } from '../support/world.ts';

const outcome = (code: CheckCode, extra: Partial<CheckOutcome> = {}): CheckOutcome => ({
  code,
  requestId: 'req_1',
  startedAtMs: 0,
  input: undefined,
  clientRequestId: undefined,
  decision: undefined,
  error: undefined,
  tookMs: 0,
  ...extra,
});

const INPUT: CheckInput = {
  method: 'POST',
  path: '/v1/nothing',
  authorization: undefined,
  tenant: 'acme',
  upgrade: undefined,
  contentType: undefined,
  contentEncoding: undefined,
  body: Buffer.alloc(0),
  bodyPartial: false,
  bodyMissing: false,
  clientAddress: '203.0.113.7',
};

const time = { monotonicMs: 0 };

/** Returns the lines of a batch, each with its line end. */
function linesOf(batch: Buffer): readonly string[] {
  return batch.toString().match(/.*\n/g) ?? [];
}

function logOf(parts: Partial<DecisionLogParts> = {}) {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const sink: DecisionSink = {
    render: jsonLine,
    deliver: async (batch) => {
      for (const line of linesOf(batch)) lines.push(JSON.parse(line));
    },
  };
  const log = new DecisionLog({ sink, monotonicMs: () => time.monotonicMs, now: () => 0, ...parts });
  return { log, lines };
}

/** A sink that delivers when the test says so. */
function slowSink() {
  const batches: { readonly lines: readonly string[]; readonly end: PromiseWithResolvers<void> }[] = [];
  const sink: DecisionSink = {
    render: jsonLine,
    deliver: (batch) => {
      const end = Promise.withResolvers<void>();
      batches.push({ lines: linesOf(batch), end });
      return end.promise;
    },
  };
  return { sink, batches };
}

beforeEach(() => {
  time.monotonicMs = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the decision log', () => {
  it('delivers nothing while a check is answered, and all of it soon after', async () => {
    const { log, lines } = logOf();
    log.offer(outcome('unavailable', { error: new Fault('the store is down'), tookMs: 1.23456 }));
    expect(lines).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(lines).toMatchObject([
      {
        level: 'info',
        time: '1970-01-01T00:00:00.000Z',
        part: 'decisions',
        outcome: 'fault',
        code: 'unavailable',
        request_id: 'req_1',
        took_ms: 1.235,
        err: { message: 'the store is down' },
        msg: 'decision',
      },
    ]);
  });

  it('has a line for every denial, for one of `allowOneIn` allows, and for faults of one kind up to `faultsPerSecond`', async () => {
    const { log, lines } = logOf({ allowOneIn: 10, faultsPerSecond: 3 });
    for (let i = 0; i < 30; i++) {
      log.offer(outcome('allow'));
      log.offer(outcome('no_route'));
      log.offer(outcome('unavailable'));
    }
    await log.close();
    const count = (kind: string): number =>
      lines.filter((line) => line['outcome'] === kind && !('not_logged' in line)).length;
    expect([count('allow'), count('deny'), count('fault')]).toEqual([3, 30, 3]);
    expect(log.dropped).toEqual({ allow: 0, deny: 0, fault: 27 });
  });

  it('has no line for an allow when the share of allows is 0, and one for each when it is 1', async () => {
    for (const [allowOneIn, expected] of [
      [0, 0],
      [1, 20],
    ] as const) {
      const { log, lines } = logOf({ allowOneIn });
      for (let i = 0; i < 20; i++) log.offer(outcome('allow'));
      await log.close();
      expect([allowOneIn, lines.length]).toEqual([allowOneIn, expected]);
    }
  });

  it('keeps every denial during a flood of faults and of allows', async () => {
    const { log, lines } = logOf({ allowOneIn: 1, maxHeld: 1600 });
    const error = new Fault('the store is down');
    for (let i = 0; i < 5000; i++) {
      log.offer(outcome('unavailable', { error }));
      log.offer(outcome('allow'));
    }
    for (let i = 0; i < 8; i++) log.offer(outcome('no_route', { requestId: `req_${i}` }));
    await vi.advanceTimersByTimeAsync(100);
    const denied = lines.filter((line) => line['outcome'] === 'deny').map((line) => line['request_id']);
    expect(denied).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'].map((n) => `req_${n}`));
    const allowed = lines.filter((line) => line['outcome'] === 'allow').length;
    expect(allowed).toBeGreaterThan(0);
    expect(log.dropped).toMatchObject({ allow: 5000 - allowed, deny: 0 });
  });

  it('has lines for the first faults of each kind in a second, and one line with the number of the others', async () => {
    const { log, lines } = logOf({ faultsPerSecond: 2 });
    const [down, slow] = [new Fault('the store is down'), new Fault('a look-up took too long')];
    for (let i = 0; i < 100; i++) log.offer(outcome('unavailable', { error: down, requestId: `req_${i}` }));
    log.offer(outcome('unavailable', { error: slow, requestId: 'req_slow' }));
    await vi.advanceTimersByTimeAsync(500);
    expect(lines.map((line) => line['request_id'])).toEqual(['req_0', 'req_1', 'req_slow']);
    time.monotonicMs = 1000;
    await vi.advanceTimersByTimeAsync(200);
    expect(lines.slice(3)).toMatchObject([
      { outcome: 'fault', code: 'unavailable', not_logged: 98, err: { message: 'the store is down' } },
    ]);
    log.offer(outcome('unavailable', { error: down, requestId: 'req_next' }));
    await vi.advanceTimersByTimeAsync(1000);
    expect(lines.slice(4).map((line) => line['request_id'])).toEqual(['req_next']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('reports the number of counted faults when the process ends', async () => {
    const { log, lines } = logOf({ faultsPerSecond: 1 });
    for (let i = 0; i < 7; i++) log.offer(outcome('unavailable'));
    await log.close();
    expect(lines.at(-1)).toMatchObject({ outcome: 'fault', code: 'unavailable', not_logged: 6 });
  });

  it('is bounded in kinds of faults: for any messages, each fault is a line or counted in a line', async () => {
    const { log, lines } = logOf({ faultsPerSecond: 1 });
    for (let i = 0; i < 1000; i++) log.offer(outcome('unavailable', { error: new Error(`no ${i}`) }));
    await log.close();
    const counted = lines.map((line) => line['not_logged']).filter((count) => typeof count === 'number');
    expect(lines.length).toBeLessThanOrEqual(18);
    expect(lines.length - counted.length + counted.reduce((sum, count) => sum + count, 0)).toBe(1000);
  });

  it('is bounded while its sink is slow: a line that finds no room is dropped and counted, and those before it are delivered', async () => {
    const { sink, batches } = slowSink();
    const { log } = logOf({ sink, maxHeld: 2000 });
    for (let i = 0; i < 5; i++) log.offer(outcome('no_route'));
    await vi.advanceTimersByTimeAsync(100);
    for (let i = 0; i < 1000; i++) log.offer(outcome('no_route'));
    await vi.advanceTimersByTimeAsync(5000);
    expect(batches.map(({ lines }) => lines.length)).toEqual([5]);
    batches[0]?.end.resolve();
    await vi.advanceTimersByTimeAsync(100);
    const [first = 0, second = 0] = batches.map(({ lines }) => lines.length);
    expect(log.dropped.deny).toBe(1005 - first - second);
    expect(batches.flatMap(({ lines }) => lines).join('').length).toBeLessThan(2300);
    batches[1]?.end.resolve();
    await vi.advanceTimersByTimeAsync(0);
    log.offer(outcome('no_route'));
    await vi.advanceTimersByTimeAsync(100);
    expect(batches[2]?.lines).toHaveLength(1);
  });

  it('is bounded while its sink takes nothing, also in lines with the number of other faults', async () => {
    const { sink, batches } = slowSink();
    const { log } = logOf({ sink, maxHeld: 2000 });
    const seconds = 60;
    for (let second = 0; second < seconds; second++) {
      time.monotonicMs = second * 1000;
      for (let i = 0; i < 20; i++) log.offer(outcome('unavailable', { error: new Fault('no database') }));
      await vi.advanceTimersByTimeAsync(1000);
    }
    for (let i = 0; i < seconds; i++) {
      batches[i]?.end.resolve();
      await vi.advanceTimersByTimeAsync(100);
    }
    const lines = batches.flatMap((batch) => batch.lines);
    const longest = Math.max(...lines.map(({ length }) => length));
    expect(lines.join('').length).toBeLessThan(2000 + 2 * longest);
    expect(log.dropped.fault).toBeGreaterThanOrEqual(20 * seconds - lines.length);
  });

  it('counts the lines of a batch that its sink loses, reports the loss once, and continues', async () => {
    const { sink, batches } = slowSink();
    const losses: unknown[] = [];
    const { log } = logOf({ sink, allowOneIn: 1, onLost: (error) => losses.push(error) });
    const full = new Error('the disk is full');
    for (let batch = 0; batch < 3; batch++) {
      for (const code of ['no_route', 'no_route', 'allow', 'unavailable'] as const) log.offer(outcome(code));
      await vi.advanceTimersByTimeAsync(100);
      if (batch < 2) batches[batch]?.end.reject(full);
      else batches[batch]?.end.resolve();
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(log.dropped).toEqual({ allow: 2, deny: 4, fault: 2 });
    expect(losses).toEqual([full]);
    expect(batches[2]?.lines).toHaveLength(4);
  });

  it('delivers batches of at most 256 KiB, one at a time and in order, for any characters in the lines', async () => {
    const { sink, batches } = slowSink();
    const { log } = logOf({ sink });
    const count = 3000;
    for (let i = 0; i < count; i++) {
      const decision = {
        kind: 'deny',
        code: 'no_route',
        detail: ['a', 'é', '漢', '🔑'][i % 4]?.repeat(i % 120) ?? '',
      } as const;
      log.offer(outcome('no_route', { requestId: `req_${i}`, decision }));
    }
    const seen: string[] = [];
    for (let batch = 0; seen.length < count; batch++) {
      await vi.advanceTimersByTimeAsync(100);
      expect(batches).toHaveLength(batch + 1);
      const { lines = [], end } = batches[batch] ?? {};
      expect(Buffer.byteLength(lines.join(''))).toBeLessThanOrEqual(262_144);
      seen.push(...lines.map((line) => String(JSON.parse(line).request_id)));
      end?.resolve();
    }
    expect(batches.length).toBeGreaterThan(2);
    expect(seen).toEqual(Array.from({ length: count }, (_, i) => `req_${i}`));
  });

  it('delivers a line that is longer than a batch', async () => {
    const { sink, batches } = slowSink();
    const long = 'x'.repeat(300_000);
    const { log } = logOf({
      sink: { ...sink, render: (line) => `${line.code === 'allow' ? long : 'short'}\n` },
      allowOneIn: 1,
    });
    for (const code of ['no_route', 'allow', 'no_route'] as const) log.offer(outcome(code));
    for (let batch = 0; batch < 3; batch++) {
      await vi.advanceTimersByTimeAsync(100);
      batches[batch]?.end.resolve();
      await vi.advanceTimersByTimeAsync(0);
    }
    expect(batches.map(({ lines }) => lines.join('').length)).toEqual([6, long.length + 7]);
  });

  it('waits no longer than two seconds for its sink when the process ends', async () => {
    const { sink, batches } = slowSink();
    const { log } = logOf({ sink });
    log.offer(outcome('no_route'));
    const closed = log.close();
    await vi.advanceTimersByTimeAsync(2000);
    await closed;
    expect(batches).toHaveLength(1);
  });

  it('says which principal was denied what and why, and cuts each text to a bound', async () => {
    const { log, lines } = logOf();
    const [route] = BUILTIN_ROUTES;
    const decision = { kind: 'deny', code: 'invalid_credential', detail: 'x'.repeat(1000), reason: 'revoked' } as const;
    log.offer(
      outcome('invalid_credential', {
        decision: route === undefined ? decision : { ...decision, route },
        input: { ...INPUT, path: `/v1/${'z'.repeat(1000)}?secret=1` },
        clientRequestId: 'y'.repeat(1000),
      }),
    );
    await log.close();
    expect(lines[0]).toMatchObject({
      code: 'invalid_credential',
      reason: 'revoked',
      route: `${route?.method} ${route?.template}`,
      method: 'POST',
      client_ip: '203.0.113.7',
      asked_tenant: 'acme',
    });
    for (const member of ['detail', 'client_request_id', 'path']) expect(String(lines[0]?.[member])).toHaveLength(256);
  });

  it('has no secret, wherever the request carries one', async () => {
    const key = `psk_${'a1B2'.repeat(10)}`;
    const token = `eyJhbGciOiJFUzI1NiJ9.${'eyJzdWIi'.repeat(20)}.c2ln`;
    const { log, lines } = logOf();
    log.offer(
      outcome('no_route', {
        input: {
          ...INPUT,
          authorization: `Bearer ${key}`,
          apiKey: key,
          tenant: key,
          // The key begins before the bound of the text and ends behind it.
          path: `/v1/${'p'.repeat(240)}/${key}/${token}?api_key=${key}`,
          body: Buffer.from(JSON.stringify({ model: key })),
        },
        clientRequestId: `https://user:${'pass'.repeat(8)}@host/${token}`,
        decision: { kind: 'deny', code: 'no_route', detail: `nothing is at ${key}` },
        error: new Error(`with ${key}`, { cause: new Error(`and ${token}`) }),
      }),
    );
    await log.close();
    const text = JSON.stringify(lines);
    for (const part of [key.slice(4, 12), token.slice(0, 40), 'passpass', 'eyJzdWIi'])
      expect([part, text.includes(part)]).toEqual([part, false]);
    expect(lines).toHaveLength(1);
  });
});

describe('a line of the decision log', () => {
  const absent = { nil: undefined };
  const id = fc.option(fc.stringMatching(/^[a-z]{3}_[0-9a-z]{26}$/), absent);
  const name = fc.option(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/), absent);
  const anything = fc.option(fc.string({ unit: anyCharacter, maxLength: 40 }), absent);

  it('equals JSON.stringify of its members, for any texts of a request', () => {
    const lines = fc.record({
      outcome: fc.constantFrom('allow', 'deny', 'fault'),
      code: fc.constantFrom('allow', 'no_route', 'unavailable'),
      request_id: id,
      client_request_id: fc.oneof(anything, fc.uuid()),
      trace_id: fc.option(fc.stringMatching(/^[0-9a-f]{32}$/), absent),
      method: anything,
      path: anything,
      route: anything,
      client_ip: anything,
      subject: id,
      subject_type: fc.option(fc.constantFrom('user', 'api_key'), absent),
      tenant: name,
      asked_tenant: anything,
      permission: anything,
      resources: fc.option(fc.array(fc.string({ unit: anyCharacter }), { maxLength: 4 }), absent),
      model: anything,
      policy: name,
      budget: fc.option(
        fc.uint8Array({ minLength: 10, maxLength: 10 }).map((bytes) => makeId('bud', 0, bytes)),
        absent,
      ),
      would_deny: name,
      would_allow: name,
      reason: fc.option(fc.constantFrom('revoked', 'malformed'), absent),
      detail: anything,
      setting: anything,
      took_ms: fc.option(
        fc.oneof(fc.nat({ max: 12_000 }), fc.nat()).map((microseconds) => microseconds / 1000),
        absent,
      ),
      shadow: fc.constantFrom(true as const, undefined),
      not_logged: fc.option(fc.nat(), absent),
      err: fc.option(
        fc.record({ type: fc.string(), message: fc.string({ unit: anyCharacter }), stack: anything }),
        absent,
      ),
    });
    fc.assert(
      fc.property(
        lines,
        fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-01-01') }),
        (line, date) => {
          const written = jsonLine(line, date.getTime());
          expect(written).toBe(
            `${JSON.stringify({ level: 'info', time: date.toISOString(), part: 'decisions', ...line, msg: 'decision' })}\n`,
          );
        },
      ),
    );
  });
});

describe('metrics', () => {
  it('count every check by outcome and code, by route, and by how long it took', async () => {
    const metrics = new Metrics();
    const observer = checkObserver(
      metrics.checks,
      new DecisionTally({ now: () => 0 }),
      logOf().log,
      new RecentDecisions(),
    );
    const [route] = BUILTIN_ROUTES;
    const denied = { kind: 'deny', code: 'insufficient_permission', detail: 'x' } as const;
    const wouldAllow = must(parsePolicyName('trial'), 'trial');
    for (const tookMs of [0.02, 0.02, 0.7, 1e6, 0]) {
      const decision = route === undefined ? denied : { ...denied, route, wouldAllow };
      observer.observe(outcome('insufficient_permission', { decision, tookMs }));
    }
    observer.observe(outcome('public'));
    const budgetId = makeId('bud', 0, new Uint8Array(10));
    observer.observe(outcome('insufficient_quota', { decision: { ...denied, budgetId } }));
    const modelLimit = { level: 'key', models: ['*'], dimension: 'parallel' } as const;
    for (const models of [['a'], ['b']]) {
      const decision = { ...denied, modelLimit: { ...modelLimit, models } };
      observer.observe(outcome('rate_limit_exceeded', { decision }));
    }
    const text = await metrics.exposition();
    expect(text).toContain('postern_policy_reports_total{effect="allow"} 5');
    expect(text).toContain('postern_policy_reports_total{effect="deny"} 0');
    expect(text).toContain('postern_budget_refused_checks_total 1');
    expect(text).toContain('postern_model_limit_refused_checks_total{level="key",dimension="parallel"} 2');
    expect(text).toContain('postern_checks_total{outcome="deny",code="insufficient_permission"} 5');
    expect(text).toContain('postern_checks_total{outcome="allow",code="public"} 1');
    expect(text).toContain(
      `postern_route_checks_total{method="${route?.method}",route="${route?.template}",outcome="deny"} 5`,
    );
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="0.000025"\} 7\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="0.001"\} 8\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="2.5"\} 8\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="\+Inf"\} 9\n/);
    expect(text).toContain('postern_check_duration_seconds_count 9');
  });

  it('stay bounded however many routes there are', () => {
    const metrics = new Metrics();
    const [route] = BUILTIN_ROUTES;
    for (let i = 0; i < 5000; i++) {
      metrics.checks.record('allow', route && { ...route, template: `/v1/${i}` }, 1);
    }
    expect(metrics.checks.byRoute()).toHaveLength(2000);
    expect(metrics.checks.byCode()).toEqual([['allow', 'allow', 5000]]);
  });

  it('are read at each scrape', async () => {
    const metrics = new Metrics();
    let size = 1;
    metrics.show('postern_feed_age_seconds', () => Number.POSITIVE_INFINITY);
    metrics.show('postern_cache_entries', () => [['keys', 'present', size]]);
    metrics.show('postern_decision_counts_dropped_total', () => size);
    loginReports(metrics).login('throttled');
    await metrics.exposition();
    size = 5;
    const text = await metrics.exposition();
    expect(text).toContain('postern_feed_age_seconds +Inf');
    expect(text).toContain('postern_cache_entries{cache="keys",kind="present"} 5');
    expect(text).toContain('postern_decision_counts_dropped_total 5');
    expect(text).toContain('postern_logins_total{outcome="throttled"} 1');
    expect(text).toContain('process_cpu_seconds_total');
  });
});
