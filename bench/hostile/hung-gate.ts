/**
 * Checks while a gate worker of `postern serve` is killed (SIGKILL) or hangs (SIGSTOP), with one worker and with two,
 * at 200 requests a second through Envoy. Ends with exit code 1 if a goal is missed.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printTable, type Row, scratch, writeResult } from '../stack.ts';
import { startProduction } from './envoy.ts';
import { type InnocentRequest, makeInnocents } from './innocents.ts';
import type { Report } from './innocents-process.ts';
import { VERDICTS } from './judge.ts';
import { PER_SECOND, startLoad } from './load.ts';
import { startPostern } from './postern.ts';
import { findByEnvironment, isAlive } from './processes.ts';
import { openStand, type Stand } from './stand.ts';

/** How the supervisor marks its gates, in their environment. */
const GATE = 'POSTERN_PROCESS=gate';
const WARM_MS = 3000;
const WATCHED_MS = 8000;
const POLL_MS = 20;
/** Without a check for longer, with one worker and with more. */
const GOAL_S = { one: 3, more: 1 };
const READINESS_GOAL_S = 2;

interface Case {
  readonly workers: number;
  readonly signal: 'SIGKILL' | 'SIGSTOP';
}

interface Result extends Case {
  readonly requests: number;
  readonly failed: number;
  /** From the signal until the last request that failed was sent. */
  readonly failedForS: number;
  /** From the signal; undefined if the server was ready all the time. */
  readonly unreadyAfterS: number | undefined;
}

const CASES: readonly Case[] = [1, 2].flatMap((workers) =>
  (['SIGKILL', 'SIGSTOP'] as const).map((signal) => ({ workers, signal })),
);

export async function hungGate(): Promise<void> {
  await using stand = await openStand(join(scratch(), 'stand'));
  const mix = await makeInnocents(stand.administrator, stand.http);
  const results: Result[] = [];
  for (const each of CASES) results.push(await disturb(stand, mix, each));
  printTable(`${PER_SECOND} requests a second while one gate worker is killed or stopped`, results.map(rowOf));
  const broken = results.flatMap(brokenGoals);
  for (const sentence of broken) console.error(`NOT HELD: ${sentence}`);
  if (broken.length > 0) process.exitCode = 1;
  writeResult('hung-gate', { results, broken });
}

async function disturb(stand: Stand, mix: readonly InnocentRequest[], { workers, signal }: Case): Promise<Result> {
  await using stack = new AsyncDisposableStack();
  const folder = join(stand.folder, `${workers}-${signal}`);
  mkdirSync(folder);
  const { certificates, databaseUrl } = stand;
  const postern = await startPostern({ folder, databaseUrl, certificates, workers });
  stack.defer(() => postern.stop());
  const upstream = new URL(stand.ledger).host;
  const envoy = await startProduction(certificates, { grpc: postern.grpc, http: postern.http, upstream });
  stack.defer(() => envoy.stop());
  const load = stack.use(startLoad({ ...stand.edge, port: envoy.port }, mix));
  await sleep(WARM_MS);
  const gate = findByEnvironment(postern.pid, GATE);
  if (gate === undefined) throw new Error(`postern serve has no gate process (${GATE} in its environment)`);
  const fromMs = Date.now();
  process.kill(gate, signal);
  let unreadyMs: number | undefined;
  while (Date.now() < fromMs + WATCHED_MS) {
    if (unreadyMs === undefined && !(await postern.isReady())) unreadyMs = Date.now() - fromMs;
    await sleep(POLL_MS);
  }
  if (isAlive(gate)) throw new Error('the gate was not replaced');
  const unreadyAfterS = unreadyMs === undefined ? undefined : unreadyMs / 1000;
  return { workers, signal, ...failures(await load.stop(), fromMs), unreadyAfterS };
}

function failures({ sent }: Report, fromMs: number): Pick<Result, 'requests' | 'failed' | 'failedForS'> {
  const after = sent.filter(([dueMs]) => dueMs >= fromMs);
  const failed = after.filter(([, , verdict]) => VERDICTS[verdict] !== 'right').map(([dueMs]) => dueMs);
  return { requests: after.length, failed: failed.length, failedForS: (Math.max(fromMs, ...failed) - fromMs) / 1000 };
}

function brokenGoals({ workers, signal, failedForS, unreadyAfterS }: Result): readonly string[] {
  const name = `${workers} worker${workers === 1 ? '' : 's'}, ${signal}`;
  const goal = workers === 1 ? GOAL_S.one : GOAL_S.more;
  return [
    ...(failedForS > goal ? [`${name}: checks failed for ${failedForS.toFixed(1)} s, more than ${goal} s`] : []),
    ...(workers === 1 && (unreadyAfterS ?? Number.POSITIVE_INFINITY) > READINESS_GOAL_S
      ? [`${name}: /readyz did not follow within ${READINESS_GOAL_S} s`]
      : []),
  ];
}

function rowOf({ workers, signal, requests, failed, failedForS, unreadyAfterS }: Result): Row {
  return {
    workers,
    signal,
    requests,
    failed,
    'failed for s': failedForS.toFixed(1),
    'not ready after s': unreadyAfterS === undefined ? '' : unreadyAfterS.toFixed(1),
  };
}
