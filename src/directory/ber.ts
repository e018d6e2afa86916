/** The encoding of LDAP's messages (RFC 4511, section 5.1), of answers that the client library does not read. */

export const SEQUENCE = 0x30;

interface Element {
  readonly tag: number;
  readonly content: Uint8Array;
  readonly rest: Uint8Array;
}

/**
 * Reads the first element, with either definite form of its length (X.690, section 8.1.3): 389 Directory Server writes
 * five bytes instead of one.
 * @returns undefined if it is incomplete, or has another form
 */
export function readElement(bytes: Uint8Array): Element | undefined {
  const [tag, first] = bytes;
  if (tag === undefined || first === undefined || first === 0x80) return undefined;
  const lengthBytes = first < 0x80 ? 0 : first & 0x7f;
  const start = 2 + lengthBytes;
  if (lengthBytes > 4 || bytes.length < start) return undefined;
  const length = lengthBytes === 0 ? first : bytes.subarray(2, start).reduce((sum, byte) => sum * 256 + byte, 0);
  if (bytes.length < start + length) return undefined;
  return { tag, content: bytes.subarray(start, start + length), rest: bytes.subarray(start + length) };
}
