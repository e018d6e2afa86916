/**
 * The pool of connections of knex and of prepared statements. It bounds every wait: for a free connection, for a new
 * one, and for each result. PostgreSQL ends a statement that waits too long for a lock or runs too long, so its
 * connection stays usable. If no result comes even then, the server hangs, the network is cut, or a pooler has dropped
 * the limits. The pool then cancels the statement and closes its connection, and the caller gets a Fault, because the
 * outcome is unknown.
 */

import type { Writable } from 'node:stream';
import pg from 'pg';
import { Fault } from '../domain/errors.ts';
import type { DatabaseReports } from '../telemetry/database-metrics.ts';
import type { Tracing } from '../telemetry/tracing.ts';
import { cancelStatement } from './cancel.ts';
import { connectionFault, spoilsConnection, statementError } from './faults.ts';
import { tracedStatement } from './traced-statement.ts';

export interface PoolOptions {
  /**
   * `postgresql://user:password@host:port/database`, or `postgresql://user@/database?host=/directory` for a Unix
   * socket.
   */
  readonly url: string;
  readonly max: number;
  /** Bounds the wait for a connection. */
  readonly acquireTimeoutMs: number;
  /** Bounds the wait for the result of one statement. */
  readonly queryTimeoutMs: number;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
  /** Default: no metrics. */
  readonly reports?: DatabaseReports | undefined;
}

/** A statement. If it has a name, each connection prepares it once. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

export type Row = Readonly<Record<string, unknown>>;

type Done<R extends pg.QueryResultRow> = (error: Error | null, result?: pg.QueryResult<R>) => void;

/** A pool in the form that knex accepts. */
export interface Pool {
  acquire(): { readonly promise: Promise<PooledConnection> };
  release(connection: PooledConnection): boolean;
  /** Closes all connections, by force if they do not end in time. */
  destroy(): Promise<void>;
  run<R extends pg.QueryResultRow = Row>(statement: Statement): Promise<readonly R[]>;
  numFree(): number;
  numUsed(): number;
  numPendingAcquires(): number;
}

type TransactionState =
  | { readonly kind: 'none' }
  /** The BEGIN is sent together with the first statement. */
  | { readonly kind: 'pending'; readonly begin: string }
  | { readonly kind: 'open' }
  /** The COMMIT or ROLLBACK was sent. */
  | { readonly kind: 'over' };

/** PostgreSQL ends an idle transaction, with its locks, after this time, in case its owner is stopped or cut off. */
const MAX_IDLE_TRANSACTION = '10s';
/** A pooler may give each transaction another connection, with settings of its own. */
const LIMIT = `set local idle_in_transaction_session_timeout = '${MAX_IDLE_TRANSACTION}'`;
const BEGINS = /^\s*(begin\b[^;]*);?\s*$/i;
const ROLLBACK = /^\s*rollback\s*;?\s*$/i;
const ENDS = /^\s*(?:rollback|commit)\s*;?\s*$/i;
const NO_RESULT = { command: '', rowCount: 0, oid: 0, fields: [], rows: [] };
const CLOSE_TIMEOUT_MS = 2000;
const IDLE_TIMEOUT_MS = 30_000;

let connections = 0;

/** One use of a connection: by one statement, or by one transaction. */
export class PooledConnection {
  /** knex reads it. */
  readonly __knexUid = `c${++connections}`;
  readonly #client: pg.PoolClient;
  readonly #options: PoolOptions;
  /** The reason why this connection must not be used again. */
  #broken: string | undefined;
  #transaction: TransactionState = { kind: 'none' };

  constructor(client: pg.PoolClient, options: PoolOptions) {
    this.#client = client;
    this.#options = options;
  }

  /** The one method of a pg client that knex calls. */
  query<R extends pg.QueryResultRow = Row>(statement: string | Statement, done: Done<R>): void {
    const text = typeof statement === 'string' ? statement : statement.text;
    const before = this.#transaction;
    // PostgreSQL would run a statement after the transaction's end by itself, and its caller would take it for part of
    // the transaction.
    const refusal = this.#broken ?? (before.kind === 'over' ? 'the transaction is over' : undefined);
    if (refusal !== undefined) {
      // The server rolls a transaction back when its connection ends. A failed ROLLBACK would hide the error before it.
      queueMicrotask(() => (ROLLBACK.test(text) ? done(null, NO_RESULT) : done(new Fault(refusal))));
      return;
    }
    const [, begin] = BEGINS.exec(text) ?? [];
    if (begin !== undefined) this.#transaction = { kind: 'pending', begin };
    else if (before.kind !== 'none') this.#transaction = { kind: ENDS.test(text) ? 'over' : 'open' };
    if (begin !== undefined || (before.kind === 'pending' && this.#transaction.kind === 'over')) {
      queueMicrotask(() => done(null, NO_RESULT));
      return;
    }
    if (before.kind === 'pending') this.#begin(before.begin);
    this.#send(statement, done);
  }

  /** Ends the use. Returns false if the connection must be closed. */
  end(): boolean {
    const isFit = this.#broken === undefined;
    // The last user may still send statements when the connection belongs to another use.
    this.#broken ??= 'the connection was given back';
    const status = this.#client.getTransactionStatus();
    // The user failed to end its transaction. The server rolls it back when the connection ends.
    return isFit && status !== 'T' && status !== 'E';
  }

  /**
   * If BEGIN fails, PostgreSQL may run the statements after it by themselves, so all of them are reported as failed.
   */
  #begin(begin: string): void {
    send(this.#client, `${begin}; ${LIMIT}`, this.#options, (error) => {
      if (error !== null) this.#broken = `a transaction could not be started: ${error.message}`;
    });
  }

  #send<R extends pg.QueryResultRow>(statement: string | Statement, done: Done<R>): void {
    const isRollback = ROLLBACK.test(typeof statement === 'string' ? statement : statement.text);
    send<R>(this.#client, statement, this.#options, (error, result) => {
      if (error === null) {
        if (this.#broken === undefined) done(null, result);
        else done(new Fault(this.#broken));
        return;
      }
      if (isRollback || spoilsConnection(error.cause ?? error)) this.#broken ??= error.message;
      if (isRollback) done(null, NO_RESULT);
      else done(error);
    });
  }
}

export function createPool(options: PoolOptions): Pool {
  // pg writes a statement without waiting for the results of earlier ones. The server answers in order.
  const clients = new pg.Pool({
    ...clientOptions(options),
    pipeline: true,
    max: options.max,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
  });
  const open = new Set<pg.PoolClient>();
  const used = new Map<PooledConnection, pg.PoolClient>();
  let closing: Promise<void> | undefined;
  const stopReporting = options.reports?.pool(() => ({
    max: options.max,
    used: used.size,
    idle: clients.idleCount,
    waiting: clients.waitingCount,
  }));

  clients.on('connect', (client) => {
    open.add(client);
    client.on('end', () => open.delete(client));
    // Without a listener, the failure of a connection would end the process. Its statements fail by themselves.
    client.on('error', () => undefined);
    // Sent together with the first statement. If it fails, the limits of the client remain.
    client.query(sessionSettings(options.queryTimeoutMs)).catch(() => undefined);
  });
  clients.on('error', () => undefined);

  async function acquire(): Promise<PooledConnection> {
    const client = await clients.connect().catch((error: unknown) => {
      throw connectionFault(error);
    });
    const connection = new PooledConnection(client, options);
    used.set(connection, client);
    return connection;
  }

  function release(connection: PooledConnection): boolean {
    const client = used.get(connection);
    if (client === undefined) return false;
    used.delete(connection);
    client.release(!connection.end());
    return true;
  }

  async function close(): Promise<void> {
    stopReporting?.();
    const cut = setTimeout(() => {
      for (const client of open) client.connection.stream.destroy();
      for (const connection of used.keys()) release(connection);
    }, CLOSE_TIMEOUT_MS);
    await clients.end();
    while (open.size > 0) {
      await Promise.all([...open].map((client) => new Promise((resolve) => client.once('end', resolve))));
    }
    clearTimeout(cut);
  }

  return {
    acquire: () => ({ promise: acquire() }),
    release,
    destroy: () => {
      closing ??= close();
      return closing;
    },
    async run<R extends pg.QueryResultRow>(statement: Statement) {
      const connection = await acquire();
      try {
        return await runOn<R>(connection, statement);
      } finally {
        release(connection);
      }
    },
    numFree: () => clients.idleCount,
    numUsed: () => used.size,
    numPendingAcquires: () => clients.waitingCount,
  };
}

export function runOn<R extends pg.QueryResultRow = Row>(
  connection: PooledConnection,
  statement: Statement,
): Promise<readonly R[]> {
  return new Promise((resolve, reject) => {
    connection.query<R>(statement, (error, result) => (error === null ? resolve(result?.rows ?? []) : reject(error)));
  });
}

/**
 * The form of dates, which a database or a role may set to one that the client cannot read, and the time limits that
 * PostgreSQL enforces on a connection. They are below the client's, so that the result still arrives. The lock timeout
 * is the lowest, because callers that wait for one lock must leave connections to others.
 */
function sessionSettings(queryTimeoutMs: number): string {
  return `set datestyle = 'ISO';
    set statement_timeout = ${Math.ceil(queryTimeoutMs * 0.875)};
    set lock_timeout = ${Math.ceil(queryTimeoutMs * 0.5)};
    set idle_in_transaction_session_timeout = '${MAX_IDLE_TRANSACTION}'`;
}

/** The options of every connection. */
export function clientOptions(options: Pick<PoolOptions, 'url' | 'acquireTimeoutMs'>): pg.ClientConfig {
  return {
    connectionString: options.url,
    application_name: 'postern',
    connectionTimeoutMillis: options.acquireTimeoutMs,
    keepAlive: true,
    types: { getTypeParser },
  };
}

/** Ends a connection, by force if the server does not answer in time. */
export async function endClient(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => client.connection.stream.destroy(), CLOSE_TIMEOUT_MS);
  await client.end().catch(() => undefined);
  clearTimeout(cut);
}

function send<R extends pg.QueryResultRow>(
  client: pg.PoolClient,
  statement: string | Statement,
  { queryTimeoutMs: timeoutMs, tracing, reports }: Pick<PoolOptions, 'queryTimeoutMs' | 'tracing' | 'reports'>,
  report: Done<R>,
): void {
  const { text, name, values } = typeof statement === 'string' ? { text: statement } : statement;
  const measured = reports === undefined ? report : measuredStatement(reports, report);
  const done = tracing === undefined ? measured : tracedStatement(tracing, { text, name }, measured);
  let answered = false;
  let late = false;
  const cut = (): void => {
    if (answered) return;
    late = true;
    cancelStatement(client);
    client.connection.stream.destroy();
  };
  // If this process did not run for a time, it first reads an answer that has arrived during that time.
  const timer = setTimeout(() => setImmediate(cut), timeoutMs);
  joinWrites(client.connection.stream);
  const config = {
    text,
    ...(name === undefined ? {} : { name }),
    ...(values === undefined ? {} : { values: [...values] }),
  };
  client.query<R>(config, (error: Error | undefined, result) => {
    answered = true;
    clearTimeout(timer);
    if (error) {
      done(
        late
          ? new Fault(`the database did not answer within ${timeoutMs} ms`, { cause: error })
          : statementError(error),
      );
    } else if (result.command === 'ROLLBACK' && /^\s*commit\b/i.test(text)) {
      // PostgreSQL's answer to a COMMIT after a failed statement: the transaction was rolled back.
      done(new Fault('the transaction could not be committed: a statement in it had failed'));
    } else {
      done(null, result);
    }
  });
}

function measuredStatement<R extends pg.QueryResultRow>({ statement }: DatabaseReports, done: Done<R>): Done<R> {
  const sentMs = performance.now();
  return (error, result) => {
    statement(error === null ? 'success' : error instanceof Fault ? 'fault' : 'error', performance.now() - sentMs);
    done(error, result);
  };
}

const joining = new WeakSet<Writable>();

/** Sends all statements that are written in the same tick by one system call. */
function joinWrites(stream: Writable): void {
  if (joining.has(stream)) return;
  joining.add(stream);
  stream.cork();
  process.nextTick(() => {
    joining.delete(stream);
    stream.uncork();
  });
}

const INT8 = 20;

function getTypeParser(...args: Parameters<typeof pg.types.getTypeParser>): unknown {
  const [oid, format] = args;
  return oid === INT8 && format !== 'binary' ? parseSafeInteger : pg.types.getTypeParser(oid, format);
}

function parseSafeInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} is too large for an exact number`);
  return value;
}
