/** Both the database and a transaction run statements: with the query builder, or as `raw` SQL with named bindings. */

import type { Knex } from 'knex';

/** Statements fail with a Fault if the database does not answer in time, and with pg's DatabaseError if it rejects them. */
export type Queryable = Knex;
