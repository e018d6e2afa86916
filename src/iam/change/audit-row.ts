/** The audit row of a change: the actor, the target, and the states before and after the change, without secrets. */

import type { RequestId, TenantId } from '../../domain/ids.ts';
import type { AuditRow } from '../../store/audit-rows.ts';
import type { Caller } from '../caller/caller.ts';

/** The actor of an audit row. For the change of a caller, `actorOf` returns it. */
export interface Actor {
  readonly type: 'user' | 'api_key' | 'system' | 'anonymous';
  readonly id?: string | undefined;
  readonly tenant?: TenantId | undefined;
  readonly address?: string | undefined;
  readonly requestId?: RequestId | undefined;
}

/** The operator, who works with the command line. */
export const OPERATOR: Actor = { type: 'system' };

export const AUDIT_TARGETS = [
  'user',
  'role',
  'policy',
  'tenant',
  'api_key',
  'session',
  'signing_key',
  'directory',
  'issuer',
  'budget',
  'webhook',
] as const;

export interface AuditTarget {
  readonly type: (typeof AUDIT_TARGETS)[number];
  readonly id: string;
}

interface AuditedChange {
  readonly target: AuditTarget | undefined;
  /** Undefined: the row belongs to the platform. */
  readonly tenant: TenantId | undefined;
  readonly before?: unknown;
  readonly after?: unknown;
}

export function actorOf(caller: Caller): Actor {
  return {
    type: caller.principal.kind,
    id: caller.principal.id,
    tenant: caller.tenant,
    address: caller.address,
    requestId: caller.requestId,
  };
}

/** @param action `<type>.<verb>` */
export function auditRow(
  actor: Actor,
  action: string,
  { target, tenant, before, after }: AuditedChange,
  result: AuditRow['result'],
): AuditRow {
  return {
    actorType: actor.type,
    actorId: actor.id,
    tenantId: tenant,
    address: actor.address,
    action,
    targetType: target?.type,
    targetId: target?.id,
    result,
    before: masked(before),
    after: masked(after),
    requestId: actor.requestId,
  };
}

const SECRET =
  /^(?:key|digest|previous_digest|token|nonce|secret|.*password(?!_changed_at$).*|.*_(?:token|secret|digest|hash|sealed))$/i;

/** Returns a copy in which the values of members with secrets are masked. */
function masked(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      SECRET.test(name) && member !== null ? '[masked]' : masked(member),
    ]),
  );
}

/** The longest email address that SMTP carries (RFC 5321, section 4.5.3.1), rounded up. No username is longer. */
export const MAX_USERNAME_LENGTH = 320;

/** Returns the typed username for the audit log: storable, and cut to the maximum length. */
export function auditUsername(typed: string): string {
  return toStorableText(typed.slice(0, MAX_USERNAME_LENGTH));
}

/** Replaces what PostgreSQL cannot store in text: NUL and unpaired surrogates. */
export function toStorableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\u{fffd}');
}
