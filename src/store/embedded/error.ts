/** The embedded PostgreSQL is unusable. The message states the cause and the next step. */
export class EmbeddedError extends Error {
  override readonly name: string = 'EmbeddedError';
}

/** There is no embedded database, and the caller did not permit creating one. */
export class NoEmbeddedDatabaseError extends EmbeddedError {
  override readonly name = 'NoEmbeddedDatabaseError';
}

/** The `code` of a system error, such as `ENOENT`; undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
