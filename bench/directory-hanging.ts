/**
 * A directory that accepts connections and never answers: the time until its users get an error, and the effect on
 * others.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { startRecorder } from '../test/directory/servers/recorder.ts';
import type { DirectoryServer } from '../test/directory/servers/server.ts';
import type { ServerUnderTest, World } from './server-under-test.ts';
import { median, printTable, quantile } from './stack.ts';

const TIMEOUT_MS = 1_000;
const LATE_GOAL_MS = 100;
const LOCAL_LOGINS = 200;
const LOCAL_AT_ONCE = 4;
const HANGING = 32;
const TURNS = 3;
/** The time of logins through the directory without other logins. */
const ALONE_MS = 5_000;

export interface Hanging {
  /** Local logins, milliseconds each. */
  readonly alone: readonly number[];
  readonly beside: readonly number[];
  /** The delay of logins through the directory beside local logins: milliseconds after `ldap.timeout`. */
  readonly late: readonly number[];
  /** The same without other logins. */
  readonly lateAlone: readonly number[];
}

/** @param settings of the server, with the directory's; its address and timeout are set here */
export async function besideHanging(
  world: World,
  slapd: DirectoryServer,
  settings: NodeJS.ProcessEnv,
): Promise<Hanging> {
  const recorder = await startRecorder(slapd.port, { silentAfter: 0 });
  const server = await world.start({
    settings: {
      ...settings,
      POSTERN_LDAP_URL: `ldap://127.0.0.1:${recorder.port}`,
      POSTERN_LDAP_TIMEOUT: `${TIMEOUT_MS}ms`,
    },
  });
  const hanging = { alone: [] as number[], beside: [] as number[], late: [] as number[], lateAlone: [] as number[] };
  try {
    await localLogins(world, server);
    await whileHanging(server, () => Promise.resolve());
    for (let turn = 0; turn < TURNS; turn++) {
      hanging.alone.push(...(await localLogins(world, server)));
      const [beside, late] = await whileHanging(server, () => localLogins(world, server));
      hanging.beside.push(...beside);
      hanging.late.push(...late);
      const [, lateAlone] = await whileHanging(server, () => sleep(ALONE_MS));
      hanging.lateAlone.push(...lateAlone);
    }
  } finally {
    await server.stop();
    await recorder.close();
  }
  print(hanging);
  return hanging;
}

/** Returns the result of the work, and the delays of the logins through the directory during it. */
async function whileHanging<T>(server: ServerUnderTest, work: () => Promise<T>): Promise<[T, number[]]> {
  const stop = new AbortController();
  const waiting = Array.from({ length: HANGING }, () => waitAgainAndAgain(server, stop.signal));
  const working = work().finally(() => stop.abort());
  const [done, ...late] = await Promise.all([working, ...waiting]);
  return [done, late.flat()];
}

function print({ alone, beside, late, lateAlone }: Hanging): void {
  const row = (what: string, values: readonly number[]) => ({
    [`${TURNS} turns`]: what,
    'median ms': median(values).toFixed(1),
    'p99 ms': quantile(values, 0.99).toFixed(1),
    'most ms': Math.max(...values).toFixed(1),
  });
  printTable(`A directory that hangs: ${LOCAL_LOGINS} local logins, ${HANGING} people waiting for it all the time`, [
    row('local logins, nobody waits', alone),
    row('local logins beside them', beside),
    row(`503 after ldap.timeout (${TIMEOUT_MS} ms) by, beside the local logins`, late),
    row(`503 after ldap.timeout (${TIMEOUT_MS} ms) by, without local logins`, lateAlone),
  ]);
  console.log(`\nGoal: answered within ${LATE_GOAL_MS} ms after the time-out.`);
}

/** With the local administrator's password. */
async function localLogins(world: World, server: ServerUnderTest): Promise<number[]> {
  const latenciesMs: number[] = [];
  let begun = 0;
  const client = async (): Promise<void> => {
    while (begun < LOCAL_LOGINS) {
      begun++;
      const from = performance.now();
      const token: unknown = await world.administratorToken(server);
      if (typeof token !== 'string') throw new Error('a local login was refused');
      latenciesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: LOCAL_AT_ONCE }, client));
  return latenciesMs;
}

async function waitAgainAndAgain(server: ServerUnderTest, stop: AbortSignal): Promise<number[]> {
  const late: number[] = [];
  while (!stop.aborted) {
    const from = performance.now();
    const response = await fetch(`http://${server.http}/v1/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ auth_type: 'ldap', username: 'somebody', password: 'some password' }),
    });
    await response.text();
    if (response.status !== 503) throw new Error(`a login at a directory that hangs answered ${response.status}`);
    late.push(performance.now() - from - TIMEOUT_MS);
  }
  return late;
}
