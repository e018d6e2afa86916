/** The events that a webhook can select, to choose from. */

import { webhooks as text } from '../../text/en/webhooks.ts';
import type { PickItem } from '../../ui/pick-list.tsx';

/** A name or a group of events. */
const PATTERN = /^[a-z_]{1,40}(?:\.[a-z_]{1,40}){1,3}(?:\.\*)?$/;
const KNOWN = Object.keys(text.meanings);

/** Returns the events that match the typed text, and the typed text itself if it is a pattern that is not listed. */
export function eventItems(typed: string, selected: readonly string[]): readonly PickItem[] {
  const wanted = typed.trim().toLowerCase();
  const found = KNOWN.filter((event) => event.includes(wanted) || meaningOf(event).toLowerCase().includes(wanted));
  const others = PATTERN.test(wanted) && wanted.startsWith('audit.') && !KNOWN.includes(wanted) ? [wanted] : [];
  return [...found, ...others].map((event) => ({
    id: event,
    says: meaningOf(event),
    isCovered: selected.some((pattern) => pattern !== event && selects(pattern, event)),
  }));
}

function meaningOf(event: string): string {
  return text.meanings[event] ?? text.ofAudit;
}

function selects(pattern: string, event: string): boolean {
  return pattern === '*' || (pattern.endsWith('.*') && event.startsWith(pattern.slice(0, -1)));
}
