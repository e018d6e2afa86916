/** Content negotiation: selects the media type that the client prefers (RFC 9110, section 12.5.1). */

interface Range {
  readonly type: string;
  readonly quality: number;
}

/** Limits the ranges of one header and the parameters of one range. Browsers send about eight ranges. */
const MAX_RANGES = 64;
const MAX_PARAMETERS = 8;

/**
 * Returns the offered type that the client prefers, or the first one if the client accepts none of them.
 * @param accept the header; empty if there is none
 * @param offered in the server's order, its default first
 */
export function preferredType(accept: string, offered: readonly [string, ...string[]]): string {
  const ranges = accept.split(',', MAX_RANGES).map(readRange);
  let [best] = offered;
  let bestQuality = 0;
  for (const type of offered) {
    const quality = qualityOf(type, ranges);
    if (quality > bestQuality) {
      best = type;
      bestQuality = quality;
    }
  }
  return best;
}

function readRange(text: string): Range {
  const [type = '', ...parameters] = text.split(';', MAX_PARAMETERS).map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const quality = weight === undefined ? 1 : Number(weight.slice(2));
  return { type, quality: quality >= 0 && quality <= 1 ? quality : 0 };
}

/** Returns the quality of the most specific range that covers the type. */
function qualityOf(type: string, ranges: readonly Range[]): number {
  const group = `${type.split('/', 1)[0]}/*`;
  for (const covering of [type, group, '*/*']) {
    const range = ranges.find((each) => each.type === covering);
    if (range !== undefined) return range.quality;
  }
  return 0;
}
