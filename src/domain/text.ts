/** Cuts and compares texts. */

/** C0 controls, DEL and C1 controls. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
export const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;

const encoder = new TextEncoder();

/**
 * Returns the longest beginning of `text` that has at most `maxBytes` bytes in UTF-8 and ends at a character border.
 */
export function cutUtf8(text: string, maxBytes: number): string {
  // No UTF-16 code unit takes more than three bytes.
  if (text.length * 3 <= maxBytes) return text;
  const { read } = encoder.encodeInto(text, new Uint8Array(maxBytes));
  return text.slice(0, read);
}

/**
 * Returns Levenshtein's distance: the letters that are wrong, missing or too many. Returns `limit` for any distance of
 * `limit` or more. The work is at most the product of both lengths.
 */
export function editDistance(a: string, b: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    let least = i;
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const distance = Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
      next.push(distance);
      least = Math.min(least, distance);
    }
    // The least distance of a row never falls again.
    if (least >= limit) return limit;
    row = next;
  }
  return Math.min(limit, row[b.length] ?? 0);
}

/** Orders texts by their UTF-16 units, as a sort without a function does. */
export function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
