/**
 * Servers replaced one after another behind Envoy, with production.yaml as it is and the drain that the guide
 * recommends.
 */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ENVOY_VERSION, findEnvoy } from '../../src/cli/envoy.ts';
import { startEmbedded } from '../../src/store/embedded/embedded.ts';
import { freeAddress } from '../../test/support/ports.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { runTests } from '../lib/deploy-tests.ts';
import { findOlderVersion, type OlderVersion } from '../lib/rolling/older-version.ts';
import { type RollingOutcome, restartRolling, type Step } from '../lib/rolling/rolling.ts';
import { ServerEnded, startServer } from '../lib/rolling/server.ts';

const ROOT = join(import.meta.dirname, '../..');
const ENVOY = { name: 'envoy', version: ENVOY_VERSION };
/** As docs/upgrades.md advises for the configurations in envoy/. */
const DRAIN_NOTICE = '5s';
const BETWEEN = 300;

/** A new database, which goes with `cleanUp`. */
async function database(
  cleanUp: AsyncDisposableStack,
): Promise<{ folder: string; url: string; env: NodeJS.ProcessEnv }> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-rolling-data-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  // PostgreSQL runs as another user if this is root, and has to get to its data.
  await chmod(folder, 0o711);
  const { url, stop } = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  cleanUp.defer(stop);
  return {
    folder,
    url,
    env: { POSTERN_DATABASE_URL: url, POSTERN_SECRET_KEY: 'a secret key for servers that come and go' },
  };
}

/** Runs on a database of its own. */
async function restarted(root: string, steps: readonly Step[], note: string): Promise<CheckOutcome> {
  const envoy = await findEnvoy(process.env);
  if (envoy.kind === 'missing') return { kind: 'unavailable', says: envoy.message };
  await using cleanUp = new AsyncDisposableStack();
  const { url } = await database(cleanUp);
  return judged(
    await restartRolling({
      envoy: envoy.path,
      databaseUrl: url,
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
  const { folder, env } = await database(cleanUp);
  const place = { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
  const server = await startServer(ROOT, folder, place, { ...env, POSTERN_DRAIN_NOTICE: `${LONG_NOTICE_MS / 1000}s` });
  cleanUp.defer(() => server.kill());
  const stopped = server.stop();
  await sleep(STILL_THERE_MS);
  const answer = await fetch(`http://${place.http}/.well-known/jwks.json`).catch(() => undefined);
  const code = await stopped;
  if (answer?.status !== 200) return { kind: 'failed', says: `no answer ${STILL_THERE_MS} ms after SIGTERM` };
  return code === 0
    ? { kind: 'ok', says: 'it answered, and exited 0' }
    : { kind: 'failed', says: `it ended with ${code}` };
}

/** An older server that is started, rather than one that runs, after a newer one has migrated. */
async function startsOnNewerSchema(older: Extract<OlderVersion, { kind: 'found' }>): Promise<CheckOutcome> {
  await using cleanUp = new AsyncDisposableStack();
  const { folder, env } = await database(cleanUp);
  const place = { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
  const newer = await startServer(ROOT, folder, place, env);
  await newer.stop();
  const names = older.lacks.join(', ');
  try {
    const server = await startServer(older.root, folder, place, env);
    await server.stop();
    return { kind: 'ok', says: `it starts: ${names} are additive` };
  } catch (error) {
    if (!(error instanceof ServerEnded)) throw error;
    const refused =
      error.outcome === 1 &&
      error.message.includes('The database is newer than this program') &&
      error.message.includes(names);
    return refused
      ? { kind: 'ok', says: `it refuses to start, exits 1 and names ${names}` }
      : { kind: 'failed', says: error.message };
  }
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

async function withOlder(
  check: (older: Extract<OlderVersion, { kind: 'found' }>) => Promise<CheckOutcome>,
): Promise<CheckOutcome> {
  const older = await findOlderVersion();
  return older.kind === 'absent' ? { kind: 'unavailable', says: older.reason } : check(older);
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
    name: 'a rollout of the mode sidecar, with the times of the chart, cuts no stream of 45 s',
    tool: ENVOY,
    run: () => runTests('test/helm/sidecar-rollout.test.ts', { POSTERN_TEST_ANSWER_SECONDS: '45' }),
  },
  {
    name: 'a rolling upgrade from a server with an older schema fails no request, also while the old server runs beside the new one',
    tool: ENVOY,
    // A shallow clone or a package from npm has no history.
    optional: true,
    run: () =>
      withOlder((older) =>
        restarted(
          older.root,
          UPGRADE(ROOT),
          `, from ${older.commit.slice(0, 7)}, which lacks ${older.lacks.join(', ')}`,
        ),
      ),
  },
  {
    name: 'an older server that is started on the newer schema decides, or refuses with the names of the migrations that it does not know',
    optional: true,
    run: () => withOlder(startsOnNewerSchema),
  },
];
