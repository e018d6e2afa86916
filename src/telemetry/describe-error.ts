/**
 * Describes an error for logs and traces. Its other members are left out, because libraries attach requests,
 * connections and bound values to errors.
 */

/** A thrown value that is no Error is described by its text or its type. */
export type DescribedError =
  | string
  | {
      readonly type: string;
      readonly message: string;
      readonly code?: string;
      readonly stack?: string | undefined;
      readonly cause?: DescribedError;
    };

const MAX_CAUSES = 5;

/** Returns the description of an error and of at most five causes. */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) {
    return typeof error === 'string' ? error : typeof error;
  }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const cause =
    error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describeError(error.cause, depth + 1) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
