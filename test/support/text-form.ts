/** The check that a proxy sends for a request without `pack_as_bytes` and without `encode_raw_headers`. */

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The length of the UTF-8 character at a position; 0 if no character begins there. */
function characterLength(bytes: Uint8Array, at: number): number {
  for (let length = 1; length <= 4 && at + length <= bytes.length; length++) {
    try {
      strict.decode(bytes.subarray(at, at + length));
      return length;
    } catch {
      // Perhaps a longer one.
    }
  }
  return 0;
}

/** Returns the bytes as text, with a replacement for each byte that belongs to no UTF-8 character. */
export function replacingInvalid(bytes: Uint8Array, replacement: string): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = characterLength(bytes, at);
    text += length === 0 ? replacement : strict.decode(bytes.subarray(at, at + length));
    at += Math.max(1, length);
  }
  return text;
}

/** Returns the bytes as Envoy sends them in a field of text: an exclamation mark for each byte that is not UTF-8. */
export function asText(bytes: Uint8Array): string {
  return replacingInvalid(bytes, '!');
}

/** Returns headers as Envoy sends them in a map: the values of a repeated name joined by commas. */
export function joinedHeaders(
  headers: readonly (readonly [string, string | Uint8Array])[],
): (readonly [string, string])[] {
  const joined = new Map<string, string>();
  for (const [name, value] of headers) {
    const text = asText(Buffer.from(value));
    const before = joined.get(name);
    joined.set(name, before === undefined ? text : `${before},${text}`);
  }
  return [...joined];
}
