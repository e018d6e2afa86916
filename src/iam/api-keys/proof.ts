/**
 * The proof of a key without a secret: which tokens of an issuer prove it. A new proof may take tokens from other keys
 * and users, so it needs `admin:keys`, and the rights to act on the principals that lose them.
 */

import { isDeepStrictEqual } from 'node:util';
import { compileGlob, globMatches } from '../../decision/globs.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyId, parseIssuerName, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { authorize, isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { mayActOnUser, mayTakeFromKeys } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { escalation, invalidField, throwIfInvalid } from '../caller/refusals.ts';
import { claimRuleErrors, globErrors } from '../issuers/claim-rules.ts';
import { holdIssuerByName, type StoredIssuer } from '../issuers/queries.ts';
import { findUser } from '../users/queries.ts';
import type { KeyRow, ProofRequest } from './entity.ts';
import { countGlobs, keysWithGlob, keysWithSubject, linkedUserId } from './proof-queries.ts';
import type { StoredProof } from './queries.ts';

/** The gate compares each of an issuer's tokens with all of its globs, and a subject's tokens with all of its keys. */
const MAX_GLOBS = 1_000;
const MAX_KEYS_OF_SUBJECT = 100;

/** @throws Refusal of the decision. A caller without `admin:keys` may create keys of its own, with secrets only. */
export function mayProve(caller: Caller): void {
  authorize(caller, 'admin:keys');
}

/**
 * Reads the proof of a request, and locks the issuer until the transaction ends.
 * @param own the key that the request changes; undefined for a new key
 * @throws Refusal of the decision; `invalid_field`, `escalation`, `quota_exceeded`
 */
export async function requestedProof(
  trx: Transaction,
  caller: HeldCaller,
  request: ProofRequest,
  own?: KeyId,
): Promise<StoredProof> {
  mayProve(caller);
  const { issuer, proof } = await boundProof(trx, caller.tenant, request);
  if (proof.isGlob) await mayAddGlob(trx, caller, issuer, own);
  else await mayAddSubject(trx, caller, issuer, proof.subject, own);
  return proof;
}

/**
 * Reads the proof of a request, and locks its issuer until the transaction ends. It checks no right and no limit.
 * @throws Refusal `invalid_field`
 */
export async function boundProof(
  trx: Transaction,
  tenant: TenantId,
  request: ProofRequest,
): Promise<{ readonly issuer: StoredIssuer; readonly proof: StoredProof }> {
  const { subject, claims = [] } = request;
  throwIfInvalid([...globErrors(subject, '/proof/subject'), ...claimRuleErrors(claims, '/proof/claims')]);
  const name = parseIssuerName(request.issuer);
  const isGlob = subject.includes('*');
  // Callers that add globs to one issuer wait for each other, so that the limit holds.
  const mode = isGlob ? 'update' : 'share';
  const issuer = name && (await holdIssuerByName(trx, tenant, name, mode));
  if (issuer === undefined) throw invalidField('/proof/issuer', 'This issuer does not exist in the tenant.');
  return { issuer, proof: { issuerId: issuer.id, subject, isGlob, claims } };
}

/**
 * Checks the caller's right to add a glob. A glob can match the tokens of each user of the issuer, and those that another
 * glob matches, which would then prove no key. Only a caller that may disable the issuer may add such a glob.
 */
async function mayAddGlob(
  trx: Transaction,
  caller: HeldCaller,
  issuer: StoredIssuer,
  own: KeyId | undefined,
): Promise<void> {
  const others = await countGlobs(trx, issuer.id, own);
  if (others >= MAX_GLOBS) {
    throw new Refusal(
      'quota_exceeded',
      `The issuer already has ${MAX_GLOBS} keys with a glob as their subject, which is the limit. Revoke one first.`,
    );
  }
  if ((others > 0 || issuer.users !== null) && !isAuthorized(caller, 'admin:issuers')) {
    throw escalation(
      'The glob may match tokens that prove other keys or users of the issuer. Only a caller with admin:issuers may add it.',
    );
  }
}

/**
 * A new key takes the subject's tokens from its user and from the keys whose globs match it, and leaves a key with the
 * same claims without any.
 */
async function mayAddSubject(
  trx: Transaction,
  caller: HeldCaller,
  { id: issuerId, users }: StoredIssuer,
  subject: string,
  own: KeyId | undefined,
): Promise<void> {
  const found = await keysWithSubject(trx, issuerId, subject, MAX_KEYS_OF_SUBJECT + 1);
  const others = found.filter((id) => id !== own);
  if (others.length >= MAX_KEYS_OF_SUBJECT) {
    throw new Refusal(
      'quota_exceeded',
      `The subject already proves ${MAX_KEYS_OF_SUBJECT} keys, which is the limit. Revoke one first.`,
    );
  }
  const globs = (await keysWithGlob(trx, issuerId)).filter(
    ({ id, glob }) => id !== own && globMatches(compileGlob(glob), subject),
  );
  await mayTakeFromKeys(trx, caller, [...others, ...globs.map(({ id }) => id)]);
  // The subject of a key is that of the claim `sub`.
  if (users !== null && !['sub', '/sub'].includes(users.subject_claim) && !isAuthorized(caller, 'admin:issuers')) {
    throw escalation(
      `The claim ${users.subject_claim} identifies the users of the issuer, so the subject may be that of any of them. Only a caller with admin:issuers may add it.`,
    );
  }
  const userId = await linkedUserId(trx, issuerId, subject);
  const user = userId && (await findUser(trx, caller.tenant, userId));
  if (user !== undefined) await mayActOnUser(trx, caller, user);
}

/**
 * Returns the new proof of a key; undefined = it stays as it is.
 * @throws Refusal like `requestedProof`
 */
export async function changedProof(
  trx: Transaction,
  caller: HeldCaller,
  { id, proof }: KeyRow,
  request: ProofRequest | null | undefined,
): Promise<StoredProof | undefined> {
  if (request === undefined || (request === null && proof === null)) return undefined;
  if (proof === null) throw invalidField('/proof', 'The key has a secret. Create another key for the proof.');
  if (request === null) throw invalidField('/proof', 'The key has no secret, so it needs a proof. Revoke it instead.');
  const { issuer, subject, claims = [] } = request;
  const isEqual = issuer === proof.issuer && subject === proof.subject && isDeepStrictEqual(claims, proof.claims);
  return isEqual ? undefined : requestedProof(trx, caller, request, id);
}
