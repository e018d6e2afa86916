/** Below this, the difference may be the time that the answer took. */
const NEGLIGIBLE_MS = 60_000;

/** Undefined: no answer has come yet. */
let aheadMs: number | undefined;

/**
 * Compares the clock of the machine with the server's, once. With a wrong clock, the page would show keys as expired
 * that are not, and the last hour would be an hour without requests.
 *
 * @param date the server's time, as the `Date` header has it
 */
export function noteServerTime(date: string | null): void {
  const differenceMs = Date.parse(date ?? '') - Date.now();
  if (aheadMs === undefined && !Number.isNaN(differenceMs)) {
    aheadMs = Math.abs(differenceMs) < NEGLIGIBLE_MS ? 0 : differenceMs;
  }
}

/** Milliseconds since the epoch by the server's clock, or by the machine's until an answer has come. */
export function serverNow(): number {
  return Date.now() + (aheadMs ?? 0);
}
