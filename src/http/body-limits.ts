/** Size limits of request bodies. */

const KIB = 1024;

/** The limit under /v1/auth, where clients are not authenticated. */
const AUTH_BODY_BYTES = 16 * KIB;
/** The limit of forms with a token: one of 16 KiB, and the other parameters. */
export const EXCHANGE_BODY_BYTES = 20 * KIB;
/** The limit elsewhere, and the maximum of all limits. */
export const MAX_BODY_BYTES = 1024 * KIB;

/** Returns the limit in bytes of an endpoint that states none. */
export function defaultBodyBytes(path: string): number {
  return path.startsWith('/v1/auth/') ? AUTH_BODY_BYTES : MAX_BODY_BYTES;
}

/**
 * The server reports all errors of bodies up to this size. A value can violate several keywords, and each error is an
 * object.
 */
const SMALL_BYTES = 64 * KIB;
const SMALL_VALUES = 1_000;

/** Reports whether the server may collect all errors of a body instead of the first. */
export function isSmall(bytes: number, values: number): boolean {
  return bytes <= SMALL_BYTES && values <= SMALL_VALUES;
}

/** Returns a limit as text, such as `16 KiB` or `1 MiB`. */
export function sizeText(bytes: number): string {
  return bytes % (KIB * KIB) === 0 ? `${bytes / (KIB * KIB)} MiB` : `${bytes / KIB} KiB`;
}
