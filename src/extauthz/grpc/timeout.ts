/** Reads the `grpc-timeout` header. https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */

const MAX_DIGITS = 8;
const ZERO = 0x30;

/**
 * Returns the timeout in milliseconds, from at most 8 digits and a unit; undefined if there is none. The protocol does
 * not define malformed values. They count as absent, because every call has a bound of its own, and a rejected call
 * would reject a request.
 */
export function readTimeout(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const digits = text.length - 1;
  if (digits < 1 || digits > MAX_DIGITS) return undefined;
  let value = 0;
  for (let at = 0; at < digits; at++) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) return undefined;
    value = value * 10 + digit;
  }
  switch (text[digits]) {
    case 'H':
      return value * 3_600_000;
    case 'M':
      return value * 60_000;
    case 'S':
      return value * 1000;
    case 'm':
      return value;
    case 'u':
      return value / 1000;
    case 'n':
      return value / 1_000_000;
    default:
      return undefined;
  }
}
