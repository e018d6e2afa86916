/** The issuer, the key and the user of a token of another issuer that proves no principal. */

import { chooseProof } from '../../credential-cache/issuer-lookup.ts';
import type { InvalidReason } from '../../decision/model.ts';
import type { KeyDigest, TenantId, UserId } from '../../domain/ids.ts';
import type { IssuerRecord, LinkRecord, ProofRecord } from '../../domain/records.ts';
import { type Claims, claimValue, subjectOf } from '../../identity/claims.ts';
import { readIssuerToken } from '../../identity/issuer-token.ts';
import { describedUser, matchingProofs } from '../../identity/issuer-token-reader.ts';
import { loadLink } from '../../store/issuer-records.ts';
import type { Queryable } from '../../store/queryable.ts';
import { issuerOfToken } from '../issuers/issuer-of-token.ts';
import { usableEmail } from '../users/checks.ts';
import { isEmailTaken } from '../users/directory-queries.ts';

export interface IssuerSubject {
  readonly kind: 'issuer';
  readonly reason: InvalidReason;
  /** The tenant of the issuer; undefined if there is none. */
  readonly tenant: TenantId | undefined;
  /** The key that the token matches, or the user of its subject: the reason may be about the key or the user. */
  readonly bearer:
    | { readonly kind: 'key'; readonly digest: KeyDigest }
    | { readonly kind: 'user'; readonly id: UserId; readonly tenant: TenantId; readonly session: undefined }
    | undefined;
}

/** Reasons that belong to a key or a user, so the token's signature and claims were verified. */
const OF_BEARER: ReadonlySet<InvalidReason> = new Set([
  'revoked',
  'disabled',
  'key_expired',
  'user_deactivated',
  'user_missing',
]);

export async function issuerSubject(
  q: Queryable,
  token: string,
  reason: InvalidReason,
  nowMs: number,
): Promise<IssuerSubject> {
  const read = readIssuerToken(token);
  const issuer = read && (await issuerOfToken(q, read));
  if (read === undefined || issuer === undefined)
    return { kind: 'issuer', reason, tenant: undefined, bearer: undefined };
  if (reason === 'no_principal' && (await isAddressTaken(q, issuer, read.claims)))
    return { kind: 'issuer', reason: 'email_in_use', tenant: issuer.tenantId, bearer: undefined };
  const bearer = OF_BEARER.has(reason) ? await bearerOf(q, issuer, read.claims, nowMs) : undefined;
  return { kind: 'issuer', reason, tenant: issuer.tenantId, bearer };
}

/** Reports whether the first request with the token would create a user with the email address of another user. */
async function isAddressTaken(
  q: Queryable,
  { users, usersSinceMs = 0 }: IssuerRecord,
  claims: Claims,
): Promise<boolean> {
  if (users?.create !== true || Number(claimValue(claims, 'iat')) * 1000 < usersSinceMs) return false;
  const user = describedUser(claims, users);
  const email = user.kind === 'user' ? usableEmail(user.email) : undefined;
  return email !== undefined && (await isEmailTaken(q, email));
}

async function bearerOf(
  q: Queryable,
  issuer: IssuerRecord,
  claims: Claims,
  nowMs: number,
): Promise<IssuerSubject['bearer']> {
  const exact = matchingProofs(claims, (await linkOf(q, issuer, subjectOf(claims, 'sub')))?.proofs ?? []);
  const globs = matchingProofs(claims, issuer.globProofs);
  const key = keyOf(exact, globs, nowMs);
  if (key !== undefined) return { kind: 'key', digest: key.digest };
  const user = issuer.users && describedUser(claims, issuer.users);
  const linked = user?.kind === 'user' ? (await linkOf(q, issuer, user.subject))?.user : undefined;
  return linked && { kind: 'user', id: linked.id, tenant: issuer.tenantId, session: undefined };
}

/** Returns the key that the token proves, or the first of those that have expired. */
function keyOf(exact: readonly ProofRecord[], globs: readonly ProofRecord[], nowMs: number): ProofRecord | undefined {
  const [first] = [...exact, ...globs];
  if (first === undefined) return undefined;
  const chosen = chooseProof(exact, globs, nowMs);
  return typeof chosen === 'string' ? first : chosen;
}

async function linkOf(
  q: Queryable,
  issuer: IssuerRecord,
  subject: string | undefined,
): Promise<LinkRecord | undefined> {
  return subject === undefined ? undefined : loadLink(q, issuer.id, subject);
}
