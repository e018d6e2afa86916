/** Two workers that count, and a first process that prints what they counted together. Run as a program of its own. */

import cluster from 'node:cluster';
import { once } from 'node:events';
import { createTelemetry } from '../../../src/telemetry/telemetry.ts';

if (cluster.isPrimary) {
  const metrics = createTelemetry({ level: 'silent' }).metrics.cluster();
  const workers = [cluster.fork(), cluster.fork()];
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  process.stdout.write(await metrics());
  for (const worker of workers) {
    worker.disconnect();
  }
} else {
  const telemetry = createTelemetry({ level: 'silent' });
  const age = Number(cluster.worker?.id) * 1000;
  telemetry.watch({
    live: () => ({
      maps: {},
      fillsInFlight: 0,
      verificationsInFlight: 0,
      waiting: 1,
      loads: {},
      rejectedResolutions: { known: 0, unseen: 0 },
      rulesBytes: 0,
    }),
    feedAgeMs: () => age,
    now: Date.now,
  });
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
  telemetry.metrics.answerCluster();
  process.send?.('ready');
}
