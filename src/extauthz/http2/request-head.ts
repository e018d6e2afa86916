/** Reads a request's header list, and detects a malformed one (RFC 9113, sections 8.1.1, 8.2 and 8.3.1). */

/** The fields of a request that this server uses. Texts are Latin-1. */
export interface RequestHead {
  readonly method: string;
  readonly path: string;
  readonly contentType: string | undefined;
  /** The header `grpc-timeout`. */
  readonly timeout: string | undefined;
  /** In bytes; -1 = absent. */
  readonly contentLength: number;
}

/** A token (RFC 9110, section 5.6.2) without upper-case letters. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** NUL, CR and LF anywhere; space or tab at either end (RFC 9113, section 8.2.1). */
const BAD_VALUE = /[\0\r\n]|^[ \t]|[ \t]$/;
const DIGITS = /^[0-9]{1,15}$/;
/** RFC 9113, section 8.2.2 */
const CONNECTION_SPECIFIC: ReadonlySet<string> = new Set([
  'connection',
  'proxy-connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
]);

/** @returns undefined if the request is malformed */
export function readRequestHead(fields: readonly string[]): RequestHead | undefined {
  const pseudo = readPseudo(fields);
  if (pseudo === undefined) return undefined;
  const { method, path, count } = pseudo;
  let contentType: string | undefined;
  let timeout: string | undefined;
  let contentLength = -1;
  for (let i = 2 * count; i < fields.length; i += 2) {
    const [name = '', value = ''] = [fields[i], fields[i + 1]];
    if (!isRegular(name, value)) return undefined;
    if (name === 'content-type') contentType ??= value;
    else if (name === 'grpc-timeout') timeout ??= value;
    else if (name === 'content-length') {
      const length = DIGITS.test(value) ? Number(value) : -1;
      if (length < 0 || (contentLength >= 0 && contentLength !== length)) return undefined;
      contentLength = length;
    }
  }
  return { method, path, contentType, timeout, contentLength };
}

/** Reports whether a header list is valid after a request's content (section 8.1): regular fields only. */
export function areTrailers(fields: readonly string[]): boolean {
  for (let i = 0; i < fields.length; i += 2) if (!isRegular(fields[i] ?? '', fields[i + 1] ?? '')) return false;
  return true;
}

/** Pseudo-header fields come first, each once, and only those of a request. The server does not support CONNECT. */
function readPseudo(
  fields: readonly string[],
): { readonly method: string; readonly path: string; readonly count: number } | undefined {
  let method: string | undefined;
  let path: string | undefined;
  let scheme: string | undefined;
  let authority: string | undefined;
  let count = 0;
  for (; count * 2 < fields.length; count++) {
    const [name = '', value = ''] = [fields[2 * count], fields[2 * count + 1]];
    if (!name.startsWith(':')) break;
    if (BAD_VALUE.test(value)) return undefined;
    if (name === ':method' && method === undefined) method = value;
    else if (name === ':path' && path === undefined) path = value;
    else if (name === ':scheme' && scheme === undefined) scheme = value;
    else if (name === ':authority' && authority === undefined) authority = value;
    else return undefined;
  }
  if (method === undefined || !path || !scheme) return undefined;
  if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) return undefined;
  return { method, path, count };
}

function isRegular(name: string, value: string): boolean {
  if (!NAME.test(name) || BAD_VALUE.test(value) || CONNECTION_SPECIFIC.has(name)) return false;
  return name !== 'te' || value === 'trailers';
}
