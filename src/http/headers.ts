/** Raw request headers. Node's parsed headers join or drop repeated ones; these functions report them. */

import { type HeaderValue, REPEATED } from '../decision/model.ts';

/**
 * @param rawHeaders names and values in turn, as Node reports them
 * @param name in lower case
 */
export function headerValue(rawHeaders: readonly string[], name: string): HeaderValue {
  let found: string | undefined;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    if (found !== undefined) return REPEATED;
    found = rawHeaders[i + 1] ?? '';
  }
  return found;
}

/** Returns all lines of a header, joined as one value (RFC 9110, section 5.3). Undefined: there is none. */
export function headerText(rawHeaders: readonly string[], name: string): string | undefined {
  const lines = rawHeaders.filter((_text, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name);
  return lines.length === 0 ? undefined : lines.join(', ');
}

/** Returns the entries of all lines of a header that is a comma-separated list, in order. */
export function headerList(rawHeaders: readonly string[], name: string): readonly string[] {
  return (
    headerText(rawHeaders, name)
      ?.split(',')
      .map((entry) => entry.trim()) ?? []
  );
}
