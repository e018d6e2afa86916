/**
 * One connection to one server, for one login. The client library gets the socket that this module opened and verified,
 * and cannot open another. By default, it would reconnect without TLS and bind there.
 */

import type { Socket } from 'node:net';
import { Client, type Filter, ResultCodeError } from 'ldapts';
import { Fault, reasonOf } from '../domain/errors.ts';
import type { BindResult } from './bind-outcome.ts';
import type { Deadline } from './deadline.ts';
import { type LdapEntry, readEntry } from './entry.ts';
import { DirectoryFault } from './faults.ts';
import { parseFilter } from './filter.ts';
import { PasswordPolicyControl } from './password-policy.ts';
import type { DirectoryUrl } from './settings.ts';
import { type ConnectionObserver, isVerified, openSocket, type ServerTarget } from './socket.ts';

export interface SearchRequest {
  readonly base: string;
  readonly scope: 'base' | 'sub';
  readonly filter: Filter | string;
  readonly attributes: readonly string[];
}

export interface LdapConnection {
  readonly url: DirectoryUrl;
  /**
   * Sends a simple bind. Returns the server's answer with any code.
   * @throws Fault for an empty password: a server may treat that as an anonymous bind
   */
  bind(name: string, password: string): Promise<BindResult>;
  /**
   * Returns at most `limit` entries; none if the base of a `base` search does not exist.
   * @throws DirectoryFault, Fault
   */
  search(request: SearchRequest, limit: number): Promise<readonly LdapEntry[]>;
  /**
   * Returns all entries, in pages if the server requires that.
   * @throws Fault if there are more than `max`, or if the server does not send all
   */
  searchAll(request: SearchRequest, max: number): Promise<readonly LdapEntry[]>;
  /**
   * Counts the entries and references of a search, without a size limit: with one, the client library hides that the
   * server sent only a part. @throws DirectoryFault also if the server sends only a part
   */
  count(request: SearchRequest): Promise<{ readonly entries: number; readonly references: number }>;
  /** RFC 4532: `dn:…` or `u:…`; undefined if the server does not answer it. */
  whoAmI(): Promise<string | undefined>;
  /** Sends an unbind request, then destroys the socket, even if the server does not read. */
  close(): void;
}

/** Attributes with binary values, which may look like text. */
const BINARY = ['objectGUID', 'objectguid', 'objectSid', 'objectsid', 'tokenGroups', 'tokengroups'];
const PAGE_SIZE = 500;
/**
 * The limit of one connection; ten thousand groups need less. The client library copies its buffer with every received
 * piece, so that an endless message costs the square of this.
 */
const MAX_RECEIVED_BYTES = 4 * 1024 * 1024;
const WHO_AM_I = '1.3.6.1.4.1.4203.1.11.3';
/** UnbindRequest (RFC 4511, section 4.3) with the highest message id, which no operation of this module reaches. */
const UNBIND = Buffer.from('300802047fffffff4200', 'hex');
const UNBIND_MS = 200;
const SIZE_LIMIT_EXCEEDED = 4;
const NO_SUCH_OBJECT = 32;

/** @throws Fault; a TlsFault if TLS failed */
export async function connectTo(
  target: ServerTarget,
  { opening, whole }: { readonly opening: Deadline; readonly whole: Deadline },
  observe?: ConnectionObserver,
): Promise<LdapConnection> {
  const socket = await openSocket(target, opening, observe);
  return wrap(target, socket, whole);
}

function wrap({ url, startTls }: ServerTarget, socket: Socket, deadline: Deadline): LdapConnection {
  let given = false;
  const client = new Client({
    // The library uses only the socket of createConnection, and does not look up this name.
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
      // When the deadline passes, the socket closes, which ends every operation.
      return await work();
    } catch (error) {
      throw faultOf(error, url, what, deadline);
    }
  };

  return {
    url,
    bind: async (name, password) => {
      if (password === '') throw new Fault('a bind without a password proves nothing and is never sent');
      // Without these characters, the client library may treat the name as a SASL mechanism.
      if (!/[=@\\]/.test(name)) throw new Fault('a name to bind with is a DN, name@domain or DOMAIN\\name');
      if (mustBeSecure && !isVerified(socket)) throw ended(url, 'the bind');
      return await run('the bind', () => bindAs(client, name, password));
    },
    search: (request, limit) =>
      run(`the search below ${request.base}`, async () => {
        try {
          const { searchEntries } = await client.search(request.base, {
            ...optionsOf(request, deadline),
            sizeLimit: limit,
          });
          return searchEntries.slice(0, limit).map(readEntry);
        } catch (error) {
          if (request.scope === 'base' && isCode(error, NO_SUCH_OBJECT)) return [];
          throw error;
        }
      }),
    searchAll: (request, max) =>
      run(`the search below ${request.base}`, async () => {
        const entries = await all(client, request, deadline);
        if (entries.length > max) throw new Fault(`the search below ${request.base} gave more than ${max} entries`);
        return entries;
      }),
    count: (request) =>
      run(`the search below ${request.base}`, async () => {
        const { searchEntries, searchReferences } = await client.search(request.base, optionsOf(request, deadline));
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
      unbind(socket);
    },
  };
}

async function bindAs(client: Client, name: string, password: string): Promise<BindResult> {
  const policy = new PasswordPolicyControl();
  try {
    await client.bind(name, password, [policy]);
    return { code: 0, text: '', policy: policy.error };
  } catch (error) {
    if (error instanceof ResultCodeError) return { code: error.code, text: textOf(error), policy: policy.error };
    throw error;
  }
}

function unbind(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), UNBIND_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
  // Written to the socket, because the library reports every unbind as an error. Its pending operations fail when the
  // socket closes.
  if (socket.writable) socket.write(UNBIND);
  socket.destroySoon();
}

/**
 * Searches in one piece; in pages if the server's limit is lower. Neither has a size limit: with one, the client
 * library hides that the server stopped at its own. Pages come second because the library treats an empty page as the
 * last one, and a server may send an empty page when it is short of time.
 */
async function all(client: Client, request: SearchRequest, deadline: Deadline): Promise<readonly LdapEntry[]> {
  const options = optionsOf(request, deadline);
  try {
    return (await client.search(request.base, options)).searchEntries.map(readEntry);
  } catch (error) {
    if (!isCode(error, SIZE_LIMIT_EXCEEDED)) throw error;
  }
  const entries: LdapEntry[] = [];
  for await (const page of client.searchPaginated(request.base, { ...options, paged: { pageSize: PAGE_SIZE } })) {
    entries.push(...page.searchEntries.map(readEntry));
  }
  return entries;
}

function optionsOf({ scope, filter, attributes }: SearchRequest, deadline: Deadline) {
  return {
    scope,
    filter: typeof filter === 'string' ? (parseFilter(filter) ?? filter) : filter,
    attributes: [...attributes],
    explicitBufferAttributes: BINARY,
    timeLimit: deadline.remainingSeconds(),
    derefAliases: 'never' as const,
  };
}

/** Removes the code that the library adds to the server's text. */
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
