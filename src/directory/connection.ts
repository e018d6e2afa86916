/**
 * One connection to one server, for one login. The client library is handed the one socket that was opened and checked here and can
 * make no other: left alone it would connect again by itself, in clear, and bind there.
 */

import type { Socket } from 'node:net';
import { Client, type Filter, ResultCodeError } from 'ldapts';
import { Fault } from '../domain/errors.ts';
import type { BindResult } from './bind-outcome.ts';
import type { Deadline } from './deadline.ts';
import { type Entry, readEntry } from './entry.ts';
import { DirectoryFault, reasonOf } from './faults.ts';
import { parseFilter } from './filter.ts';
import { PasswordPolicyControl } from './password-policy.ts';
import type { DirectoryUrl } from './settings.ts';
import { isVerified, type Observer, openSocket, type Route } from './socket.ts';

export interface Question {
  readonly base: string;
  readonly scope: 'base' | 'sub';
  readonly filter: Filter | string;
  readonly attributes: readonly string[];
}

export interface Connection {
  readonly url: DirectoryUrl;
  /** A simple bind. Gives the server's answer whatever its code. @throws Fault for an empty password: a server may take that for an anonymous bind */
  bind(name: string, password: string): Promise<BindResult>;
  /** At most `limit` entries; none when the base of a `base` search does not exist. @throws DirectoryFault, Fault */
  search(question: Question, limit: number): Promise<readonly Entry[]>;
  /** All entries, in pages where the server wants that. @throws Fault when there are more than `max`, or when the server does not give all: half an answer is none */
  searchAll(question: Question, max: number): Promise<readonly Entry[]>;
  /**
   * How many entries and references a search gives, without a size limit of ours: with one, the client library hides that the server gave
   * less than it found. @throws DirectoryFault also when the server gives only a part
   */
  count(question: Question): Promise<{ readonly entries: number; readonly references: number }>;
  /** RFC 4532: `dn:…` or `u:…`; undefined when the server does not tell. */
  whoAmI(): Promise<string | undefined>;
  /** Says good-bye, then destroys the socket, whether the server listens or not. */
  close(): void;
}

/** Values that are bytes, though they may look like text. */
const BINARY = ['objectGUID', 'objectguid', 'objectSid', 'objectsid', 'tokenGroups', 'tokengroups'];
const PAGE_SIZE = 500;
/**
 * Of one connection: more than ten thousand groups take. The client library copies what it has with every piece that comes, so that a
 * message without end costs the square of this.
 */
const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';
/** UnbindRequest (RFC 4511, section 4.3) under the highest message id, which no operation here comes to. */
const UNBIND = Buffer.from('300802047fffffff4200', 'hex');
const UNBIND_MS = 200;
const SIZE_LIMIT_EXCEEDED = 4;
const NO_SUCH_OBJECT = 32;

/** @throws Fault; a TlsFault when TLS is why */
export async function connectTo(
  route: Route,
  { opening, whole }: { readonly opening: Deadline; readonly whole: Deadline },
  observe?: Observer,
): Promise<Connection> {
  const socket = await openSocket(route, opening, observe);
  return wrap(route, socket, whole);
}

function wrap({ url, startTls }: Route, socket: Socket, deadline: Deadline): Connection {
  let given = false;
  const client = new Client({
    // Only what createConnection gives is used; nothing is looked up under this name.
    url: 'ldap://directory.invalid',
    createConnection: () => {
      if (given) throw new Error('the connection has ended');
      given = true;
      return socket;
    },
  });
  const cancel = deadline.onPassing(() => socket.destroy());
  let receivedBytes = 0;
  socket.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes > MAX_RECEIVED_BYTES) socket.destroy();
  });
  const mustBeSecure = url.secure || startTls;

  const run = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    if (socket.destroyed || deadline.passed) throw deadline.passed ? deadline.fault() : ended(url, what);
    try {
      // The socket ends when the deadline passes, and with it whatever is under way.
      return await work();
    } catch (error) {
      throw faultOf(error, url, what, deadline);
    }
  };

  return {
    url,
    bind: async (name, password) => {
      if (password === '') throw new Fault('a bind without a password proves nothing and is never sent');
      // Without these characters the client library may take the name for that of a SASL mechanism.
      if (!/[=@\\]/.test(name)) throw new Fault('a name to bind with is a DN, name@domain or DOMAIN\\name');
      if (mustBeSecure && !isVerified(socket)) throw ended(url, 'the bind');
      const policy = new PasswordPolicyControl();
      return await run('the bind', async () => {
        try {
          await client.bind(name, password, [policy]);
          return { code: 0, text: '', policy: policy.error };
        } catch (error) {
          if (error instanceof ResultCodeError) return { code: error.code, text: textOf(error), policy: policy.error };
          throw error;
        }
      });
    },
    search: (question, limit) =>
      run(`the search below ${question.base}`, async () => {
        try {
          const { searchEntries } = await client.search(question.base, {
            ...optionsOf(question, deadline),
            sizeLimit: limit,
          });
          return searchEntries.slice(0, limit).map(readEntry);
        } catch (error) {
          if (question.scope === 'base' && isCode(error, NO_SUCH_OBJECT)) return [];
          throw error;
        }
      }),
    searchAll: (question, max) =>
      run(`the search below ${question.base}`, async () => {
        const entries = await all(client, question, deadline);
        if (entries.length > max) throw new Fault(`the search below ${question.base} gave more than ${max} entries`);
        return entries;
      }),
    count: (question) =>
      run(`the search below ${question.base}`, async () => {
        const { searchEntries, searchReferences } = await client.search(question.base, optionsOf(question, deadline));
        return { entries: searchEntries.length, references: searchReferences.length };
      }),
    whoAmI: () =>
      run('"who am I"', async () => {
        try {
          return (await client.exop(WHO_AM_I)).value;
        } catch (error) {
          if (error instanceof ResultCodeError) return undefined;
          throw error;
        }
      }),
    close: () => {
      cancel();
      const timer = setTimeout(() => socket.destroy(), UNBIND_MS);
      timer.unref();
      socket.once('close', () => clearTimeout(timer));
      // Past the library, which would make an error of every good-bye. What it still waits for fails when the socket closes.
      if (socket.writable) socket.write(UNBIND);
      socket.destroySoon();
    },
  };
}

/**
 * In one piece, else in pages where the server gives no more at a time. No size limit of ours in either: with one, the client library
 * hides that the server stopped at its own. Pages come second because the library takes an empty page for the last one, which a server
 * may send when it is short of time.
 */
async function all(client: Client, question: Question, deadline: Deadline): Promise<readonly Entry[]> {
  const options = optionsOf(question, deadline);
  try {
    return (await client.search(question.base, options)).searchEntries.map(readEntry);
  } catch (error) {
    if (!isCode(error, SIZE_LIMIT_EXCEEDED)) throw error;
  }
  const entries: Entry[] = [];
  for await (const page of client.searchPaginated(question.base, { ...options, paged: { pageSize: PAGE_SIZE } })) {
    entries.push(...page.searchEntries.map(readEntry));
  }
  return entries;
}

function optionsOf({ scope, filter, attributes }: Question, deadline: Deadline) {
  return {
    scope,
    filter: typeof filter === 'string' ? (parseFilter(filter) ?? filter) : filter,
    attributes: [...attributes],
    explicitBufferAttributes: BINARY,
    timeLimit: deadline.remainingSeconds(),
    derefAliases: 'never' as const,
  };
}

/** The library adds the code to the server's text. */
function textOf(error: ResultCodeError): string {
  return error.message
    .replace(/ Code: 0x[0-9a-f]+$/, '')
    .replace(/\p{Cc}+/gu, ' ')
    .trim();
}

function isCode(error: unknown, code: number): boolean {
  return error instanceof ResultCodeError && error.code === code;
}

function ended(url: DirectoryUrl, what: string): Fault {
  return new Fault(`${url.text}: the connection ended before ${what}`);
}

function faultOf(error: unknown, url: DirectoryUrl, what: string, deadline: Deadline): Fault {
  if (error instanceof Fault) return error;
  if (deadline.passed) return deadline.fault();
  if (error instanceof ResultCodeError) {
    return new DirectoryFault(
      `${url.text}: ${what} was answered with code ${error.code}: ${textOf(error)}`,
      error.code,
    );
  }
  return new Fault(`${url.text}: ${what} failed: ${reasonOf(error).split('\n')[0] ?? ''}`);
}
