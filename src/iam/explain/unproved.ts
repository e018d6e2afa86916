/**
 * Finds the reason why a credential proves no principal, for requesters that may manage its key or user. For other
 * requesters the reason is `unknown`, as for a credential that was never issued, so that the response does not reveal
 * which exist.
 */

import type { Unproved } from '../../decision/explain-steps.ts';
import { type Identity, type InvalidReason, ISSUER_REASONS } from '../../decision/model.ts';
import { isPlatformAdmin } from '../../decision/tenant.ts';
import type { CredentialForm } from '../../domain/credential.ts';
import {
  type KeyDigest,
  type KeyId,
  parseId,
  parseTenantId,
  type SessionId,
  type TenantId,
  type UserId,
} from '../../domain/ids.ts';
import { digestOfProof } from '../../identity/api-keys.ts';
import { readTokenForm } from '../../identity/token-form.ts';
import type { Queryable } from '../../store/queryable.ts';
import { isAuthorized, type ManagementPermission } from '../caller/authorize.ts';
import { selfId } from '../caller/caller.ts';
import { type KeyEnd, keyEnd, keySessionEnd, type SessionEnd, sessionEnd, type UserEnd } from './ended-queries.ts';
import type { IssuerSubject } from './issuer-subject.ts';
import type { Requester } from './resolve.ts';

/** The key or user of an identity. */
export type ExplainSubject =
  /** With the session of a key without a secret, if the credential is its access token. */
  | { readonly kind: 'key'; readonly digest: KeyDigest; readonly session?: SessionId | undefined }
  | { readonly kind: 'user'; readonly id: UserId; readonly tenant: TenantId; readonly session: SessionId | undefined }
  | { readonly kind: 'checksum' }
  | IssuerSubject
  /** Neither a key nor a token of Postern. */
  | { readonly kind: 'none' };

/** The claims of a token whose signature was verified. */
interface OwnClaims {
  /** The user or the key whose session it is. */
  readonly owner: { readonly kind: 'user'; readonly id: UserId } | { readonly kind: 'key'; readonly id: KeyId };
  readonly tenantId: TenantId;
  readonly sessionId: SessionId | undefined;
}

const NOTHING = { key_id: null, user_id: null, time: null } as const;
const UNKNOWN: Unproved = { reason: 'unknown', ...NOTHING };

/** Reads the claims of a token; undefined unless the identity shows that its signature was verified. */
export function verifiedClaims(form: CredentialForm, identity: Identity): OwnClaims | undefined {
  if (form.kind !== 'token' || !isVerified(identity)) return undefined;
  const claims: { readonly sub?: unknown; readonly tenant_id?: unknown; readonly sid?: unknown } = JSON.parse(
    readTokenForm(form.token)?.payload ?? '{}',
  );
  const userId = parseId('usr', String(claims.sub));
  const keyId = parseId('key', String(claims.sub));
  const tenantId = parseTenantId(String(claims.tenant_id));
  if (tenantId === undefined) return undefined;
  const sessionId = parseId('ses', String(claims.sid));
  if (userId !== undefined) return { owner: { kind: 'user', id: userId }, tenantId, sessionId };
  return keyId && { owner: { kind: 'key', id: keyId }, tenantId, sessionId };
}

/** Reasons that are found after the signature was verified. */
const AFTER_SIGNATURE: readonly InvalidReason[] = [
  ...(['session_ended', 'user_deactivated', 'user_missing', 'revoked', 'disabled', 'key_expired'] as const),
];

function isVerified(identity: Identity): boolean {
  switch (identity.kind) {
    case 'proved':
      return identity.principal.provedBy === undefined;
    case 'expired':
      return identity.external !== true;
    case 'missing':
      return false;
    case 'invalid':
      return identity.external !== true && AFTER_SIGNATURE.includes(identity.reason);
    default:
      return identity satisfies never;
  }
}

/** Returns the subject of a credential, by its form and verified claims. */
export function explainSubjectOf(form: CredentialForm, claims: OwnClaims | undefined): ExplainSubject {
  switch (form.kind) {
    case 'api_key':
      return { kind: 'key', digest: form.digest };
    case 'bad_checksum':
      return { kind: 'checksum' };
    case 'token':
      if (claims === undefined) return { kind: 'none' };
      return claims.owner.kind === 'user'
        ? { kind: 'user', id: claims.owner.id, tenant: claims.tenantId, session: claims.sessionId }
        : { kind: 'key', digest: digestOfProof(claims.owner.id), session: claims.sessionId };
    case 'missing':
    case 'malformed':
    case 'other_scheme':
      return { kind: 'none' };
    default:
      return form satisfies never;
  }
}

/** The instants of the decision and of the explain request. */
interface Instants {
  readonly nowMs: number;
  readonly requestedAtMs: number;
}

export async function whyUnproved(
  q: Queryable,
  requester: Requester,
  subject: ExplainSubject,
  instants: Instants,
): Promise<Unproved> {
  switch (subject.kind) {
    case 'checksum':
      // The holder of the text can compute the checksum, so the reason reveals nothing.
      return { reason: 'checksum', ...NOTHING };
    case 'none':
      return UNKNOWN;
    case 'issuer':
      return whyIssuer(q, requester, subject, instants);
    case 'key': {
      const key = await keyEnd(q, subject.digest);
      if (key === undefined || !mayManage(requester, 'admin:keys', key.tenantId, key.userId)) return UNKNOWN;
      const why = whyKey(key, instants);
      if (why !== UNKNOWN || subject.session === undefined) return why;
      const endsAt = await keySessionEnd(q, key.id, subject.session);
      const of = { key_id: key.id, user_id: key.userId ?? null };
      return { reason: 'session_ended', ...of, time: endsAt?.toISOString() ?? null };
    }
    case 'user': {
      if (!mayManage(requester, 'admin:users', subject.tenant, subject.id)) return UNKNOWN;
      return whyUser(subject.id, await sessionEnd(q, subject.id, subject.session));
    }
    default:
      return subject satisfies never;
  }
}

/**
 * A requester that manages issuers learns nothing about those of other tenants: their tokens count as tokens of no
 * issuer.
 */
async function whyIssuer(
  q: Queryable,
  requester: Requester,
  { reason, tenant, bearer }: IssuerSubject,
  instants: Instants,
): Promise<Unproved> {
  const mayManageAny = requester.kind === 'operator' || isAuthorized(requester.caller, 'admin:issuers');
  if (tenant === undefined || !mayManage(requester, 'admin:issuers', tenant, undefined))
    return mayManageAny ? { reason: 'unknown_issuer', ...NOTHING } : UNKNOWN;
  if (bearer !== undefined) return whyUnproved(q, requester, bearer, instants);
  const shown = REASONS.find((known) => known === reason);
  return shown === undefined ? UNKNOWN : { reason: shown, ...NOTHING };
}

const REASONS = ['signature', ...ISSUER_REASONS] as const;

/** @param userId the user, or the key's owner: callers may manage their own keys and sessions */
function mayManage(
  requester: Requester,
  permission: ManagementPermission,
  tenant: TenantId,
  userId: UserId | undefined,
): boolean {
  if (requester.kind === 'operator') return true;
  const { caller } = requester;
  if (userId !== undefined && userId === selfId(caller)) return isAuthorized(caller, permission, { self: true });
  if (!isPlatformAdmin(caller.principal) && tenant !== caller.principal.tenantId) return false;
  return isAuthorized(caller, permission);
}

function whyKey(key: KeyEnd, { nowMs, requestedAtMs }: Instants): Unproved {
  const { stoppedAt, revokedAt, disabledAt, expiresAt, owner } = key;
  const of = { key_id: key.id, user_id: key.userId ?? null };
  // A secret that stopped before the revocation counts as rotated. One that has stopped since counts as well, even if
  // the decision is in the past.
  const rotated = stoppedAt !== null && stoppedAt.getTime() <= (revokedAt?.getTime() ?? Math.max(nowMs, requestedAtMs));
  if (rotated) return { reason: 'rotated', ...of, time: stoppedAt.toISOString() };
  if (revokedAt !== null) return { reason: 'revoked', ...of, time: revokedAt.toISOString() };
  if (disabledAt !== null) return { reason: 'disabled', ...of, time: disabledAt.toISOString() };
  if (expiresAt !== null && expiresAt.getTime() <= nowMs)
    return { reason: 'expired', ...of, time: expiresAt.toISOString() };
  if (key.userId !== undefined && owner?.active !== true)
    return { reason: 'owner_deactivated', ...of, time: sinceOf(owner) };
  return UNKNOWN;
}

function whyUser(id: UserId, { user, endsAt }: SessionEnd): Unproved {
  const of = { key_id: null, user_id: id };
  if (user !== undefined && !user.active) return { reason: 'owner_deactivated', ...of, time: sinceOf(user) };
  return { reason: 'session_ended', ...of, time: endsAt?.toISOString() ?? null };
}

function sinceOf(user: UserEnd | undefined): string | null {
  return user?.since?.toISOString() ?? null;
}
