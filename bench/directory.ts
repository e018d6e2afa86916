/**
 * Logging in by a directory, beside what the directory itself allows: binds by ldapts alone, each on a connection of its own, as
 * ldapwhoami makes them. All in the same run, in turns, against one slapd on loopback.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { findParts } from '../test/directory/servers/packages.ts';
import { groupDn, PASSWORD, PEOPLE } from '../test/directory/servers/people.ts';
import type { DirectoryServer } from '../test/directory/servers/server.ts';
import { startSlapd } from '../test/directory/servers/slapd.ts';
import { GROUP_ROLES, settingsFor } from '../test/directory/settings.ts';
import { besideHanging } from './directory-hanging.ts';
import type { DirectoryTask, DirectoryWork } from './directory-rounds.ts';
import { openWorld, type ServerUnderTest, type World } from './server-under-test.ts';
import { median, printTable, quantile, SERVER_CORE, scratch, writeResult } from './stack.ts';

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 15);
const LOGINS = Number(process.env['BENCH_CALLS'] ?? 400);
const IN_FLIGHT = 8;
const GOAL = 0.5;
const UNLIMITED = { POSTERN_LOGIN_FAILURES_PER_ACCOUNT: '1000000', POSTERN_LOGIN_FAILURES_PER_ADDRESS: '1000000' };

/** One round of one kind. */
export interface Speed {
  readonly perSecond: number;
  readonly latenciesMs: readonly number[];
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
const beside = (name: (typeof NAMES)[number]): 'bind' | 'plainBind' => (name.startsWith('plain') ? 'plainBind' : 'bind');

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
  const run = (name: (typeof NAMES)[number]): Promise<Speed> =>
    name === 'http' ? logins(server, LOGINS) : rounds.run({ work: name, count: LOGINS, inFlight: IN_FLIGHT });
  const speeds: Record<keyof typeof KINDS, Speed[]> = {
    bind: [],
    pattern: [],
    flat: [],
    search: [],
    http: [],
    plainBind: [],
    plainSearch: [],
  };
  for (const name of NAMES) await run(name);
  for (let round = 0; round < ROUNDS; round++) {
    for (let i = 0; i < NAMES.length; i++) {
      const name = NAMES[(i + round) % NAMES.length] ?? 'bind';
      speeds[name].push(await run(name));
    }
  }
  // Each beside the binds of its own round, so that a slow moment of the machine meets both.
  const ratioOf = (name: keyof typeof KINDS): number =>
    median(speeds[name].map((speed, i) => speed.perSecond / (speeds[beside(name)][i]?.perSecond ?? Number.NaN)));
  const rows = NAMES.map((name) => {
    const all = speeds[name].flatMap((speed) => speed.latenciesMs);
    return {
      name,
      perSecond: median(speeds[name].map((speed) => speed.perSecond)),
      ratio: ratioOf(name),
      p50Ms: quantile(all, 0.5),
      p99Ms: quantile(all, 0.99),
    };
  });
  printTable(
    `Directory logins: ${ROUNDS} rounds of ${LOGINS}, ${IN_FLIGHT} at once, medians`,
    rows.map((row) => ({
      'with slapd on loopback': KINDS[row.name],
      'per s': row.perSecond.toFixed(0),
      'of the binds': row.ratio.toFixed(2),
      'p50 ms': row.p50Ms.toFixed(2),
      'p99 ms': row.p99Ms.toFixed(2),
    })),
  );
  console.log(`\nGoal: ${GOAL} of the binds, all searches included.`);
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

async function logins(server: ServerUnderTest, count: number): Promise<Speed> {
  // What this process spends, the two cores do not have for the logins.
  using connections = keptOpen();
  const body = JSON.stringify({ auth_type: 'ldap', username: PEOPLE.alice.login, password: PASSWORD });
  const latenciesMs: number[] = [];
  let begun = 0;
  const started = performance.now();
  const client = async (): Promise<void> => {
    while (begun < count) {
      begun++;
      const from = performance.now();
      const { status, text } = await post(connections.agent, server, body);
      if (status !== 200) throw new Error(`a directory login answered ${status}: ${text}`);
      latenciesMs.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, client));
  return { perSecond: (count / (performance.now() - started)) * 1000, latenciesMs };
}

function keptOpen(): Disposable & { readonly agent: Agent } {
  const agent = new Agent({ keepAlive: true, maxSockets: IN_FLIGHT });
  return { agent, [Symbol.dispose]: () => agent.destroy() };
}

async function post(
  agent: Agent,
  server: ServerUnderTest,
  body: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const asked = request(`http://${server.http}/v1/auth/login`, { method: 'POST', agent, headers });
  asked.end(body);
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  if (answer === undefined) throw new Error('no answer');
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) text += chunk;
  return { status: answer.statusCode ?? 0, text };
}
