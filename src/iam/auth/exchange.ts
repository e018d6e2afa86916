/**
 * Token exchange (RFC 8693): a token of another issuer becomes an access token, whose session an administrator can end.
 * The token is resolved as at the gate, so it proves the same principal here. It is resolved again after the session
 * began, because the session began under locks and the first resolution did not.
 */

import type { CredentialResolver } from '../../credential-cache/resolution.ts';
import { permissionsOfPrincipal } from '../../decision/escalation.ts';
import type { InvalidReason, Principal, Snapshot } from '../../decision/model.ts';
import { narrowedPatterns } from '../../decision/narrowing.ts';
import { compilePatterns, patternIntersection } from '../../decision/permissions.ts';
import { Refusal } from '../../domain/errors.ts';
import { type IssuerId, makeId, type SessionId } from '../../domain/ids.ts';
import type { IssuerTokenTimes } from '../../domain/issuer-token-times.ts';
import { readCredential } from '../../identity/credential.ts';
import { checkIssuerToken, readIssuerToken } from '../../identity/issuer-token.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import { loadIssuerById } from '../../store/issuer-records.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { auditUsername } from '../change/audit-row.ts';
import { applyHere } from '../change/change.ts';
import { issuerOfToken } from '../issuers/issuer-of-token.ts';
import { beginIssuerSession } from '../sessions/issuer-session-queries.ts';
import { endSession } from '../sessions/queries.ts';
import { type AuthEvent, authAuditRow, record } from './audit.ts';
import { MAX_USER_AGENT_LENGTH } from './begin.ts';
import type { ExchangeRequest } from './exchange-request.ts';
import { permissionPatterns } from './me.ts';
import { type LoginParts, makeJti, type Provenance, tenantSuspended } from './parts.ts';
import { attemptAt, withAttemptLimits } from './throttle.ts';

export interface ExchangeParts extends LoginParts {
  /** Resolves subject tokens. */
  readonly resolver: CredentialResolver;
}

interface IssuedAccessToken {
  readonly accessToken: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** The permissions of the token, as patterns. */
  readonly scope: readonly string[];
}

/** Why a subject token is rejected, for the audit log. */
type FailureReason = InvalidReason | 'expired' | 'api_key' | 'own_token' | 'ended';

/** A token of another issuer that proves a principal. */
interface Proof {
  readonly principal: Principal;
  readonly snapshot: Snapshot;
  readonly issuerId: IssuerId;
  /** Seconds until the issuer's tokens of this age and `exp` end, at least 1. */
  readonly restSeconds: number;
}

/**
 * @throws Refusal: `invalid_subject_token`; `invalid_scope` if the principal has no permission that a pattern covers;
 * `tenant_suspended`; `too_many_attempts` after too many failures; a Fault if the token cannot be verified now
 */
export async function exchange(
  parts: ExchangeParts,
  { subjectToken, scope }: ExchangeRequest,
  from: Provenance,
): Promise<IssuedAccessToken> {
  const proof = await proofOf(parts, subjectToken, from);
  if (typeof proof === 'string') return await reject(parts, subjectToken, proof, from);
  const { principal, snapshot } = proof;
  parts.writes?.admit({ principal }, 'auth.exchange');
  if (snapshot.own?.status === 'suspended') return await rejectSuspended(parts, principal, from);
  refuseForeignScope(scope, principal, snapshot);
  const lifetimeMs = Math.min(parts.tokens.lifetimeMs, proof.restSeconds * 1000);
  const sessionId = await begin(parts, proof, { lifetimeMs, scope }, from);
  const again = sessionId === undefined ? undefined : await proofAfterBegin(parts, subjectToken, from);
  if (sessionId === undefined || again?.id !== principal.id) {
    if (sessionId !== undefined) await end(parts, principal, sessionId);
    return await reject(parts, subjectToken, 'ended', from);
  }
  const { token, expiresIn } = await parts.tokens.issue({
    ...(principal.kind === 'user' ? { userId: principal.id } : { keyId: principal.id }),
    sessionId,
    tenantId: principal.tenantId,
    nowMs: from.nowMs,
    jti: makeJti(parts.random),
    scope: scope?.join(' '),
    mostSeconds: lifetimeMs / 1000,
  });
  const granted = scope === undefined ? permissionPatterns(principal, snapshot) : within(scope, principal, snapshot);
  return { accessToken: token, expiresIn, scope: granted };
}

/** Returns the patterns of the permissions that the scope and the principal both have. */
function within(scope: readonly string[], principal: Principal, snapshot: Snapshot): readonly string[] {
  const { permissions } = permissionsOfPrincipal(principal, snapshot);
  return narrowedPatterns(
    permissions.map(({ pattern }) => pattern),
    compilePatterns(scope),
  );
}

async function proofOf(
  { db, resolver }: ExchangeParts,
  token: string,
  from: Provenance,
): Promise<Proof | FailureReason> {
  const credential = readCredential(`Bearer ${token}`);
  if (credential.kind === 'api_key' || credential.kind === 'bad_checksum') return 'api_key';
  const { identity, snapshot } = await resolver.resolve(credential, undefined, from.nowMs, from.address);
  switch (identity.kind) {
    case 'missing':
      return 'malformed';
    case 'expired':
      return 'expired';
    case 'invalid':
      return identity.reason;
    case 'proved': {
      const { principal } = identity;
      if (principal.provedBy === undefined || snapshot === undefined) return 'own_token';
      const issuer = await loadIssuerById(db.knex, principal.tenantId, principal.provedBy);
      const read = readIssuerToken(token);
      const checked = issuer && read && (await checkIssuerToken(read, issuer));
      if (checked?.kind !== 'valid') return checked?.reason ?? 'ended';
      const restSeconds = restSecondsOf(checked.times, issuer?.leewaySeconds ?? 0, from.nowMs);
      return restSeconds >= 1 ? { principal, snapshot, issuerId: principal.provedBy, restSeconds } : 'expired';
    }
    default:
      return identity satisfies never;
  }
}

/**
 * Returns the seconds until the token's `exp`, or until it is older than `max_age_seconds` of its issuer. The leeway of
 * the issuer does not extend an access token.
 */
function restSecondsOf({ validUntilMs, tooOldFromMs }: IssuerTokenTimes, leewaySeconds: number, nowMs: number): number {
  return Math.floor((Math.min(validUntilMs, tooOldFromMs) - nowMs) / 1000) - leewaySeconds;
}

/** Returns the principal that the token proves after all changes that preceded the session. */
async function proofAfterBegin(parts: ExchangeParts, token: string, from: Provenance): Promise<Principal | undefined> {
  await applyHere(parts);
  const proof = await proofOf(parts, token, from);
  return typeof proof === 'string' ? undefined : proof.principal;
}

/** @throws Refusal `invalid_scope` */
function refuseForeignScope(scope: readonly string[] | undefined, principal: Principal, snapshot: Snapshot): void {
  if (scope === undefined) return;
  const { permissions } = permissionsOfPrincipal(principal, snapshot);
  const lacking = scope.find((narrow) =>
    permissions.every(({ pattern }) => patternIntersection(pattern, narrow) === undefined),
  );
  if (lacking === undefined) return;
  throw new Refusal('invalid_scope', `The principal has no permission that ${lacking} covers.`, { param: 'scope' });
}

interface Terms {
  readonly lifetimeMs: number;
  readonly scope: readonly string[] | undefined;
}

/** @returns undefined if the issuer, the user or the key ended after the token was resolved */
async function begin(
  parts: ExchangeParts,
  { principal, issuerId }: Proof,
  { lifetimeMs, scope }: Terms,
  from: Provenance,
): Promise<SessionId | undefined> {
  const id = makeId('ses', from.nowMs, parts.random(10));
  const { address } = from;
  const narrowed = scope === undefined ? {} : { scope: scope.join(' ') };
  const audit = exchangeRow(principal, from, 'success', { session_id: id, issuer_id: issuerId, ...narrowed });
  const userAgent = from.userAgent?.slice(0, MAX_USER_AGENT_LENGTH);
  const session = { id, lifetimeMs, cookie: false, address, userAgent };
  const begun = await tenantTransaction(parts.db, principal.tenantId, (trx) =>
    beginIssuerSession(trx, { session, owner: principal, issuerId, scope, audit }),
  );
  if (begun) parts.writes?.wrote({ principal }, [audit]);
  return begun ? id : undefined;
}

function exchangeRow(
  { id, kind, tenantId: tenant }: Principal,
  from: Provenance,
  result: AuthEvent['result'],
  after: NonNullable<AuthEvent['after']>,
) {
  return authAuditRow(from, { action: 'auth.exchange', actor: id, tenant, target: { type: kind, id }, result, after });
}

async function end(parts: ExchangeParts, { tenantId }: Principal, id: SessionId): Promise<void> {
  await tenantTransaction(parts.db, tenantId, (trx) => endSession(trx, id));
  await applyHere(parts);
}

/**
 * Rejects a subject token with the same text for every reason except the expiry, and counts a failure for its address.
 */
async function reject(parts: ExchangeParts, token: string, reason: FailureReason, from: Provenance): Promise<never> {
  const { knex } = parts.db;
  const work = async (): Promise<never> => {
    const read = readIssuerToken(token);
    const found = read && (await issuerOfToken(knex, read));
    const issuer = found?.enabled === true ? found : undefined;
    await record(knex, from, {
      action: 'auth.exchange',
      tenant: issuer?.tenantId,
      target: { type: 'issuer', id: issuer?.id ?? auditUsername(read?.issuers[0] ?? 'unknown') },
      result: 'failure',
      after: { reason },
    });
    throw new Refusal(
      'invalid_subject_token',
      reason === 'expired' ? 'The subject token has expired.' : 'The subject token is not valid.',
      { param: 'subject_token' },
    );
  };
  return await withAttemptLimits(parts, attemptAt(`token:${token}`, from.throttledAs), work);
}

async function rejectSuspended(parts: ExchangeParts, principal: Principal, from: Provenance): Promise<never> {
  const audit = exchangeRow(principal, from, 'refused', { code: 'tenant_suspended' });
  await insertAudit(parts.db.knex, audit);
  parts.writes?.wrote({ principal }, [audit]);
  throw tenantSuspended().asAudited();
}
