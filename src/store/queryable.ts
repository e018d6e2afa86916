/** Whoever can be asked statements: the database, where each stands alone, or a transaction. */

import type { Knex } from 'knex';

/** What the `:name` of a statement stand for, or its `?` in their order. */
export type Bindings = Readonly<Record<string, unknown>> | readonly Knex.RawBinding[];

export interface Queryable {
  /** True where what is asked sees what its transaction did. */
  readonly isTransaction?: boolean;
  /** Runs one statement. Fails with a Fault when the database cannot answer in time, with pg's DatabaseError otherwise. */
  raw<R = unknown>(sql: string, bindings?: Bindings): Promise<R>;
}
