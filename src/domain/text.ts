/** Text of bounded length. */

const encoder = new TextEncoder();

/** Returns the longest beginning of `text` that has at most `maxBytes` bytes in UTF-8 and ends at a character border. */
export function cutUtf8(text: string, maxBytes: number): string {
  // No UTF-16 code unit takes more than three bytes.
  if (text.length * 3 <= maxBytes) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}
