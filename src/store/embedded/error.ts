/** The embedded PostgreSQL is unusable. The message states the cause and the next step. */
export class EmbeddedError extends Error {
  override readonly name: string = 'EmbeddedError';
}

/** There is no embedded database, and the caller did not permit creating one. */
export class NoEmbeddedDatabaseError extends EmbeddedError {
  override readonly name = 'NoEmbeddedDatabaseError';
}
