import { describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { watchAccessLog, watchMetering } from '../../src/telemetry/metering-metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';

function started() {
  let text = '';
  const telemetry = createTelemetry({ level: 'info', stream: { write: (line) => (text += line) } });
  return { telemetry, text: () => text };
}

const MAP = { size: 1, absent: 2, tombstones: 3, hits: 4, misses: 5, rejectedFills: 6 };

describe('telemetry of a server', () => {
  it('shows its caches, its feed and its checks in one exposition that Prometheus can read', async () => {
    const { telemetry } = started();
    telemetry.watch({
      live: () => ({
        maps: { keys: MAP },
        fillsInFlight: 1,
        verificationsInFlight: 0,
        waiting: 2,
        loads: { rules: { inFlight: 1, waiting: 2, rejected: 3, abandoned: 4 } },
        rejectedResolutions: { known: 5, unseen: 6 },
        rulesBytes: 7,
      }),
      feedAgeMs: () => 1500,
      now: Date.now,
    });
    telemetry.feedEvents.onPoll(0);
    telemetry.feedEvents.onPoll(30);
    telemetry.feedEvents.onFlush('epoch');
    telemetry.logins.login('failure');
    telemetry.observer.observe({
      code: 'allow',
      requestId: 'req_1',
      startedAtMs: 0,
      input: undefined,
      clientRequestId: undefined,
      decision: undefined,
      error: undefined,
      tookMs: 1,
    });
    const text = await telemetry.metrics.exposition();
    for (const line of [
      'postern_cache_entries{cache="keys",kind="tombstone"} 3',
      'postern_cache_lookups_total{cache="keys",result="miss"} 5',
      'postern_cache_refused_landings_total{cache="keys"} 6',
      'postern_cache_in_flight{kind="waiting"} 2',
      'postern_cache_loads{class="rules",state="waiting"} 2',
      'postern_cache_rejected_loads_total{class="rules",reason="no_longer_awaited"} 4',
      'postern_cache_rejected_resolutions_total{class="unseen"} 6',
      'postern_cache_rules_bytes 7',
      'postern_feed_age_seconds 1.5',
      'postern_feed_polls_total 2',
      'postern_feed_lag_seconds_count 1',
      'postern_feed_flushes_total 1',
      'postern_logins_total{outcome="failure"} 1',
      'postern_checks_total{outcome="allow",code="allow"} 1',
      'postern_check_duration_seconds_bucket{le="0.001"} 1',
      '# TYPE postern_check_duration_seconds histogram',
      'postern_check_duration_seconds_count 1',
      'postern_decision_log_dropped_total{outcome="deny"} 0',
      'postern_decision_log_dropped_total{outcome="fault"} 0',
    ]) {
      expect(text.split('\n')).toContain(line);
    }
    expect(text).not.toMatch(/^# .*_(bucket|sum|count) /m);
    for (const line of text.split('\n')) {
      expect(line).toMatch(
        /^$|^# (HELP|TYPE) [a-z0-9_]+ .+$|^[a-z0-9_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? (-?[0-9.e+-]+|[+-]Inf|NaN)$/i,
      );
    }
  });

  it('shows the limits, and reads their numbers once for each scrape', async () => {
    const { telemetry } = started();
    let gathered = 0;
    const zeros = newCounts();
    watchMetering(telemetry.metrics, () => {
      gathered++;
      return {
        ...zeros,
        rateRefused: 2,
        tokensReserved: 300,
        duplicates: 4,
        estimated: 1,
        unknownCharges: 5,
        settlementLagMs: 250,
        settlementsWaiting: 7,
        changesWaiting: 0,
        unreported: 12,
        rates: { subjects: 1, held: 9, waiting: 0, isOffline: false },
        budgets: { budgets: 1, held: 50, reserved: 20, outstanding: 3, waiting: 0, isOffline: true },
      };
    });
    const accessLog = { streams: 2, entries: 10, running: 3, broken: 1, unreadable: 4, failed: 0 };
    watchAccessLog(telemetry.metrics, () => accessLog);
    const lines = (await telemetry.metrics.exposition()).split('\n');
    expect(gathered).toBe(1);
    for (const line of [
      'postern_rate_limited_checks_total{outcome="refused"} 2',
      'postern_quota_tokens_total{outcome="reserved"} 300',
      'postern_settlements_total{outcome="duplicate"} 4',
      'postern_settlements_estimated_total 1',
      'postern_settlements_unknown_charges_total 5',
      'postern_settlement_lag_seconds 0.25',
      'postern_metering_waiting{kind="settlement"} 7',
      'postern_metering_held{kind="reservations"} 3',
      'postern_metering_alone 1',
      'postern_metering_unreported 12',
      'postern_access_log_streams 2',
      'postern_access_log_errors_total{kind="message"} 1',
      'postern_access_log_errors_total{kind="unreadable"} 4',
      'postern_access_log_running_total 3',
    ]) {
      expect(lines).toContain(line);
    }
    await new Promise(setImmediate);
    await telemetry.metrics.exposition();
    expect(gathered).toBe(2);
  });

  it('logs a fault of a check with its cause, at the latest when the process ends', async () => {
    const { telemetry, text } = started();
    telemetry.observer.observe({
      code: 'unavailable',
      requestId: 'req_1',
      startedAtMs: 0,
      input: undefined,
      clientRequestId: 'abc',
      decision: undefined,
      error: new Fault('the store is down'),
      tookMs: 0,
    });
    expect(text()).toBe('');
    await telemetry.flush();
    expect(JSON.parse(text())).toMatchObject({
      part: 'decisions',
      outcome: 'fault',
      request_id: 'req_1',
      client_request_id: 'abc',
      err: { message: 'the store is down' },
    });
  });
});
