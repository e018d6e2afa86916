/** The naive twin of src/decision/clock.ts. */

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  const format = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    hour12: false,
  });
  formats.set(zone, format);
  return format;
}

/** Reads a wall clock by way of a calendar date: Intl writes it, the date's weekday (0 = Monday) is computed. */
export function naiveWall(zone: string, nowMs: number): { minute: number; day: number } {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(nowMs)
      .map((part) => [part.type, Number(part.value)]),
  );
  const date = Date.UTC(parts.get('year') ?? 0, (parts.get('month') ?? 0) - 1, parts.get('day'));
  return {
    minute: ((parts.get('hour') ?? 0) % 24) * 60 + (parts.get('minute') ?? 0),
    day: (new Date(date).getUTCDay() + 6) % 7,
  };
}
