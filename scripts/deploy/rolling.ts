/** Servers replaced one after another behind Envoy, with production.yaml as it is and the drain that the guide recommends. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENVOY_VERSION, findEnvoy } from '../../src/cli/envoy.ts';
import { startEmbedded } from '../../src/store/embedded/embedded.ts';
import { freeAddress } from '../../test/support/ports.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { findOlderVersion } from '../lib/rolling/older-version.ts';
import { type RollingOutcome, restartRolling, type Step } from '../lib/rolling/rolling.ts';
import { startServer } from '../lib/rolling/server.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENVOY = { name: 'envoy', version: ENVOY_VERSION };
/** As docs/operations.md advises for the configurations in envoy/. */
const DRAIN_NOTICE = '5s';
const BETWEEN = 300;

/** Runs on a database of its own. */
async function restarted(root: string, steps: readonly Step[], note: string): Promise<CheckOutcome> {
  const envoy = await findEnvoy(process.env);
  if (envoy.kind === 'missing') return { kind: 'unavailable', says: envoy.message };
  await using cleanUp = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-rolling-data-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  // PostgreSQL runs as another user if this is root, and has to get to its data.
  await chmod(folder, 0o711);
  const database = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  cleanUp.defer(() => database.stop());
  return judged(
    await restartRolling({
      envoy: envoy.path,
      databaseUrl: database.url,
      root,
      steps,
      drainNotice: DRAIN_NOTICE,
      between: BETWEEN,
    }),
    note,
  );
}

/** Longer than a stuck process is given to end, and shorter than an orchestrator gives. */
const LONG_NOTICE_MS = 24_000;
const STILL_THERE_MS = 22_000;

async function drainsAsLongAsItSays(): Promise<CheckOutcome> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-drain-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  const database = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  cleanUp.defer(() => database.stop());
  const place = { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
  const server = await startServer(ROOT, folder, place, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: 'a secret key for a server that takes its time to end',
    POSTERN_DRAIN_NOTICE: `${LONG_NOTICE_MS / 1000}s`,
  });
  cleanUp.defer(() => server.kill());
  const stopped = server.stop();
  await sleep(STILL_THERE_MS);
  const answer = await fetch(`http://${place.http}/.well-known/jwks.json`).catch(() => undefined);
  const code = await stopped;
  if (answer?.status !== 200) return { kind: 'failed', says: `no answer ${STILL_THERE_MS} ms after SIGTERM` };
  return code === 0 ? { kind: 'ok', says: 'it answered, and exited 0' } : { kind: 'failed', says: `it ended with ${code}` };
}

function judged({ answered, failed, failures, exits, checksAfter, logs }: RollingOutcome, note: string): CheckOutcome {
  const all = [...failed.values()].reduce((sum, count) => sum + count, 0);
  if (all > 0) {
    const first = failures.map(({ name, atMs, says }) => `${name} after ${atMs} ms: ${says}`).join('\n');
    return { kind: 'failed', says: `${all} requests failed\n${first}\n${logs.slice(-4000)}` };
  }
  const wrong = exits.find((exit) => exit !== 0);
  if (wrong !== undefined) return { kind: 'failed', says: `a server ended with ${wrong}\n${logs.slice(-4000)}` };
  if (checksAfter.flat().some((count) => count === 0)) return { kind: 'failed', says: 'a server was asked nothing' };
  const counts = [...answered].map(([name, count]) => `${name} ${count}`).join(', ');
  return { kind: 'ok', says: `0 requests failed${note}; answered: ${counts}` };
}

const UPGRADE = (root: string): readonly Step[] => [
  { server: 0, root },
  { server: 1, root },
];

export const checks: readonly Check[] = [
  {
    name: 'a server that got SIGTERM answers until drain.notice is over, also if that is long',
    run: drainsAsLongAsItSays,
  },
  {
    name: 'a rolling restart of two servers behind Envoy fails no request',
    tool: ENVOY,
    run: () => restarted(ROOT, UPGRADE(ROOT), ''),
  },
  {
    name: 'a rolling upgrade from a server with an older schema fails no request, also while the old server runs beside the new one',
    tool: ENVOY,
    // A shallow clone or a package from npm has no history.
    optional: true,
    async run() {
      const older = await findOlderVersion();
      if (older.kind === 'absent') return { kind: 'unavailable', says: older.reason };
      return restarted(older.root, UPGRADE(ROOT), `, from ${older.commit.slice(0, 7)}, which lacks ${older.lacks.join(', ')}`);
    },
  },
];
