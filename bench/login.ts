/**
 * Logins. It compares the times of failed logins with and without an account, and the cost of a login with the cost of
 * its argon2id hash.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { Passwords } from '../src/identity/passwords.ts';
import { openWorld, type ServerUnderTest } from './server-under-test.ts';
import {
  LOAD_CORE,
  median,
  printTable,
  processorMs,
  quantile,
  quietRounds,
  SERVER_CORE,
  scratch,
  writeResult,
} from './stack.ts';

const FAILURES = Number(process.env['BENCH_LOGINS'] ?? 300);
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 15);
const LOGINS = Number(process.env['BENCH_CALLS'] ?? 120);
/** Logins under way at once: enough to keep the server's core busy while some of them wait for PostgreSQL. */
const IN_FLIGHT = 24;
/**
 * As many as it takes until what a login runs is compiled for good: the compiler waits for thousands of calls of each
 * function.
 */
const WARM_LOGINS = 6000;
const PASSWORD = 'the password of a benchmark';
/** As many as a benchmark fails and more. */
const UNLIMITED = { POSTERN_LOGIN_FAILURES_PER_ACCOUNT: '1000000', POSTERN_LOGIN_FAILURES_PER_ADDRESS: '1000000' };

interface Credentials {
  readonly email: string;
  readonly password: string;
}

export async function login(): Promise<void> {
  // PostgreSQL and the client share the other core, so that the server has its own.
  using _pinned = pinSelf(LOAD_CORE);
  await using world = await openWorld(join(scratch(), 'world'), { tenants: 10, keys: 1_000, usable: 0, sessions: 0 });
  const server = await world.start({ settings: UNLIMITED });
  try {
    const people = await makePeople(server, await world.administratorToken(server));
    const failures = await failedLogins(server, people);
    const cost = await costOfLogins(server, people.active);
    writeResult('login', { failures, cost });
  } finally {
    await server.stop();
  }
}

/** This process, and those that it starts, until it is disposed of. */
function pinSelf(core: string): Disposable {
  const run = (cores: string): void => {
    execFileSync('taskset', ['-a', '-p', '-c', cores, String(process.pid)], { stdio: 'ignore' });
  };
  run(core);
  return { [Symbol.dispose]: () => run(`0-${cpus().length - 1}`) };
}

interface People {
  readonly active: readonly Credentials[];
  readonly deactivated: Credentials;
}

async function makePeople(server: ServerUnderTest, token: string): Promise<People> {
  const make = async (name: string): Promise<{ readonly id: string; readonly credentials: Credentials }> => {
    const credentials = { email: `${name}@login.example`, password: PASSWORD };
    const { id } = await answered(server, 201, 'POST', '/v1/iam/users', { ...credentials, name }, token);
    return { id: String(id), credentials };
  };
  const active: Credentials[] = [];
  for (let i = 0; i < IN_FLIGHT; i++) active.push((await make(`active-${i}`)).credentials);
  const { id, credentials: deactivated } = await make('deactivated');
  await answered(server, 200, 'POST', `/v1/iam/users/${id}/deactivate`, undefined, token);
  return { active, deactivated };
}

async function answered(
  server: ServerUnderTest,
  status: number,
  method: string,
  path: string,
  body: object | undefined,
  token?: string,
): Promise<Readonly<Record<string, unknown>>> {
  const response = await fetch(`http://${server.http}${path}`, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.status !== status) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as Record<string, unknown>;
}

/**
 * One after the other, the kinds taking turns in another order each time, so that a slow moment of the machine meets
 * all alike.
 */
async function failedLogins(server: ServerUnderTest, people: People) {
  const known = people.active[0]?.email ?? '';
  const kinds: Readonly<Record<string, (turn: number) => Credentials>> = {
    unknown: (turn) => ({ email: `nobody-${turn}@login.example`, password: PASSWORD }),
    wrong: () => ({ email: known, password: 'not the password at all' }),
    empty: () => ({ email: known, password: '' }),
    deactivated: () => people.deactivated,
  };
  const names = Object.keys(kinds);
  const times: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let turn = -5; turn < FAILURES; turn++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(i + turn + names.length * 2) % names.length] ?? '';
      const credentials = kinds[name]?.(turn);
      const started = performance.now();
      await answered(server, 401, 'POST', '/v1/auth/login', credentials);
      if (turn >= 0) times[name]?.push(performance.now() - started);
    }
  }
  const medians = names.map((name) => median(times[name] ?? []));
  const spread = Math.max(...medians) / Math.min(...medians) - 1;
  printTable(
    `Failed logins: ${FAILURES} of each kind, taking turns`,
    names.map((name, i) => ({
      'failed login': name,
      'median ms': (medians[i] ?? 0).toFixed(2),
      'of the fastest': ((medians[i] ?? 0) / Math.min(...medians)).toFixed(3),
      'p90 ms': quantile(times[name] ?? [], 0.9).toFixed(2),
    })),
  );
  console.log(`\nThe medians lie within ${(spread * 100).toFixed(1)} % of each other (goal: 10 %).`);
  return { medians: Object.fromEntries(names.map((name, i) => [name, medians[i]])), spread };
}

/**
 * Argon2id alone and whole logins in turns on the same core, in rounds so short that both meet the same machine, and a
 * quiet one.
 */
async function costOfLogins(server: ServerUnderTest, people: readonly Credentials[]) {
  using floor = startFloor(await (await Passwords.start()).hash(PASSWORD));
  await manyLogins(server, people, WARM_LOGINS);
  await floor.run(IN_FLIGHT);
  const quiet = await quietRounds(ROUNDS, async () => ({
    floor: await floor.run(LOGINS),
    logins: await manyLogins(server, people, LOGINS),
  }));
  const rounds = quiet.map(({ result, stolen }) => ({ ...result, stolen }));
  const ratios = rounds.map(({ floor: alone, logins }) => logins.perSecond / alone.perSecond);
  const cpuRatios = rounds.map(({ floor: alone, logins }) => alone.cpuMs / logins.cpuMs);
  const row = (name: string, speeds: readonly Speed[], ratio: number, cpuRatio: number) => ({
    'on one core': name,
    'per s': median(speeds.map((speed) => speed.perSecond)).toFixed(1),
    'of the floor': ratio.toFixed(2),
    'processor ms each': median(speeds.map((speed) => speed.cpuMs)).toFixed(2),
    'floor over it': cpuRatio.toFixed(2),
  });
  printTable(
    `Logins beside argon2id alone: the quietest ${ROUNDS} rounds of ${LOGINS}, medians; goal 0.90 of the floor`,
    [
      row(
        'argon2id alone',
        rounds.map((each) => each.floor),
        1,
        1,
      ),
      row(
        'logins',
        rounds.map((each) => each.logins),
        median(ratios),
        median(cpuRatios),
      ),
    ],
  );
  const stolen = Math.max(...rounds.map((round) => round.stolen));
  console.log(
    `\nThe logins are at ${median(ratios).toFixed(3)} of the floor. A hypervisor took ${(stolen * 100).toFixed(1)} % of a round at most.`,
  );
  return { rounds, ratio: median(ratios), cpuRatio: median(cpuRatios) };
}

interface Speed {
  readonly perSecond: number;
  /** Processor time of the process for each, in milliseconds. */
  readonly cpuMs: number;
}

function startFloor(stored: string): Disposable & { run(count: number): Promise<Speed> } {
  const script = join(import.meta.dirname, 'login-floor.ts');
  const child = spawn('taskset', ['-c', SERVER_CORE, process.execPath, script, stored], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return {
    run: async (count) => {
      child.send(count);
      const [speed]: Speed[] = await once(child, 'message');
      if (speed === undefined) throw new Error('the floor did not answer');
      return speed;
    },
    [Symbol.dispose]: () => child.kill(),
  };
}

async function manyLogins(server: ServerUnderTest, people: readonly Credentials[], count: number): Promise<Speed> {
  const cpu = processorMs(server.pid);
  const started = performance.now();
  let begun = 0;
  const client = async ({ email, password }: Credentials): Promise<void> => {
    while (begun < count) {
      begun++;
      await answered(server, 200, 'POST', '/v1/auth/login', { email, password });
    }
  };
  await Promise.all(people.map(client));
  return { perSecond: (count / (performance.now() - started)) * 1000, cpuMs: (processorMs(server.pid) - cpu) / count };
}
