/** Reads the records by which tokens of other issuers are judged: issuers, and what their subjects prove. */

import { Fault } from '../domain/errors.ts';
import type { IssuerId, TenantId } from '../domain/ids.ts';
import type { IssuerRecord, LinkRecord } from '../domain/records.ts';
import type { Row } from './pool.ts';
import type { Queryable } from './queryable.ts';
import { issuerRecord, linkRecord } from './rows.ts';

const ms = (column: string): string => `floor(extract(epoch from ${column}) * 1000)::float8`;

/** Arrays in the order of PROOF_MEMBERS (rows.ts). A key of another tenant than the issuer's proves nothing. */
const proofs = (where: string): string => `(
        select coalesce(json_agg(json_build_array(encode(k.digest, 'hex'), k.proof_subject, k.proof_claims, ${ms('k.expires_at')}) order by k.id), '[]')
        from api_keys k
        where k.proof_issuer_id = i.id and k.tenant_id = i.tenant_id and k.revoked_at is null and ${where})`;

/** Columns of `i` and `f`, its fetched keys, for `issuerRecord`. */
export const ISSUER = `i.id, i.tenant_id, i.name, i.kind, i.enabled, i.issuer, i.audiences, i.algorithms, i.token_types,
        i.required_claims, i.users, i.max_age_seconds, i.leeway_seconds, i.earlier,
        ${ms('coalesce(i.value_since, i.created_at)')} as value_since_ms,
        ${ms('i.revoked_before')} as revoked_before_ms, ${ms('i.users_since')} as users_since_ms,
        coalesce(i.jwks->'keys', f.keys, '[]') as keys, i.jwks is not null as pasted, ${ms('f.fetched_at')} as fetched_at_ms,
        ${proofs('k.proof_is_glob')} as glob_proofs`;

/** Columns of `i`, for `linkRecord`. */
export const link = (subject: string): string => `
        ${proofs(`not k.proof_is_glob and k.proof_subject = ${subject}`)} as proofs,
        (select json_build_array(u.id, ${ms('l.roles_as_of')})
        from user_identities l join users u on u.id = l.user_id and u.tenant_id = i.tenant_id
        where l.issuer_id = i.id and l.subject = ${subject}) as linked_user`;

/** Returns the enabled issuer of a value of `iss`, otherwise a disabled one. */
export function loadIssuer(q: Queryable, value: string): Promise<IssuerRecord | undefined> {
  return issuerWhere(q, 'i.issuer = :value order by i.enabled desc, i.id limit 1', { value });
}

export function loadIssuerById(q: Queryable, tenant: TenantId, id: IssuerId): Promise<IssuerRecord | undefined> {
  return issuerWhere(q, 'i.tenant_id = :tenant and i.id = :id', { tenant, id });
}

async function issuerWhere(
  q: Queryable,
  where: string,
  bindings: Readonly<Record<string, string>>,
): Promise<IssuerRecord | undefined> {
  const { rows } = await q.raw<{ rows: Row[] }>(
    `select ${ISSUER} from issuers i left join issuer_keys f on f.issuer_id = i.id where ${where}`,
    bindings,
  );
  const [row] = rows;
  return row && issuerRecord(row);
}

/** Returns what a subject of an issuer proves. */
export async function loadLink(q: Queryable, issuerId: IssuerId, subject: string): Promise<LinkRecord> {
  const { rows } = await q.raw<{ rows: Row[] }>(`select ${link(':subject')} from issuers i where i.id = :issuerId`, {
    issuerId,
    subject,
  });
  const [row] = rows;
  if (row === undefined) throw new Fault('an issuer was deleted while its subject was looked up');
  return linkRecord(row);
}
