/** Faults of the stand-in upstream, which the client requests with the header `x-demo`. */

export type UpstreamFault =
  /** `status=500`: an error instead of an answer. */
  | { readonly kind: 'status'; readonly status: number }
  /** `close-after=3`: the connection ends after three events of a stream, or three bytes of another answer. */
  | { readonly kind: 'close'; readonly after: number }
  /** `hang-after=3`: after three of them, the upstream sends nothing until the client closes the connection. */
  | { readonly kind: 'hang'; readonly after: number };

/** Returns undefined for any other value: the upstream then answers as usual. */
export function faultOf(header: string | undefined): UpstreamFault | undefined {
  const [, name, digits] = /^(status|close-after|hang-after)=(\d{1,9})$/.exec(header ?? '') ?? [];
  const value = Number(digits);
  switch (name) {
    case 'status':
      return value >= 400 && value <= 599 ? { kind: 'status', status: value } : undefined;
    case 'close-after':
      return { kind: 'close', after: value };
    case 'hang-after':
      return { kind: 'hang', after: value };
    default:
      return undefined;
  }
}

const MAX_MODEL_BYTES = 1_000_000;
/** Three bytes in UTF-8. */
const WIDE_CHARACTER = '語';

/**
 * Returns the answer's model for `x-demo: long-model=40000`: a name of 40,000 bytes (at most 1,000,000), mostly in
 * characters of three bytes. Returns undefined for any other value.
 */
export function longModelOf(header: string | undefined): string | undefined {
  const bytes = Math.min(MAX_MODEL_BYTES, Number(/^long-model=(\d{1,7})$/.exec(header ?? '')?.[1]));
  return Number.isNaN(bytes) ? undefined : 'm'.repeat(bytes % 3) + WIDE_CHARACTER.repeat(Math.floor(bytes / 3));
}
