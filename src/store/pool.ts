/**
 * One pool of connections, for knex and for prepared statements alike. It bounds every wait: for a free connection, for
 * a new one, and for each answer. PostgreSQL itself ends a statement that waits too long for a lock or takes too long,
 * so the connection serves the next statement. If no answer comes even then, the server hangs, the network is cut, or a
 * pooler has dropped the limits. The statement is then cancelled and loses its connection, and its caller gets a Fault,
 * because the outcome is unknown.
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
  readonly url: string;
  readonly max: number;
  /** The longest wait for a connection, new or in use by others. */
  readonly acquireTimeoutMs: number;
  /** The longest wait for the answer to one statement. */
  readonly queryTimeoutMs: number;
  /** Default: no traces. */
  readonly tracing?: Tracing | undefined;
  /** Default: no metrics. */
  readonly reports?: DatabaseReports | undefined;
}

/** A statement; one with a name is prepared once per connection. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values?: readonly unknown[];
}

export type Row = Readonly<Record<string, unknown>>;

type Done<R extends pg.QueryResultRow> = (error: Error | null, result?: pg.QueryResult<R>) => void;

/** A connection for knex: it has the one method of a pg client that knex calls. */
export interface PooledConnection {
  readonly __knexUid: string;
  query<R extends pg.QueryResultRow = Row>(statement: string | Statement, done: Done<R>): void;
}

export interface Pool {
  acquire(): { readonly promise: Promise<PooledConnection> };
  release(connection: PooledConnection): boolean;
  /** Closes all connections; those that do not say goodbye in time are cut. */
  destroy(): Promise<void>;
  run<R extends pg.QueryResultRow = Row>(statement: Statement): Promise<readonly R[]>;
  numFree(): number;
  numUsed(): number;
  numPendingAcquires(): number;
}

interface Use {
  readonly client: pg.PoolClient;
  /** Why this connection must not be used again; undefined while it may. */
  broken: string | undefined;
  transaction: TransactionState;
}

type TransactionState =
  | { readonly kind: 'none' }
  /** The BEGIN is sent together with the first statement. */
  | { readonly kind: 'pending'; readonly begin: string }
  | { readonly kind: 'open' }
  /** The COMMIT or ROLLBACK was sent. */
  | { readonly kind: 'over' };

/** PostgreSQL lets a transaction sit idle with its locks for at most this time, if its owner is stopped or cut off. */
const MAX_IDLE_TRANSACTION = '10s';
/** A pooler may give each transaction another connection, with settings of its own. */
const LIMIT = `set local idle_in_transaction_session_timeout = '${MAX_IDLE_TRANSACTION}'`;
const BEGINS = /^\s*(begin\b[^;]*);?\s*$/i;
const ROLLBACK = /^\s*rollback\s*;?\s*$/i;
const ENDS = /^\s*(?:rollback|commit)\s*;?\s*$/i;
const NO_RESULT = { command: '', rowCount: 0, oid: 0, fields: [], rows: [] };
const CLOSE_TIMEOUT_MS = 2000;
const IDLE_TIMEOUT_MS = 30_000;

export function createPool(options: PoolOptions): Pool {
  // Statements are written as they come, without waiting for the answers of those before; the server answers in order.
  const clients = new pg.Pool({
    ...clientOptions(options),
    pipeline: true,
    max: options.max,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
  });
  const open = new Set<pg.PoolClient>();
  const held = new Map<PooledConnection, Use>();
  let connections = 0;
  let closing: Promise<void> | undefined;
  const hide = options.reports?.pool(() => ({
    max: options.max,
    used: held.size,
    idle: clients.idleCount,
    waiting: clients.waitingCount,
  }));

  clients.on('connect', (client) => {
    open.add(client);
    client.on('end', () => open.delete(client));
    // A connection may fail while it is in use or idle; without a listener that would end the process. Its statements
    // fail by themselves.
    client.on('error', () => undefined);
    // Sent together with the first statement. If it fails, the limits of the client remain.
    client.query(serverLimits(options.queryTimeoutMs)).catch(() => undefined);
  });
  clients.on('error', () => undefined);

  async function acquire(): Promise<PooledConnection> {
    const client = await clients.connect().catch((error: unknown) => {
      throw connectionFault(error);
    });
    const use: Use = { client, broken: undefined, transaction: { kind: 'none' } };
    const connection: PooledConnection = {
      __knexUid: `c${++connections}`,
      query<R extends pg.QueryResultRow>(statement: string | Statement, done: Done<R>) {
        const text = typeof statement === 'string' ? statement : statement.text;
        const { transaction } = use;
        // PostgreSQL would run a statement after the transaction's end by itself, and its caller would take it for part
        // of the transaction.
        const refusal = use.broken ?? (transaction.kind === 'over' ? 'the transaction is over' : undefined);
        if (refusal !== undefined) {
          // The server rolls a transaction back when its connection ends. A failed ROLLBACK would only hide the error
          // before it.
          queueMicrotask(() => (ROLLBACK.test(text) ? done(null, NO_RESULT) : done(new Fault(refusal))));
          return;
        }
        const [, begin] = BEGINS.exec(text) ?? [];
        if (begin !== undefined) use.transaction = { kind: 'pending', begin };
        else if (transaction.kind !== 'none') use.transaction = { kind: ENDS.test(text) ? 'over' : 'open' };
        if (begin !== undefined || (transaction.kind === 'pending' && use.transaction.kind === 'over')) {
          queueMicrotask(() => done(null, NO_RESULT));
          return;
        }
        if (transaction.kind === 'pending') {
          // PostgreSQL answers it first. If it fails, the statements after it may run by themselves, so all of them are
          // reported as failed.
          send(client, `${transaction.begin}; ${LIMIT}`, options, (error) => {
            if (error !== null) use.broken = `a transaction could not be started: ${error.message}`;
          });
        }
        send<R>(client, statement, options, (error, result) => {
          if (error !== null && spoilsConnection(error.cause ?? error)) use.broken ??= error.message;
          if (error !== null && ROLLBACK.test(text)) {
            use.broken ??= error.message;
            done(null, NO_RESULT);
          } else if (error === null && use.broken !== undefined) done(new Fault(use.broken));
          else done(error, result);
        });
      },
    };
    held.set(connection, use);
    return connection;
  }

  function release(connection: PooledConnection): boolean {
    const use = held.get(connection);
    if (use === undefined) {
      return false;
    }
    held.delete(connection);
    // Should its last holder still ask, it may be somebody else's by now.
    const unfit = use.broken !== undefined;
    use.broken ??= 'the connection was given back';
    const status = use.client.getTransactionStatus();
    // An open transaction means that its owner failed to end it; the server rolls it back when the connection goes.
    use.client.release(unfit || status === 'T' || status === 'E');
    return true;
  }

  async function close(): Promise<void> {
    hide?.();
    const cut = setTimeout(() => {
      for (const client of open) {
        client.connection.stream.destroy();
      }
      for (const connection of held.keys()) {
        release(connection);
      }
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
    numUsed: () => held.size,
    numPendingAcquires: () => clients.waitingCount,
  };
}

/** Runs one statement on a connection in hand. */
export function runOn<R extends pg.QueryResultRow = Row>(
  connection: PooledConnection,
  statement: Statement,
): Promise<readonly R[]> {
  return new Promise((resolve, reject) => {
    connection.query<R>(statement, (error, result) => (error === null ? resolve(result?.rows ?? []) : reject(error)));
  });
}

/**
 * The time limits that PostgreSQL enforces on a connection. They are below the client's, so that the answer still
 * arrives. Waiting for a lock ends first: callers that wait for one lock must leave connections to all others.
 */
function serverLimits(queryTimeoutMs: number): string {
  return `set statement_timeout = ${Math.ceil(queryTimeoutMs * 0.875)};
    set lock_timeout = ${Math.ceil(queryTimeoutMs * 0.5)};
    set idle_in_transaction_session_timeout = '${MAX_IDLE_TRANSACTION}'`;
}

/** How any connection of ours is opened. */
export function clientOptions(options: Pick<PoolOptions, 'url' | 'acquireTimeoutMs'>): pg.ClientConfig {
  return {
    connectionString: options.url,
    application_name: 'postern',
    connectionTimeoutMillis: options.acquireTimeoutMs,
    keepAlive: true,
    types: { getTypeParser },
  };
}

/** Says goodbye to the server, and hangs up when it does not answer. */
export async function endClient(client: pg.Client): Promise<void> {
  const cut = setTimeout(() => client.connection.stream.destroy(), CLOSE_TIMEOUT_MS);
  await client.end().catch(() => undefined);
  clearTimeout(cut);
}

function send<R extends pg.QueryResultRow>(
  client: pg.PoolClient,
  statement: string | Statement,
  { queryTimeoutMs: timeoutMs, tracing, reports }: Pick<PoolOptions, 'queryTimeoutMs' | 'tracing' | 'reports'>,
  unmeasured: Done<R>,
): void {
  const { text, name, values } = typeof statement === 'string' ? { text: statement } : statement;
  const untraced = reports === undefined ? unmeasured : measuredStatement(reports, unmeasured);
  const done = tracing === undefined ? untraced : tracedStatement(tracing, { text, name }, untraced);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    cancelStatement(client);
    client.connection.stream.destroy();
  }, timeoutMs);
  gatherWrites(client.connection.stream);
  const config = {
    text,
    ...(name === undefined ? {} : { name }),
    ...(values === undefined ? {} : { values: [...values] }),
  };
  client.query<R>(config, (error: Error | undefined, result) => {
    clearTimeout(timer);
    if (error) {
      done(
        late
          ? new Fault(`the database did not answer within ${timeoutMs} ms`, { cause: error })
          : statementError(error),
      );
    } else if (result.command === 'ROLLBACK' && /^\s*commit\b/i.test(text)) {
      // PostgreSQL answers so when a statement before it failed: nothing was kept, and nobody may believe otherwise.
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

const gathering = new WeakSet<Writable>();

/** What is written until the work at hand is done goes out by one system call. */
function gatherWrites(stream: Writable): void {
  if (gathering.has(stream)) return;
  gathering.add(stream);
  stream.cork();
  process.nextTick(() => {
    gathering.delete(stream);
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
  if (!Number.isSafeInteger(value)) {
    throw new RangeError(`${text} is too large for an exact number`);
  }
  return value;
}
