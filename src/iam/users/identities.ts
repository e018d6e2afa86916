/**
 * Links a user to subjects of issuers, so that their tokens act as the user. An administrator links users, or the first
 * token of a subject creates its user (admit-issuer-user.ts). An email address links nothing.
 */

import { Refusal } from '../../domain/errors.ts';
import { parseIssuerName, type RoleName, type TenantId, type UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { mayGiveRoles } from '../caller/escalation.ts';
import type { HeldCaller } from '../caller/hold-caller.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { holdIssuerByName, type StoredIssuer } from '../issuers/queries.ts';
import { rolesOfMapping } from '../issuers/users.ts';
import { endSessions } from '../sessions/queries.ts';
import type { IdentityRequest } from './entity.ts';
import {
  findSubject,
  type IssuerIdentity,
  identitiesOf,
  linkSubject,
  lockIdentity,
  takeOrphanedIssuerRoles,
  unlinkSubject,
} from './identity-queries.ts';

/** The difference between the identities of a user and those of a request. */
interface IdentityChange {
  readonly added: readonly IssuerIdentity[];
  readonly removed: readonly IssuerIdentity[];
  /** The roles that the mappings of the issuers of `added` may give. */
  readonly mapped: readonly RoleName[];
}

/**
 * Locks the issuers that the request names until the transaction ends, so that their mappings stay as they are.
 * @param user undefined: a new user
 * @throws Refusal `invalid_field` that names every unknown issuer
 */
export async function identityChange(
  trx: Transaction,
  tenant: TenantId,
  user: UserId | undefined,
  requested: readonly IdentityRequest[],
): Promise<IdentityChange> {
  const issuers = new Map<string, StoredIssuer | undefined>();
  for (const name of new Set(requested.map(({ issuer }) => issuer))) {
    const parsed = parseIssuerName(name);
    issuers.set(name, parsed && (await holdIssuerByName(trx, tenant, parsed, 'share')));
  }
  const wanted = requested.map(({ issuer, subject }) => ({ issuer: issuers.get(issuer), subject }));
  throwIfInvalid(
    wanted.flatMap(({ issuer }, i) =>
      issuer === undefined
        ? [{ path: `/identities/${i}/issuer`, message: 'This issuer does not exist in the tenant.' }]
        : [],
    ),
  );
  const stored = byText(user === undefined ? [] : await identitiesOf(trx, user));
  const known = wanted.flatMap(({ issuer, subject }) => (issuer === undefined ? [] : [{ issuer, subject }]));
  const kept = byText(known.map(({ issuer, subject }) => ({ issuerId: issuer.id, subject })));
  const added = [...kept].flatMap(([text, identity]) => (stored.has(text) ? [] : [identity]));
  const ids = new Set(added.map(({ issuerId }) => issuerId));
  const mapped = known.filter(({ issuer }) => ids.has(issuer.id)).flatMap(({ issuer }) => rolesOfMapping(issuer.users));
  return {
    added,
    removed: [...stored].flatMap(([text, identity]) => (kept.has(text) ? [] : [identity])),
    mapped: [...new Set(mapped)],
  };
}

/** The identities by a text that sorts them, each once. */
function byText(identities: readonly IssuerIdentity[]): ReadonlyMap<string, IssuerIdentity> {
  return new Map(
    identities
      .map((identity) => [`${identity.issuerId} ${identity.subject}`, identity] as const)
      .sort(([left], [right]) => (left < right ? -1 : 1)),
  );
}

/**
 * Writes the change. A removed identity ends the roles and the sessions that came with it. The caller has locked the
 * user's row, and checked that it may act on the user.
 * @throws Refusal `escalation`, `already_exists`
 */
export async function writeIdentities(
  trx: Transaction,
  caller: HeldCaller,
  user: UserId,
  { added, removed, mapped }: IdentityChange,
): Promise<void> {
  // The subject may get all of them with its next token.
  await mayGiveRoles(trx, caller, mapped);
  for (const identity of removed) await unlinkSubject(trx, user, identity);
  if (removed.length > 0) await takeOrphanedIssuerRoles(trx, user);
  const issuers = new Set(removed.map(({ issuerId }) => issuerId));
  for (const id of issuers) await endSessions(trx, { user_id: user, issuer_id: id });
  for (const identity of added) {
    await lockIdentity(trx, identity);
    if ((await findSubject(trx, identity))?.user) throw taken(identity);
    await linkSubject(trx, user, identity);
  }
}

function taken({ subject }: IssuerIdentity): Refusal {
  return new Refusal('already_exists', `Another user is linked to the subject ${subject} of this issuer.`, {
    param: 'identities',
  });
}
