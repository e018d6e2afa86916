/**
 * Names the principal that the claims of a token prove, or the reason why there is none. By the rules of a check, but
 * from the database, because an administrator tests an issuer right after a change.
 */

import { chooseProof } from '../../credential-cache/issuer-lookup.ts';
import type { IssuerRecord, IssuerUsers, ProofRecord } from '../../domain/records.ts';
import { type Claims, claimValue, linkedClaim, mappedRoles, subjectOf } from '../../identity/claims.ts';
import { emailOf, matchingProofs } from '../../identity/issuer-token-reader.ts';
import { loadLink } from '../../store/issuer-records.ts';
import type { Queryable } from '../../store/queryable.ts';
import { findTenant } from '../tenants/queries.ts';
import { canonicalEmail } from '../users/checks.ts';
import { isEmailTaken } from '../users/directory-queries.ts';
import { isActive } from '../users/entity.ts';
import { countActiveUsers, findUser } from '../users/queries.ts';
import { keysOfProofs } from './reference-queries.ts';

interface ProvedPrincipal {
  readonly type: 'user' | 'api_key';
  readonly id: string;
  readonly name: string;
}

export interface PrincipalResult {
  /** Null: none, or a user that does not exist yet. */
  readonly principal: ProvedPrincipal | null;
  readonly outcome: 'passed' | 'failed';
  readonly detail: string;
}

const none = (detail: string): PrincipalResult => ({ principal: null, outcome: 'failed', detail });

export async function provedPrincipal(
  q: Queryable,
  issuer: IssuerRecord,
  claims: Claims,
  nowMs: number,
): Promise<PrincipalResult> {
  const subject = subjectOf(claims, 'sub');
  const key = subject === undefined ? undefined : await provedKey(q, issuer, claims, subject, nowMs);
  if (key !== undefined) return key;
  if (issuer.users === undefined) {
    return none('No API key has a proof that matches, and tokens of this issuer prove no user.');
  }
  return provedUser(q, issuer, issuer.users, claims);
}

/** An exact subject beats a glob, and several equal matches prove none. */
async function provedKey(
  q: Queryable,
  issuer: IssuerRecord,
  claims: Claims,
  subject: string,
  nowMs: number,
): Promise<PrincipalResult | undefined> {
  const { proofs } = await loadLink(q, issuer.id, subject);
  const exact = matchingProofs(claims, proofs);
  const globs = matchingProofs(claims, issuer.globProofs);
  if (exact.length + globs.length === 0) return undefined;
  const chosen = chooseProof(exact, globs, nowMs);
  if (chosen === 'key_expired') return none('The API keys that the token matches have expired.');
  const works = ({ expiresAtMs }: ProofRecord): boolean => expiresAtMs === undefined || expiresAtMs > nowMs;
  const proving = chosen === 'ambiguous' ? (exact.some(works) ? exact : globs).filter(works) : [chosen];
  const keys = await keysOfProofs(
    q,
    issuer.tenantId,
    proving.slice(0, 10).map(({ digest }) => digest),
  );
  const [key] = keys;
  if (key === undefined) return undefined;
  if (chosen === 'ambiguous') {
    const ids = keys.map(({ id }) => id).join(', ');
    return none(`${proving.length} API keys match equally, so the token proves none of them: ${ids}.`);
  }
  if (key.disabled || !key.usable) {
    return none(`The token matches the API key ${key.id}, which is ${key.disabled ? 'disabled' : 'not usable'}.`);
  }
  const detail = `The token proves the API key ${key.id}.`;
  return { principal: { type: 'api_key', id: key.id, name: key.name }, outcome: 'passed', detail };
}

async function provedUser(
  q: Queryable,
  issuer: IssuerRecord,
  users: IssuerUsers,
  claims: Claims,
): Promise<PrincipalResult> {
  const subject = subjectOf(claims, users.subject_claim);
  if (subject === undefined || linkedClaim(claims, users.roles) !== undefined) {
    return none('No API key has a proof that matches, and the mapping reads no user.');
  }
  const { user } = await loadLink(q, issuer.id, subject);
  if (user === undefined) return newUser(q, issuer, users, claims);
  const row = await findUser(q, issuer.tenantId, user.id);
  if (row === undefined || !isActive(row)) {
    return none(`The token matches the user ${user.id}, which is deactivated, or suspended by its directory.`);
  }
  const detail = `The token proves the user ${user.id}.`;
  return { principal: { type: 'user', id: user.id, name: row.name }, outcome: 'passed', detail };
}

async function newUser(
  q: Queryable,
  { tenantId, usersSinceMs }: IssuerRecord,
  users: IssuerUsers,
  claims: Claims,
): Promise<PrincipalResult> {
  if (!users.create) return none('No user is linked to this subject, and users.create is false.');
  const iat = claimValue(claims, 'iat');
  if (usersSinceMs !== undefined && (typeof iat !== 'number' || iat * 1000 < usersSinceMs)) {
    return none('No user is linked to this subject, and the token is older than the last wider change of the mapping.');
  }
  const tenant = await findTenant(q, tenantId);
  if (tenant?.status !== 'active') return none('No user is linked to this subject, and the tenant is suspended.');
  const email = emailOf(claims, users);
  if (email !== undefined && (await isEmailTaken(q, canonicalEmail(email.trim())))) {
    return none(
      'Another user has the email address of the token. Link that user to the subject, or change one address.',
    );
  }
  const { max_users } = tenant.quotas;
  if (max_users !== undefined && (await countActiveUsers(q, tenantId)) >= max_users) {
    return none(
      `No user is linked to this subject, and the tenant has as many active users as max_users: ${max_users}.`,
    );
  }
  const roles = mappedRoles(users, claims);
  const detail = `The first request with the token creates a user with ${roles.length === 0 ? 'no roles' : `the roles ${roles.join(', ')}`}.`;
  return { principal: null, outcome: 'passed', detail };
}
