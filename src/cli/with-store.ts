/** Opens a ready database for a command, and closes it at the end. It neither creates nor migrates a database. */

import { randomBytes } from 'node:crypto';
import { orNotFound } from '../iam/caller/refusals.ts';
import { findTenant } from '../iam/tenants/queries.ts';
import { openReadyStore, type Store } from '../server/store.ts';
import type { Database } from '../store/database.ts';
import type { Page, PageRows } from '../store/paging.ts';
import type { Queryable } from '../store/queryable.ts';
import { databaseTime } from '../store/time.ts';
import { startLogging } from '../telemetry/log.ts';
import { type Arguments, tenantOption } from './arguments.ts';
import { type LoadedConfig, loadOrRefuse } from './configuration.ts';

/** Rejects with a DatabaseNotReadyError if there is no database, or if its schema is not that of this version. */
export async function withStore<T>(
  args: Arguments,
  work: (store: Store, loaded: LoadedConfig, parts: OperatorParts) => Promise<T>,
): Promise<T> {
  const loaded = await loadOrRefuse(args);
  const store = await openReadyStore(loaded.config, loaded.secrets, startLogging({ level: 'warn' }));
  try {
    return await work(store, loaded, await operatorParts(store.db));
  } finally {
    await store.close();
  }
}

/** Statements that read or write many rows, or wait for another setup, take longer than a request may. */
const LONG_TIMEOUT_MS = 60_000;
const PAGE_ROWS = 200;

/** Runs `work` on connections whose statements may take longer than those of requests. */
export async function withLongTimeout<T>(
  db: Database,
  poolMax: number,
  work: (longTimeoutDb: Database) => Promise<T>,
): Promise<T> {
  const longTimeoutDb = db.reopen({ queryTimeoutMs: LONG_TIMEOUT_MS, poolMax });
  try {
    return await work(longTimeoutDb);
  } finally {
    await longTimeoutDb.close();
  }
}

/** For use cases in a process without a credential cache: there is nothing to bring up to date. */
export const NO_CACHE = { feed: { catchUp: async () => undefined }, flush: () => undefined };

/** Returns the parts of a change by the operator. Its times are those of the database's clock. */
export async function operatorParts(db: Database) {
  const aheadMs = (await databaseTime(db.knex)).date.getTime() - Date.now();
  return { db, ...NO_CACHE, now: () => Date.now() + aheadMs, random: (size: number) => randomBytes(size) };
}

export type OperatorParts = Awaited<ReturnType<typeof operatorParts>>;

/** The tenants of a list: that of `--tenant`, or all. @throws Refusal `not_found` for a tenant that does not exist */
export async function scopeOption(args: Arguments, q: Queryable) {
  const tenant = tenantOption(args);
  if (tenant === undefined) return { kind: 'every' } as const;
  orNotFound(await findTenant(q, tenant), 'tenant');
  return { kind: 'one', tenant } as const;
}

/**
 * Prints a line for each row of a list, page by page.
 * @param cursorOf the values of a row that the next page begins after
 */
export async function printList<Row>(
  list: (page: Page) => Promise<PageRows<Row>>,
  cursorOf: (row: Row) => readonly string[],
  linesOf: (rows: readonly Row[]) => readonly string[] | Promise<readonly string[]>,
): Promise<void> {
  for (let after: readonly string[] | undefined; ; ) {
    const { rows, more } = await list({ after, take: PAGE_ROWS });
    for (const line of await linesOf(rows)) process.stdout.write(line);
    const last = rows.at(-1);
    if (!more || last === undefined) return;
    after = cursorOf(last);
  }
}
