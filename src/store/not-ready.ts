/**
 * A database that this program must not use as it is: there is none, or its schema is another one. The message says
 * what to do.
 */
export class DatabaseNotReadyError extends Error {
  override readonly name = 'DatabaseNotReadyError';
}
