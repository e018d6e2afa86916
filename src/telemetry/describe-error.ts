/** What logs and traces say of an error. Its other members stay out: libraries hang requests, connections and bound values on them. */

/** A text or the name of a type describes a thrown value that is no Error. */
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

/** Returns what is said of an error and of up to five causes. */
export function describeError(error: unknown, depth = 0): DescribedError {
  if (!(error instanceof Error)) {
    return typeof error === 'string' ? error : typeof error;
  }
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  const cause =
    error.cause === undefined || depth >= MAX_CAUSES ? {} : { cause: describeError(error.cause, depth + 1) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
