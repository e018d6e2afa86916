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
