/** The events that webhooks receive, the patterns that select them, and the audit rows that announce them. */

import type { AuditRow } from '../../store/audit-rows.ts';

interface WebhookEvent {
  readonly description: string;
  /** The audit row that announces the event. */
  readonly action: string;
  /** Default: success. */
  readonly result?: AuditRow['result'];
}

/** The events with a name of their own. Each other row of the audit log is the event `audit.<action>`. */
export const EVENTS = {
  'budget.threshold': { description: 'A budget has reached one of its alerts.', action: 'budget.threshold' },
  'budget.reset': { description: 'A budget was reset.', action: 'budget.reset' },
  'quota.threshold': {
    description: 'The tenant has used 80 % or all of its monthly tokens.',
    action: 'quota.threshold',
  },
  'key.expiring': { description: 'An API key expires in 14 days, 7 days or 1 day.', action: 'api_key.expiring' },
  'key.expired': { description: 'An API key has expired.', action: 'api_key.expired' },
  'key.revoked': { description: 'An API key was revoked.', action: 'api_key.revoke' },
  'login.locked': {
    description: 'Failed logins have locked the account of a user, for all addresses or for one.',
    action: 'user.lock',
  },
  'session.reuse_detected': {
    description: 'A refresh token was used twice. Its session has ended.',
    action: 'auth.refresh_reuse',
    result: 'refused',
  },
  'issuer.keys_stale': {
    description: 'The keys of an issuer are too old to be used. Its tokens are answered 503.',
    action: 'issuer.keys_stale',
  },
  'audit.chain_broken': {
    description: 'The chain of the audit log is broken. Only webhooks of the first tenant receive it.',
    action: 'audit.chain_broken',
    result: 'failure',
  },
} as const satisfies Readonly<Record<string, WebhookEvent>>;

/** The event of `POST …/test`. */
export const TEST_EVENT = 'webhook.test';

/** The event that belongs to the installation and to no tenant. */
export const PLATFORM_EVENT = 'audit.chain_broken' satisfies keyof typeof EVENTS;

/** `*`, an event, or the beginning of events with `.*` after it. */
export const EVENT_PATTERN = '^(?:\\*|[a-z_]{1,40}(?:\\.[a-z_]{1,40}){0,3}(?:\\.\\*)?)$';
const PATTERN = new RegExp(EVENT_PATTERN);

const EVENT_OF_ACTION: ReadonlyMap<string, readonly [event: string, result: AuditRow['result']]> = new Map(
  Object.entries<WebhookEvent>(EVENTS).map(([event, { action, result = 'success' }]) => [action, [event, result]]),
);

/** Returns the reason why a text selects no event; undefined if it may select one. */
export function patternProblem(pattern: string): string | undefined {
  if (!PATTERN.test(pattern)) return 'An event is a name such as key.revoked, a group such as budget.*, or *.';
  const isKnown = isOfAudit(pattern) || Object.keys(EVENTS).some((event) => selects(pattern, event));
  return isKnown
    ? undefined
    : `This is not an event. The events are ${Object.keys(EVENTS).join(', ')} and audit.<action>.`;
}

function isOfAudit(pattern: string): boolean {
  return pattern.startsWith('audit.') && pattern !== PLATFORM_EVENT;
}

/** Reports whether patterns select rows of the audit log that only readers of the log may see. */
export function selectsAudit(patterns: readonly string[]): boolean {
  return patterns.some((pattern) => pattern === '*' || isOfAudit(pattern));
}

function selects(pattern: string, event: string): boolean {
  if (pattern === '*') return true;
  return pattern.endsWith('.*') ? event.startsWith(pattern.slice(0, -1)) : event === pattern;
}

/**
 * Returns the event that a webhook receives for an audit row: the one with a name of its own if the patterns select
 * it, otherwise `audit.<action>`. Undefined: none.
 */
export function selectedEvent(
  patterns: readonly string[],
  { action, result }: { readonly action: string; readonly result: AuditRow['result'] },
): string | undefined {
  const [named, wanted] = EVENT_OF_ACTION.get(action) ?? [];
  const events = [...(named !== undefined && wanted === result ? [named] : []), `audit.${action}`];
  return events.find((event) => patterns.some((pattern) => selects(pattern, event)));
}
