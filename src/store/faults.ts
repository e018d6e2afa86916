/** Distinguishes failures of the database (a Fault) from errors that a statement itself causes (pg's DatabaseError). */

import pg from 'pg';
import { Fault, reasonOf } from '../domain/errors.ts';

/**
 * SQLSTATE classes and codes (PostgreSQL, appendix A) of a server that cannot serve, independent of the statement: 08
 * connection, 28 authorization, 3D no such database, 53 out of resources, 57P shutdown, 58 system error, 57014 canceled
 * by a timeout, 55P03 lock timeout, 25006 a standby that is no longer primary, 25P0x timeouts of idle or long
 * transactions.
 */
const FAULT_STATES = /^(08...|28...|3D...|53...|57P0.|58...|57014|55P03|25006|25P0[34])$/;

/** After a fail-over, a name or a pooler may still lead to the former primary. */
const READ_ONLY = '25006';

/** Serialization failure and deadlock: the transaction may succeed in another attempt. */
const RETRYABLE_STATES: ReadonlySet<string> = new Set(['40001', '40P01']);

/** The SQLSTATE of an error; undefined if it did not come from PostgreSQL. `23505` is a unique violation. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The name of the violated constraint; undefined for any other error. */
export function brokenConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.constraint : undefined;
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE_STATES.has(sqlState(error) ?? '');
}

/** Reports whether the database serves, but another transaction kept a row locked for too long. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error instanceof Fault ? error.cause : error) === '55P03';
}

/**
 * Returns the error for a statement's caller. An error that the statement caused (a violated constraint, an invalid
 * value) stays as it is. Every other error is a Fault: the statement did not run, or its outcome is unknown.
 */
export function statementError(error: unknown): Error {
  const state = sqlState(error);
  if (error instanceof Error && (error instanceof Fault || (state !== undefined && !FAULT_STATES.test(state)))) {
    return error;
  }
  return connectionFault(error);
}

/** Returns a Fault for any error. */
export function connectionFault(error: unknown): Fault {
  if (error instanceof Fault) return error;
  const advice =
    sqlState(error) === READ_ONLY
      ? '. The server is a standby or read-only: database.url must lead to the primary'
      : '';
  return new Fault(`the database cannot be used: ${reasonOf(error)}${advice}`, { cause: error });
}

/** Reports whether the connection must not be used again. */
export function spoilsConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state === READ_ONLY || /^(08|57P)/.test(state);
}
