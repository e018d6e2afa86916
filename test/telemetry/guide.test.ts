/** docs/operations.md says which metrics there are. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { newCounts } from '../../src/metering/counts.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';

test('the guide explains every metric, and no other', async () => {
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
  telemetry.watchMetering(
    () => ({
      ...newCounts(),
      settlementsWaiting: 0,
      changesWaiting: 0,
      unreported: 0,
      rates: { subjects: 0, held: 0, waiting: 0, isOffline: false },
      budgets: { budgets: 0, held: 0, reserved: 0, outstanding: 0, waiting: 0, isOffline: false },
    }),
    () => ({ streams: 0, entries: 0, running: 0, broken: 0, unreadable: 0, failed: 0 }),
  );
  telemetry.watchProcesses(
    () => [],
    () => [],
  );
  telemetry.watchLocalGates(() => 0);
  const calls = { open: 0, unfinished: 0, unfinishedBytes: 0, refused: 0, expired: 0, cancelled: 0 };
  telemetry.watchCalls(() => ({ ...calls, refusedStreams: 0, endedConnections: 0, faults: 0 }));
  telemetry.watchSigningKey(() => 0);
  telemetry.watchQuotas(() => []);
  telemetry.sealing();
  telemetry.certificate();
  const shown = [...(await telemetry.metrics()).matchAll(/^# TYPE (postern_\w+)/gm)].map(([, name]) => name);
  const guide = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const told = [...guide.matchAll(/`(postern_\w+)(?:\{[\w,]+\})?`/g)].map(([, name]) => name);
  expect(new Set(told)).toEqual(new Set(shown));
});
