/** When the quota of a month is used up. */

const DAY_MS = 86_400_000;
const HALF_DAY_MS = DAY_MS / 2;
/** From a shorter part of a month nothing follows for the rest of it. */
const LEAST_PACE_MS = 2 * DAY_MS;

interface Month {
  readonly limit: number | null;
  readonly used: number | null;
  readonly resetsAt: string | null;
}

/**
 * Returns when the quota is used up at the average usage of the month; undefined if that is after the reset, or if
 * there is no usage yet.
 */
export function paceEnds({ limit, used, resetsAt }: Month, nowMs: number): number | undefined {
  if (limit === null || used === null || resetsAt === null || used <= 0 || used >= limit) return undefined;
  const endMs = Date.parse(resetsAt);
  // At half a day before its end, hardly any zone is in another calendar month than UTC.
  const within = new Date(endMs - HALF_DAY_MS);
  const days = new Date(Date.UTC(within.getUTCFullYear(), within.getUTCMonth() + 1, 0)).getUTCDate();
  const passed = nowMs - (endMs - days * DAY_MS);
  if (passed < LEAST_PACE_MS) return undefined;
  const ends = nowMs + ((limit - used) / used) * passed;
  return ends < endMs ? ends : undefined;
}
