/** The header `traceparent` (W3C Trace Context, section 3.2). */

interface TraceParent {
  /** 32 hexadecimal digits, not all zeros. */
  readonly traceId: string;
  /** 16 hexadecimal digits, not all zeros. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Version 00 ends after the flags. A later version may continue after a dash. */
const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const ZEROS = /^0+$/;
const MAX_LENGTH = 256;

export function readTraceparent(header: string | undefined): TraceParent | undefined {
  if (header === undefined || header.length > MAX_LENGTH) return undefined;
  const [, version, traceId, spanId, flags, more] = FORM.exec(header) ?? [];
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === 'ff' || (version === '00' && more !== undefined) || ZEROS.test(traceId) || ZEROS.test(spanId))
    return undefined;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
