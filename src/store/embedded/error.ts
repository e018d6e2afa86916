/**
 * The embedded PostgreSQL cannot be had. The message is one sentence or two for a person: what is wrong, and what to
 * do.
 */
export class EmbeddedError extends Error {
  override readonly name: string = 'EmbeddedError';
}

/** There is no embedded database where one was to be opened, and none was made. */
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
