import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { BUILTIN_ROUTES } from '../../src/decision/routes.ts';
import { Fault } from '../../src/domain/errors.ts';
import { checkObserver } from '../../src/telemetry/check-observer.ts';
import type { CheckCode, CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { DecisionLog, type DecisionLogParts } from '../../src/telemetry/decision-log.ts';
import { DecisionTally } from '../../src/telemetry/decision-tally.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { RecentDecisions } from '../../src/telemetry/recent-decisions.ts';

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

const time = { monotonicMs: 0 };

function logOf(parts: Partial<DecisionLogParts> = {}) {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = new DecisionLog({ write: (line) => lines.push(line), monotonicMs: () => time.monotonicMs, ...parts });
  return { log, lines };
}

beforeEach(() => {
  time.monotonicMs = 0;
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the decision log', () => {
  it('writes nothing while a check is answered, and all of it soon after', () => {
    const { log, lines } = logOf();
    log.offer(outcome('unavailable', { error: new Fault('the store is down'), tookMs: 1.23456 }));
    expect(lines).toEqual([]);
    vi.advanceTimersByTime(100);
    expect(lines).toMatchObject([{ outcome: 'fault', code: 'unavailable', request_id: 'req_1', took_ms: 1.235 }]);
    expect(lines[0]?.['err']).toBeInstanceOf(Fault);
  });

  it('writes one allow in so many, and every denial and every fault up to their rates', () => {
    const { log, lines } = logOf({ allowOneIn: 10, denialsPerSecond: 5, faultsPerSecond: 3 });
    for (let i = 0; i < 30; i++) {
      log.offer(outcome('allow'));
      log.offer(outcome('no_route'));
      log.offer(outcome('unavailable'));
    }
    log.close();
    const count = (kind: string): number => lines.filter((line) => line['outcome'] === kind && !('not_logged' in line)).length;
    expect([count('allow'), count('deny'), count('fault')]).toEqual([3, 5, 3]);
    expect(log.dropped).toEqual({ allow: 0, deny: 25, fault: 27 });
    time.monotonicMs = 1000;
    log.offer(outcome('no_route'));
    log.close();
    expect(count('deny')).toBe(6);
  });

  it('keeps every denial during a flood of faults and of allows', () => {
    const { log, lines } = logOf({ allowOneIn: 1, capacity: 8 });
    const error = new Fault('the store is down');
    for (let i = 0; i < 5000; i++) {
      log.offer(outcome('unavailable', { error }));
      log.offer(outcome('allow'));
    }
    for (let i = 0; i < 8; i++) log.offer(outcome('no_route', { requestId: `req_${i}` }));
    vi.advanceTimersByTime(100);
    const denied = lines.filter((line) => line['outcome'] === 'deny').map((line) => line['request_id']);
    expect(denied).toEqual(['0', '1', '2', '3', '4', '5', '6', '7'].map((n) => `req_${n}`));
    expect(log.dropped).toEqual({ allow: 4992, deny: 0, fault: 4992 });
  });

  it('writes the first faults of each kind in a second, and one line with the number of the others', () => {
    const { log, lines } = logOf({ faultsPerSecond: 2 });
    const [down, slow] = [new Fault('the store is down'), new Fault('a look-up took too long')];
    for (let i = 0; i < 100; i++) log.offer(outcome('unavailable', { error: down, requestId: `req_${i}` }));
    log.offer(outcome('unavailable', { error: slow, requestId: 'req_slow' }));
    vi.advanceTimersByTime(500);
    expect(lines.map((line) => line['request_id'])).toEqual(['req_0', 'req_1', 'req_slow']);
    time.monotonicMs = 1000;
    vi.advanceTimersByTime(100);
    expect(lines.slice(3)).toEqual([{ outcome: 'fault', code: 'unavailable', not_logged: 98, err: down }]);
    log.offer(outcome('unavailable', { error: down, requestId: 'req_next' }));
    vi.advanceTimersByTime(1000);
    expect(lines.slice(4).map((line) => line['request_id'])).toEqual(['req_next']);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('tells the number of faults that were counted when the process ends', () => {
    const { log, lines } = logOf({ faultsPerSecond: 1 });
    for (let i = 0; i < 7; i++) log.offer(outcome('unavailable'));
    log.close();
    expect(lines.at(-1)).toEqual({ outcome: 'fault', code: 'unavailable', not_logged: 6, err: undefined });
  });

  it('is bounded in kinds of faults: whatever their messages say, each fault is a line or in the number of one', () => {
    const { log, lines } = logOf({ faultsPerSecond: 1 });
    for (let i = 0; i < 1000; i++) log.offer(outcome('unavailable', { error: new Error(`no ${i}`) }));
    log.close();
    const counted = lines.map((line) => line['not_logged']).filter((count) => typeof count === 'number');
    expect(lines.length).toBeLessThanOrEqual(18);
    expect(lines.length - counted.length + counted.reduce((sum, count) => sum + count, 0)).toBe(1000);
  });

  it('is bounded: an entry that finds the queue of its outcome full is dropped and counted, and a batch at a time is written', () => {
    const { log, lines } = logOf({ capacity: 8, batch: 3 });
    for (let i = 0; i < 20; i++) {
      log.offer(outcome('no_route', { requestId: `req_${i}` }));
    }
    expect(log.dropped).toEqual({ allow: 0, deny: 12, fault: 0 });
    vi.advanceTimersByTime(100);
    expect(lines).toHaveLength(3);
    log.offer(outcome('no_route', { requestId: 'req_20' }));
    vi.advanceTimersByTime(300);
    expect(lines.map((line) => line['request_id'])).toEqual(
      ['0', '1', '2', '3', '4', '5', '6', '7', '20'].map((n) => `req_${n}`),
    );
  });

  it('shares a batch among the outcomes', () => {
    const { log, lines } = logOf({ allowOneIn: 1, faultsPerSecond: 5, batch: 3 });
    for (const code of ['allow', 'unavailable', 'no_route'] as const) for (let i = 0; i < 5; i++) log.offer(outcome(code));
    vi.advanceTimersByTime(100);
    expect(lines.map((line) => line['outcome'])).toEqual(['deny', 'fault', 'allow']);
  });

  it('says who was denied what and why, cut to a bound', () => {
    const { log, lines } = logOf();
    const [route] = BUILTIN_ROUTES;
    const decision = { kind: 'deny', code: 'invalid_credential', detail: 'x'.repeat(1000), reason: 'revoked' } as const;
    log.offer(
      outcome('invalid_credential', {
        decision: route === undefined ? decision : { ...decision, route },
        startedAtMs: 0,
        input: undefined,
        clientRequestId: 'y'.repeat(1000),
      }),
    );
    log.close();
    expect(lines[0]).toMatchObject({
      code: 'invalid_credential',
      reason: 'revoked',
      route: `${route?.method} ${route?.template}`,
    });
    expect(String(lines[0]?.['detail'])).toHaveLength(256);
    expect(String(lines[0]?.['client_request_id'])).toHaveLength(256);
  });
});

describe('metrics', () => {
  it('count every check by outcome and code, by route, and by how long it took', async () => {
    const metrics = new Metrics();
    const observer = checkObserver(metrics.checks, new DecisionTally({ now: () => 0 }), logOf().log, new RecentDecisions());
    const [route] = BUILTIN_ROUTES;
    const denied = { kind: 'deny', code: 'insufficient_permission', detail: 'x' } as const;
    for (const tookMs of [0.02, 0.02, 0.7, 1e6, 0]) {
      const decision = route === undefined ? denied : { ...denied, route };
      observer.observe(outcome('insufficient_permission', { decision, tookMs }));
    }
    observer.observe(outcome('public'));
    const text = await metrics.exposition();
    expect(text).toContain('postern_checks_total{outcome="deny",code="insufficient_permission"} 5');
    expect(text).toContain('postern_checks_total{outcome="allow",code="public"} 1');
    expect(text).toContain(`postern_route_checks_total{method="${route?.method}",route="${route?.template}",outcome="deny"} 5`);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="0.000025"\} 4\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="0.001"\} 5\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="2.5"\} 5\n/);
    expect(text).toMatch(/postern_check_duration_seconds_bucket\{le="\+Inf"\} 6\n/);
    expect(text).toContain('postern_check_duration_seconds_count 6');
  });

  it('stay bounded however many routes there are', () => {
    const metrics = new Metrics();
    const [route] = BUILTIN_ROUTES;
    for (let i = 0; i < 5000; i++) {
      metrics.checks.record('allow', route && { ...route, template: `/v1/${i}` }, 1);
    }
    expect(metrics.checks.byRoute()).toHaveLength(2000);
    expect(metrics.checks.byCode()).toEqual([{ labels: { outcome: 'allow', code: 'allow' }, value: 5000 }]);
  });

  it('read what others count when they are asked, and can be read again', async () => {
    const metrics = new Metrics();
    let size = 1;
    metrics.gauge({ name: 'postern_feed_age_seconds', help: 'x' }, () => Number.POSITIVE_INFINITY);
    metrics.gauges({ name: 'postern_cache_entries', help: 'x' }, ['cache'], () => [{ labels: { cache: 'keys' }, value: size }]);
    metrics.counter({ name: 'postern_decision_log_dropped_total', help: 'x' }, () => size);
    metrics.login('throttled');
    await metrics.exposition();
    size = 5;
    const text = await metrics.exposition();
    expect(text).toContain('postern_feed_age_seconds +Inf');
    expect(text).toContain('postern_cache_entries{cache="keys"} 5');
    expect(text).toContain('postern_decision_log_dropped_total 5');
    expect(text).toContain('postern_logins_total{outcome="throttled"} 1');
    expect(text).toContain('process_cpu_seconds_total');
  });
});
