/** The keys and the user that a token with a subject of an issuer proves. */

import type { IssuerId, KeyId, TenantId, UserId } from '../../domain/ids.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { KeyRow, KeyTable } from './entity.ts';
import { keyRowColumns } from './queries.ts';

const keys = (q: Queryable) => q<KeyTable>('api_keys').where({ revoked_at: null });

/** Returns the keys of an issuer with this very subject that are not revoked, by id, at most `most`. */
export async function keysWithSubject(
  q: Queryable,
  { tenant, issuerId, subject }: { readonly tenant: TenantId; readonly issuerId: IssuerId; readonly subject: string },
  most: number,
): Promise<readonly KeyRow[]> {
  return keys(q)
    .where({ tenant_id: tenant, proof_issuer_id: issuerId, proof_subject: subject })
    .orderBy('id')
    .limit(most)
    .select<KeyRow[]>(keyRowColumns(q));
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
