/**
 * Servers behind Envoy are replaced one after another while clients go on: the production configuration, with faster
 * health checks, and with patience for a busy machine.
 */

import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { restartRolling } from '../../scripts/lib/rolling/rolling.ts';
import { freshDatabase } from '../support/database.ts';
import { envoyBinary } from '../support/envoy.ts';
import { rounds } from '../support/properties.ts';

vi.setConfig({ testTimeout: 300_000 });

/** Requests of each kind before, between and after the four steps. */
const BETWEEN = 10 * rounds(4);
/** Between two requests of one client. More of them would only slow the restarts, on a machine that other tests use. */
const PAUSE_MS = 120;
const ROOT = join(import.meta.dirname, '../..');

it('a rolling restart of two servers behind Envoy fails no request of its clients', async () => {
  const database = await freshDatabase();
  try {
    const { failures, answered, exits, checksAfter } = await restartRolling({
      envoy: await envoyBinary(),
      databaseUrl: database.url,
      root: ROOT,
      steps: [
        { server: 0, root: ROOT },
        { server: 1, root: ROOT },
      ],
      healthCheckInterval: '0.2s',
      checkTimeout: '3s',
      drainNotice: '1s',
      between: BETWEEN,
      pauseMs: PAUSE_MS,
    });
    expect(failures).toEqual([]);
    expect(exits).toEqual([0, 0, 0, 0]);
    for (const [kind, count] of answered) expect(count, kind).toBeGreaterThanOrEqual(5 * BETWEEN);
    for (const counts of checksAfter) for (const count of counts) expect(count).toBeGreaterThan(0);
  } finally {
    await database.close();
  }
});
