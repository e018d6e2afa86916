/** The keys and the user that a token with a subject of an issuer proves. */

import type { IssuerId, KeyId, UserId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyTable } from './entity.ts';

const keys = (q: Queryable) => q<KeyTable>('api_keys').where({ revoked_at: null });

/** Returns the keys of an issuer with this very subject that are not revoked, by id, at most `most`. */
export async function keysWithSubject(
  q: Queryable,
  issuerId: IssuerId,
  subject: string,
  most: number,
): Promise<readonly KeyId[]> {
  const found = keys(q).where({ proof_issuer_id: issuerId, proof_subject: subject });
  return (await found.orderBy('id').limit(most).select('id')).map(({ id }) => id);
}

/** Returns the keys of an issuer with a glob that are not revoked. */
export async function keysWithGlob(
  q: Queryable,
  issuerId: IssuerId,
): Promise<readonly { readonly id: KeyId; readonly glob: string }[]> {
  return keys(q).where({ proof_issuer_id: issuerId, proof_is_glob: true }).select('id', { glob: 'proof_subject' });
}

/** Counts the keys of an issuer with a glob that are not revoked. @param except a key that does not count */
export async function countGlobs(q: Queryable, issuerId: IssuerId, except: KeyId | undefined): Promise<number> {
  const globs = keys(q).where({ proof_issuer_id: issuerId, proof_is_glob: true });
  const [row] = await (except === undefined ? globs : globs.whereNot({ id: except })).count<{ globs: string }[]>({
    globs: '*',
  });
  return Number(row?.globs ?? 0);
}

export async function linkedUserId(q: Queryable, issuerId: IssuerId, subject: string): Promise<UserId | undefined> {
  const { rows } = await q.raw<{ rows: { user_id: UserId }[] }>(
    'select user_id from user_identities where issuer_id = :issuerId and subject = :subject',
    { issuerId, subject },
  );
  return rows[0]?.user_id;
}
