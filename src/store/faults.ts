/** Which failures of PostgreSQL mean "cannot decide" (a Fault) and which are an answer of the statement itself. */

import pg from 'pg';
import { Fault } from '../domain/errors.ts';

/**
 * SQLSTATE classes and codes (PostgreSQL, appendix A) that say the server cannot serve, whatever was asked: 08
 * connection, 28 authorization, 3D no such database, 53 out of resources, 57P shutting down, 58 system error, 57014
 * cancelled by a time-out, 55P03 lock time-out, 25006 a standby that lost its primary's role, 25P0x time-outs of idle
 * or long transactions.
 */
const FAULT_STATES = /^(08...|28...|3D...|53...|57P0.|58...|57014|55P03|25006|25P0[34])$/;

/** After these the same transaction may succeed when run again: serialization failure, deadlock. */
const RETRYABLE_STATES: ReadonlySet<string> = new Set(['40001', '40P01']);

/** The SQLSTATE of an error, undefined when it did not come from PostgreSQL. `23505` is a unique violation. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** The constraint that a statement broke, as the schema names it; undefined for any other error. */
export function brokenConstraint(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.constraint : undefined;
}

export function isRetryable(error: unknown): boolean {
  return RETRYABLE_STATES.has(sqlState(error) ?? '');
}

/**
 * Turns the failure of a statement into what its caller must see: an answer of the server (a broken constraint, a bad
 * value) stays itself; everything else, known or not, means that the store did not do what it was asked, or nobody
 * knows whether it did.
 */
export function statementError(error: unknown): Error {
  const state = sqlState(error);
  if (error instanceof Error && (error instanceof Fault || (state !== undefined && !FAULT_STATES.test(state)))) {
    return error;
  }
  return connectionFault(error);
}

/** While connecting there is no answer to be had: every failure is a Fault. */
export function connectionFault(error: unknown): Fault {
  if (error instanceof Fault) {
    return error;
  }
  return new Fault(`the database cannot be used: ${reason(error)}`, { cause: error });
}

/** True where the connection itself must not be used again. */
export function spoilsConnection(error: unknown): boolean {
  const state = sqlState(error);
  return state === undefined || state === '25006' || /^(08|57P)/.test(state);
}

function reason(error: unknown): string {
  // A host with several addresses fails with all their reasons at once, and no message of its own.
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(reason).join('; ');
  }
  return error instanceof Error ? error.message : String(error);
}
