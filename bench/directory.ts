/**
 * Logging in by a directory, beside what the directory itself allows: binds by ldapts alone, each on a connection of
 * its own, as ldapwhoami makes them. All in the same run, in turns, against one slapd on loopback.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { findParts } from '../test/directory/servers/packages.ts';
import { groupDn, PASSWORD } from '../test/directory/servers/people.ts';
import type { DirectoryServer } from '../test/directory/servers/server.ts';
import { startSlapd } from '../test/directory/servers/slapd.ts';
import { GROUP_ROLES, settingsFor } from '../test/directory/settings.ts';
import { besideHanging } from './directory-hanging.ts';
import { atOnce } from './directory-people.ts';
import type { DirectoryTask, DirectoryWork } from './directory-rounds.ts';
import { runHttpLoad } from './http-load.ts';
import { openWorld, type ServerUnderTest, type World } from './server-under-test.ts';
import { median, printTable, quietRounds, SERVER_CORE, scratch, writeResult } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 15);
const LOGINS = Number(process.env['BENCH_CALLS'] ?? 400);
/** As many as it takes until what a login runs is compiled for good. */
const WARM_LOGINS = 3000;
const IN_FLIGHT = 8;
const GOAL = 0.5;
const UNLIMITED = { POSTERN_LOGIN_FAILURES_PER_ACCOUNT: '1000000', POSTERN_LOGIN_FAILURES_PER_ADDRESS: '1000000' };

/** One round of one kind. */
export interface Speed {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const KINDS: Readonly<Record<DirectoryWork | 'http', string>> = {
  bind: 'connect, bind, "who am I" by ldapts alone, ldaps',
  pattern: 'the directory room, bound by pattern, memberOf, ldaps',
  flat: 'the directory room, searched first, groups searched once, ldaps',
  search: 'the directory room, searched first, nested groups searched, ldaps',
  http: 'POST /v1/auth/login, searched first, nested groups searched, ldaps',
  plainBind: 'ldapts alone, without TLS',
  plainSearch: 'the directory room, nested groups searched, without TLS',
};
const NAMES = ['bind', 'pattern', 'flat', 'search', 'http', 'plainBind', 'plainSearch'] as const;
/** Those without TLS are measured by binds without it. */
const beside = (name: (typeof NAMES)[number]): 'bind' | 'plainBind' =>
  name.startsWith('plain') ? 'plainBind' : 'bind';

export async function directory(): Promise<void> {
  const missing = (await findParts(['openldap'])).get('openldap');
  if (missing !== undefined) throw new Error(missing);
  const slapd = await startSlapd({ quiet: true });
  try {
    await using world = await openWorld(join(scratch(), 'world'), { tenants: 1, keys: 1, usable: 0, sessions: 0 });
    const settings = { ...UNLIMITED, ...ldapSettings(slapd) };
    const speeds = await speedOfLogins(world, slapd, settings);
    const hanging = await besideHanging(world, slapd, settings);
    writeResult('directory', { ...speeds, hanging });
  } finally {
    await slapd.stop();
  }
}

async function speedOfLogins(world: World, slapd: DirectoryServer, settings: NodeJS.ProcessEnv): Promise<object> {
  const server = await world.start({ settings });
  using rounds = startRounds(slapd);
  try {
    return await measure(rounds, server);
  } finally {
    await server.stop();
  }
}

async function measure(rounds: Rounds, server: ServerUnderTest): Promise<object> {
  const run = async (name: (typeof NAMES)[number], count = LOGINS): Promise<Speed> =>
    name === 'http' ? logins(server, count) : rounds.run({ work: name, count, inFlight: IN_FLIGHT });
  for (const name of NAMES) await run(name, WARM_LOGINS);
  let turn = 0;
  const quiet = await quietRounds(ROUNDS, async () => {
    const order = NAMES.map((_, i) => NAMES[(i + turn) % NAMES.length] ?? 'bind');
    turn++;
    const round = new Map<keyof typeof KINDS, Speed>();
    for (const name of order) round.set(name, await run(name));
    return round;
  });
  const speedsOf = (name: keyof typeof KINDS): readonly Speed[] =>
    quiet.flatMap(({ result }) => {
      const speed = result.get(name);
      return speed === undefined ? [] : [speed];
    });
  // Each beside the binds of its own round, so that a slow moment of the machine meets both.
  const ratioOf = (name: keyof typeof KINDS): number =>
    median(speedsOf(name).map((speed, i) => speed.perSecond / (speedsOf(beside(name))[i]?.perSecond ?? Number.NaN)));
  const rows = NAMES.map((name) => {
    const speeds = speedsOf(name);
    return {
      name,
      perSecond: median(speeds.map((speed) => speed.perSecond)),
      ratio: ratioOf(name),
      p50Ms: median(speeds.map((speed) => speed.p50Ms)),
      p99Ms: median(speeds.map((speed) => speed.p99Ms)),
    };
  });
  printTable(
    `Directory logins: the quietest ${ROUNDS} rounds of ${LOGINS}, ${IN_FLIGHT} at once, medians`,
    rows.map((row) => ({
      'with slapd on loopback': KINDS[row.name],
      'per s': row.perSecond.toFixed(0),
      'of the binds': row.ratio.toFixed(3),
      'p50 ms': row.p50Ms.toFixed(2),
      'p99 ms': row.p99Ms.toFixed(2),
    })),
  );
  const stolen = (Math.max(...quiet.map((round) => round.stolen)) * 100).toFixed(1);
  console.log(`\nGoal: ${GOAL} of the binds, all searches included. A hypervisor took ${stolen} % of a round at most.`);
  return { rounds: ROUNDS, logins: LOGINS, inFlight: IN_FLIGHT, rows };
}

interface Rounds extends Disposable {
  run(task: DirectoryTask): Promise<Speed>;
}

/** Binds and logins by one process on one core, which is the one that the server has otherwise. */
function startRounds(slapd: DirectoryServer): Rounds {
  const { log: _log, stop: _stop, ...place } = slapd;
  const script = join(import.meta.dirname, 'directory-rounds.ts');
  const child: ChildProcess = spawn('taskset', ['-c', SERVER_CORE, process.execPath, script, JSON.stringify(place)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  return {
    async run(task) {
      child.send(task);
      const [speed]: Speed[] = await once(child, 'message');
      if (speed === undefined) throw new Error('the rounds did not answer');
      return speed;
    },
    [Symbol.dispose]: () => child.kill(),
  };
}

function ldapSettings(slapd: DirectoryServer): NodeJS.ProcessEnv {
  const { groupSearchBase, groupSearchFilter } = settingsFor(slapd);
  return {
    POSTERN_LDAP_ENABLED: 'true',
    POSTERN_LDAP_URL: slapd.secureUrl,
    POSTERN_LDAP_CA_FILE: slapd.caFile,
    POSTERN_LDAP_BASE_DN: slapd.suffix,
    POSTERN_LDAP_BIND_DN: slapd.service.dn,
    POSTERN_LDAP_BIND_PASSWORD: slapd.service.password,
    POSTERN_LDAP_GROUP_SEARCH_BASE: groupSearchBase,
    POSTERN_LDAP_GROUP_SEARCH_FILTER: groupSearchFilter,
    POSTERN_LDAP_GROUP_ROLE_MAPPING: JSON.stringify(
      Object.fromEntries(Object.entries(GROUP_ROLES).map(([cn, role]) => [groupDn(slapd, cn), role])),
    ),
  };
}

function logins(server: ServerUnderTest, calls: number): Speed {
  const requests = atOnce(IN_FLIGHT).map(({ login }) => ({
    method: 'POST',
    path: '/v1/auth/login',
    body: JSON.stringify({ auth_type: 'ldap', username: login, password: PASSWORD }),
  }));
  const result = runHttpLoad({
    address: server.http,
    connections: IN_FLIGHT,
    warm: IN_FLIGHT,
    calls,
    requests,
    from: 0,
  });
  if (Object.keys(result.statuses).join() !== '200')
    throw new Error(`directory logins answered ${JSON.stringify(result.statuses)}`);
  return result;
}
