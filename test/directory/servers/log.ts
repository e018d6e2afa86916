/** The log lines of a server about the requests during some work. */

import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'ldapts';
import { tlsFor } from './client.ts';
import type { DirectoryServer } from './server.ts';

const LOG_LIMIT_MS = 10_000;
const POLL_MS = 10;

let marks = 0;

/**
 * Returns the lines about connections between two connections of this function; empty if there were none. No other
 * client may send requests to the server during the work.
 */
export async function logOf(server: DirectoryServer, work: () => Promise<void>): Promise<string> {
  const before = await mark(server);
  await work();
  const after = await mark(server);
  const lines = (await server.log()).split('\n');
  const [first, last] = [lineOf(lines, before), lineOf(lines, after)];
  const between =
    server.kind === 'active-directory' ? questions(lines.slice(first, last)) : numbered(lines, first, last);
  return between.join('\n');
}

/** Binds with a name that no entry has. When the log has that name, it has every earlier line. */
async function mark(server: DirectoryServer): Promise<string> {
  marks++;
  const name = `mark-${process.pid}-${marks}`;
  const client = new Client({ url: server.secureUrl, tlsOptions: await tlsFor(server) });
  await client.bind(`cn=${name},${server.suffix}`, 'no password').catch(() => undefined);
  await client.unbind();
  const limit = performance.now() + LOG_LIMIT_MS;
  while (!(await server.log()).includes(name)) {
    if (performance.now() > limit) throw new Error(`the log of ${server.title} does not show ${name}`);
    await wait(POLL_MS);
  }
  return name;
}

function lineOf(lines: readonly string[], name: string): number {
  return lines.findIndex((line) => line.includes(name));
}

/** OpenLDAP and 389 Directory Server count their connections. */
function numbered(lines: readonly string[], first: number, last: number): string[] {
  const integerOf = (line: string | undefined): number => Number(/ conn=(\d+) /.exec(line ?? '')?.[1]);
  const [from, to] = [integerOf(lines[first]), integerOf(lines[last])];
  return lines.filter((line) => integerOf(line) > from && integerOf(line) < to);
}

/** Samba writes a line or more about every bind and every search. */
function questions(lines: readonly string[]): string[] {
  return lines.filter((line) => /LDAP Query: |Auth: \[LDAP/.test(line) && !line.includes(`mark-${process.pid}-`));
}
