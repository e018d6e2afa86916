/** Reads tokens of other issuers for the credential cache. */

import type { DescribedUser, IssuerToken, IssuerTokenReader } from '../credential-cache/ports.ts';
import { compileGlob, type Glob, globMatches, isWithinBounds } from '../decision/globs.ts';
import { ruleWork } from '../decision/limits.ts';
import { present } from '../domain/objects.ts';
import type { IssuerUsers, ProofRecord } from '../domain/records.ts';
import { isStorable } from '../domain/storable.ts';
import { type Claims, claimValue, isGlob, linkedClaim, mappedRoles, matchesRules, subjectOf } from './claims.ts';
import { checkIssuerToken, readIssuerToken } from './issuer-token.ts';

export const issuerTokenReader: IssuerTokenReader = {
  read(token) {
    const unverified = readIssuerToken(token);
    return unverified && readingOf(unverified);
  },
};

function readingOf(unverified: NonNullable<ReturnType<typeof readIssuerToken>>): IssuerToken {
  const { claims, issuers } = unverified;
  return {
    issuers,
    subject: subjectOf(claims, 'sub'),
    verify: (issuer) => checkIssuerToken(unverified, issuer),
    matching: (proofs) => matchingProofs(claims, proofs),
    user: (users) => describedUser(claims, users),
  };
}

/**
 * Returns the proofs that the claims match, in order. If the rules take more work than a decision may spend, none
 * matches: of the others, one could make the result ambiguous.
 */
export function matchingProofs(claims: Claims, proofs: readonly ProofRecord[]): readonly ProofRecord[] {
  const subject = subjectOf(claims, 'sub');
  if (subject === undefined) return [];
  const work = ruleWork();
  const found = proofs.filter((proof) => matchesSubject(proof, subject) && matchesRules(claims, proof.claims, work));
  return work.left < 0 ? [] : found;
}

/** The compiled subjects of proofs, which belong to cached records. */
const globs = new WeakMap<ProofRecord, Glob>();

function matchesSubject(proof: ProofRecord, subject: string): boolean {
  if (!isGlob(proof.subject)) return proof.subject === subject;
  if (!isWithinBounds(proof.subject)) return false;
  const glob = globs.getOrInsertComputed(proof, () => compileGlob(proof.subject));
  return globMatches(glob, subject);
}

/** Describes the user of a token by the claims that the issuer's mapping names. */
export function describedUser(claims: Claims, users: IssuerUsers): DescribedUser {
  if (linkedClaim(claims, users.roles) !== undefined) return { kind: 'none', reason: 'claims' };
  const subject = subjectOf(claims, users.subject_claim);
  if (subject === undefined) return { kind: 'none', reason: 'no_principal' };
  return {
    kind: 'user',
    subject,
    ...present({ email: emailOf(claims, users), name: textOf(claims, users.name_claim) }),
    roles: mappedRoles(users, claims),
  };
}

/** The names of the claim to which `email_verified` belongs (OpenID Connect Core 1.0, section 5.1). */
const STANDARD_EMAIL: readonly (string | undefined)[] = ['email', '/email'];

/** Returns no address that the token calls unverified: a stranger may have typed it, and it would be taken from its owner. */
export function emailOf(claims: Claims, { email_claim: claim }: IssuerUsers): string | undefined {
  // Some providers send a text.
  const isUnverified = STANDARD_EMAIL.includes(claim) && String(claimValue(claims, 'email_verified')) === 'false';
  return isUnverified ? undefined : textOf(claims, claim);
}

function textOf(claims: Claims, claim: string | undefined): string | undefined {
  const value = claim === undefined ? undefined : claimValue(claims, claim);
  return typeof value === 'string' && value !== '' && isStorable(value) ? value : undefined;
}
