/** The catalog of metrics lists exactly the metrics that a process shows. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { watchCalls } from '../../src/telemetry/grpc-metrics.ts';
import { issuerKeyReports } from '../../src/telemetry/issuer-metrics.ts';
import { newCounts } from '../../src/telemetry/metering-counts.ts';
import { watchAccessLog, watchMetering } from '../../src/telemetry/metering-metrics.ts';
import { METRICS } from '../../src/telemetry/metric-catalog.ts';
import { certificateEnd, sealingReports, watchQuotas, watchSigningKey } from '../../src/telemetry/state-metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { webhookReports } from '../../src/telemetry/webhook-metrics.ts';

test('a process shows every metric of the catalog, with its type and its help, and no other', async () => {
  const telemetry = createTelemetry({ level: 'silent', stream: { write: () => undefined } });
  telemetry.watch({
    live: () => ({
      maps: {},
      fillsInFlight: 0,
      verificationsInFlight: 0,
      waiting: 0,
      loads: {},
      rejectedResolutions: { known: 0, unseen: 0 },
      rulesBytes: 0,
    }),
    feedAgeMs: () => 0,
    now: Date.now,
  });
  const { metrics } = telemetry;
  watchMetering(metrics, () => ({
    ...newCounts(),
    settlementsWaiting: 0,
    changesWaiting: 0,
    unreported: 0,
    rates: { subjects: 0, held: 0, waiting: 0, isOffline: false },
    budgets: { budgets: 0, held: 0, reserved: 0, outstanding: 0, waiting: 0, isOffline: false },
  }));
  watchAccessLog(metrics, () => ({ streams: 0, entries: 0, running: 0, broken: 0, unreadable: 0, failed: 0 }));
  metrics.show('postern_other_gate_denials_dropped_total', () => 0);
  metrics.show('postern_processes_ready', () => []);
  metrics.show('postern_process_restarts_total', () => []);
  metrics.show('postern_local_apply_timeouts_total', () => 0);
  const calls = { open: 0, unfinished: 0, unfinishedBytes: 0, refused: 0, expired: 0, cancelled: 0 };
  watchCalls(metrics, () => ({ ...calls, refusedStreams: 0, endedConnections: 0, faults: 0 }));
  watchSigningKey(metrics, () => 0);
  watchQuotas(metrics, false, () => []);
  sealingReports(metrics);
  issuerKeyReports(metrics);
  webhookReports(metrics);
  certificateEnd(metrics);
  const text = await metrics.exposition();
  const shown = [...text.matchAll(/^# HELP (postern_\w+) (.*)\n# TYPE \w+ (\w+)$/gm)];
  const expected = Object.entries(METRICS).map(([name, { help, type }]) => [name, { help, type }]);
  expect(Object.fromEntries(shown.map(([, name, help, type]) => [name, { help, type }]))).toEqual(
    Object.fromEntries(expected),
  );
});

test('docs/metrics.md names no metric that is not in the catalog', () => {
  const guide = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const named = [...guide.matchAll(/`(postern_\w+?)(?:_bucket|_sum|_count)?(?:\{[\w,]+\})?`/g)].map(([, name]) => name);
  expect(new Set(named)).toEqual(new Set(Object.keys(METRICS)));
});
