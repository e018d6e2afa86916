/** How large the body of a request may be. Each endpoint has a limit; most take bodies of a few hundred bytes. */

const KIB = 1024;

/** Under /v1/auth, where a client need not prove anything, and of endpoints whose body has no members. */
export const AUTH_BODY_BYTES = 16 * KIB;
/** Of other endpoints by default: more than any body of theirs that passes its schema. */
export const BODY_BYTES = 64 * KIB;
/** Of a request to explain: as much as a path and a body that are asked about may take. */
export const EXPLAIN_BODY_BYTES = 256 * KIB;
/** Of endpoints that take lists of patterns, constraints or rows; the limit of every body. */
export const MAX_BODY_BYTES = 1024 * KIB;

/** The limit in bytes of an endpoint that declares none. */
export function defaultBodyBytes(endpoint: { readonly path: string; readonly body: object }): number {
  const takesMembers = 'properties' in endpoint.body && Object.keys(Object(endpoint.body.properties)).length > 0;
  return endpoint.path.startsWith('/v1/auth/') || !takesMembers ? AUTH_BODY_BYTES : BODY_BYTES;
}

/** Bodies that all errors are looked for in. A value can break several keywords, and each error is an object. */
const SMALL_BYTES = 64 * KIB;
const SMALL_VALUES = 1_000;

/** Reports whether all errors of a body may be collected, rather than the first. */
export function isSmall(bytes: number, values: number): boolean {
  return bytes <= SMALL_BYTES && values <= SMALL_VALUES;
}

/** A limit as people write it: `16 KiB`, `1 MiB`. */
export function sizeText(bytes: number): string {
  return bytes % (KIB * KIB) === 0 ? `${bytes / (KIB * KIB)} MiB` : `${bytes / KIB} KiB`;
}
