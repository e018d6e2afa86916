/** How a caller has the stand-in upstream fail, with the header `x-demo`, so that one can see what the gate makes of it. */

export type Fault =
  /** `status=500`: an error instead of an answer. */
  | { readonly kind: 'status'; readonly status: number }
  /** `close-after=3`: the connection ends after so many events of a stream, or bytes of another answer; after 0 there is no answer. */
  | { readonly kind: 'close'; readonly after: number }
  /** `hang-after=3`: after so many nothing more comes, until the caller goes. */
  | { readonly kind: 'hang'; readonly after: number };

/** Undefined for what is none of them: the stand-in then answers as ever. */
export function faultOf(header: string | undefined): Fault | undefined {
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
 * Returns the model that the answer names for `x-demo: long-model=40000`: a name of so many bytes, at most 1,000,000, nearly all of them in
 * characters of three bytes. Returns undefined for any other value.
 */
export function longModelOf(header: string | undefined): string | undefined {
  const bytes = Math.min(MAX_MODEL_BYTES, Number(/^long-model=(\d{1,7})$/.exec(header ?? '')?.[1]));
  return Number.isNaN(bytes) ? undefined : 'm'.repeat(bytes % 3) + WIDE_CHARACTER.repeat(Math.floor(bytes / 3));
}
