/** The expiry of a key in a form, and as the API takes it. */

export const PRESET_DAYS = [7, 30, 90, 365] as const;

export type Expiry =
  | { readonly kind: 'days'; readonly days: (typeof PRESET_DAYS)[number] }
  /** The value of `datetime-local`, in the viewer's zone. */
  | { readonly kind: 'at'; readonly local: string }
  | { readonly kind: 'never' }
  /** The present expiry of an edited key. */
  | { readonly kind: 'kept' };

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

/** Undefined: never, unchanged, or no valid time. */
export function endOf(expiry: Expiry, nowMs: number): Date | undefined {
  switch (expiry.kind) {
    case 'days':
      return new Date(nowMs + expiry.days * DAY_MS);
    case 'at': {
      const at = new Date(expiry.local);
      return Number.isNaN(at.getTime()) ? undefined : at;
    }
    case 'never':
    case 'kept':
      return undefined;
    default:
      return expiry satisfies never;
  }
}

/** The members of a request. */
export function expiryMembers(expiry: Expiry): {
  readonly expires_at?: string | null;
  readonly expires_in_days?: number;
} {
  switch (expiry.kind) {
    case 'days':
      return { expires_in_days: expiry.days };
    case 'at':
      return { expires_at: new Date(expiry.local).toISOString() };
    case 'never':
      return { expires_at: null };
    case 'kept':
      return {};
    default:
      return expiry satisfies never;
  }
}

/** `2026-11-19T23:30` on the viewer's clock. */
export function localTime(ms: number): string {
  return new Date(ms - new Date(ms).getTimezoneOffset() * MINUTE_MS).toISOString().slice(0, 16);
}

const full = new Intl.DateTimeFormat('en-GB', {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
});

/** `Thu, 18 Feb 2027, 15:42` */
export function endSaid(end: Date): string {
  return full.format(end);
}
