/**
 * Checks while the API process of `postern serve` is killed, stopped, or out of memory, beside 200 requests a second:
 * none may fail. Prints the memory of `postern serve --only gate` and of the whole, too. Ends with exit code 1 if a
 * goal is missed.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ownMemory, printTable, processTree, type Row, scratch, writeResult } from '../stack.ts';
import { startProduction } from './envoy.ts';
import { type InnocentRequest, makeInnocents } from './innocents.ts';
import { type Figures, figuresOf, PER_SECOND, startLoad, undecided } from './load.ts';
import { startPostern } from './postern.ts';
import { findByEnvironment, isAlive, residentMb } from './processes.ts';
import { openStand, type Stand } from './stand.ts';

/** How the supervisor marks its API process, in its environment. */
const API = 'POSTERN_PROCESS=api';
const WARM_MS = 6000;
const QUIET_MS = 10_000;
const STOPPED_MS = 20_000;
/** The minimum time for which a disturbance is watched. */
const WATCHED_MS = 10_000;
const RECOVERY_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
/**
 * The address space that a process keeps which is to run out of memory: less than it has, so that every further
 * allocation fails.
 */
const ADDRESS_SPACE_BYTES = 64 * 1_048_576;
const CALLS_AT_ONCE = 64;
const CALL_TIMEOUT_MS = 5000;
const CALL_BYTES = 500_000;

interface Disturbance {
  readonly name: string;
  disturb(stand: Stand, api: number): Promise<string>;
}

const DISTURBANCES: readonly Disturbance[] = [
  {
    name: 'the API process killed',
    async disturb(_stand, api) {
      process.kill(api, 'SIGKILL');
      return '';
    },
  },
  {
    name: `the API process stopped for ${STOPPED_MS / 1000} s`,
    async disturb(_stand, api) {
      process.kill(api, 'SIGSTOP');
      await sleep(STOPPED_MS);
      if (!isAlive(api)) return 'replaced while it was stopped';
      process.kill(api, 'SIGCONT');
      return 'the same one went on';
    },
  },
  { name: 'the API process out of memory', disturb: exhaust },
];

interface Result {
  readonly name: string;
  readonly figures: Figures;
  readonly apiAgainMs: number | undefined;
  readonly note: string;
}

export async function processes(): Promise<void> {
  await using stand = await openStand(join(scratch(), 'stand'));
  const mix = await makeInnocents(stand.administrator, stand.http);
  const broken: string[] = [];
  const memoryRows: Row[] = [{ process: 'postern serve, ready', MB: residentMb(stand.postern.pid) }];
  const results = await disturbAll(stand, mix);
  if (results.length === 0) broken.push(`postern serve has no API process of its own (${API} in its environment)`);
  else
    printTable(
      `${PER_SECOND} requests a second while the API process fails. Goal: no failed check`,
      results.map(rowOf),
    );
  memoryRows.push({ process: 'postern serve, after the load', MB: residentMb(stand.postern.pid) });
  for (const pid of processTree(stand.postern.pid))
    memoryRows.push({ process: `  ${roleOf(pid)}`, MB: ownMemory(pid).now });
  try {
    memoryRows.push(...(await gateAlone(stand, mix)));
  } catch (error) {
    broken.push(`postern serve --only gate: ${error instanceof Error ? error.message : String(error)}`);
  }
  printTable('Resident memory', memoryRows);
  for (const { name, figures } of results) {
    const failed = undecided(figures) + figures.verdicts.wrong;
    if (failed > 0) broken.push(`${name}: ${failed} of ${figures.requests} checks failed`);
  }
  for (const sentence of broken) console.error(`NOT HELD: ${sentence}`);
  if (broken.length > 0) process.exitCode = 1;
  writeResult('processes', { results, memory: memoryRows, broken });
}

/** Returns nothing if there is no API process to disturb. */
async function disturbAll(stand: Stand, mix: readonly InnocentRequest[]): Promise<readonly Result[]> {
  if (findByEnvironment(stand.postern.pid, API) === undefined) return [];
  await using load = startLoad(stand.edge, mix);
  await sleep(WARM_MS);
  const spans: { name: string; fromMs: number; untilMs: number; apiAgainMs: number | undefined; note: string }[] = [];
  const quietFromMs = Date.now();
  await sleep(QUIET_MS);
  spans.push({ name: 'quiet', fromMs: quietFromMs, untilMs: Date.now(), apiAgainMs: undefined, note: '' });
  for (const { name, disturb } of DISTURBANCES) {
    const api = findByEnvironment(stand.postern.pid, API);
    const fromMs = Date.now();
    const note = api === undefined ? 'there was no API process' : await disturb(stand, api);
    const apiAgainMs = (await answersAgain(stand.http)) ? Date.now() - fromMs : undefined;
    await sleep(Math.max(0, fromMs + WATCHED_MS - Date.now()));
    spans.push({ name, fromMs, untilMs: Date.now(), apiAgainMs, note });
  }
  const report = await load.stop();
  return spans.map(({ fromMs, untilMs, ...span }) => ({ ...span, figures: figuresOf(report, fromMs, untilMs) }));
}

/** Lets every further allocation of the process fail, and has it work on large bodies until it ends. */
async function exhaust({ http, administrator }: Stand, api: number): Promise<string> {
  execFileSync('prlimit', ['--pid', String(api), `--as=${ADDRESS_SPACE_BYTES}`]);
  const body = JSON.stringify({ description: 'x'.repeat(CALL_BYTES) });
  const headers = { authorization: `Bearer ${administrator.token}`, 'content-type': 'application/json' };
  const call = (): Promise<void> =>
    fetch(`http://${http}/v1/iam/roles`, {
      method: 'POST',
      headers,
      body,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    }).then(
      async (answer) => answer.body?.cancel(),
      () => undefined,
    );
  const deadline = Date.now() + RECOVERY_TIMEOUT_MS;
  while (isAlive(api) && Date.now() < deadline) await Promise.all(Array.from({ length: CALLS_AT_ONCE }, call));
  return isAlive(api) ? 'it did not end' : 'it ended';
}

async function answersAgain(http: string): Promise<boolean> {
  const deadline = Date.now() + RECOVERY_TIMEOUT_MS;
  while (Date.now() < deadline) {
    const answer = await fetch(`http://${http}/.well-known/jwks.json`, { signal: AbortSignal.timeout(1000) }).catch(
      () => undefined,
    );
    await answer?.body?.cancel();
    if (answer?.status === 200) return true;
    await sleep(POLL_MS);
  }
  return false;
}

/** The memory of a server that only decides, before and after a load of its own. */
async function gateAlone(stand: Stand, mix: readonly InnocentRequest[]): Promise<readonly Row[]> {
  await using stack = new AsyncDisposableStack();
  const folder = join(stand.folder, 'gate');
  mkdirSync(folder);
  const { certificates, databaseUrl } = stand;
  const gate = await startPostern({ folder, databaseUrl, certificates, words: ['--only', 'gate'] });
  stack.defer(() => gate.stop());
  const ready = residentMb(gate.pid);
  const upstream = new URL(stand.ledger).host;
  const envoy = await startProduction(certificates, { grpc: gate.grpc, http: stand.http, upstream });
  stack.defer(() => envoy.stop());
  const load = stack.use(startLoad({ ...stand.edge, port: envoy.port }, mix));
  await sleep(WARM_MS + QUIET_MS);
  await load.stop();
  return [
    { process: 'postern serve --only gate, ready', MB: ready },
    { process: 'postern serve --only gate, after the load', MB: residentMb(gate.pid) },
  ];
}

/** `POSTERN_PROCESS` of its environment; the first process has none. */
function roleOf(pid: number): string {
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  return (
    environment.find((line) => line.startsWith('POSTERN_PROCESS='))?.slice('POSTERN_PROCESS='.length) ?? 'supervisor'
  );
}

function rowOf({ name, figures: { requests, verdicts, p99Ms }, apiAgainMs, note }: Result): Row {
  return {
    meanwhile: name,
    requests,
    wrong: verdicts.wrong,
    '503s': verdicts.unavailable,
    'empty 503s': verdicts.empty,
    lost: verdicts.lost,
    'p99 ms': p99Ms.toFixed(1),
    'API again after s': apiAgainMs === undefined ? '' : (apiAgainMs / 1000).toFixed(1),
    note,
  };
}
