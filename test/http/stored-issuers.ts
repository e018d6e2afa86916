/** Issuers that a test writes behind the API's back, for what refers to issuers. */

import { randomBytes } from 'node:crypto';
import {
  type IssuerId,
  type IssuerName,
  makeId,
  parseIssuerName,
  parseTenantId,
  type TenantId,
} from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database.ts';
import type { TestIssuer } from '../support/issuer.ts';

export interface StoredTestIssuer {
  readonly id: IssuerId;
  readonly tenantId: TenantId;
  readonly name: IssuerName;
}

interface TestUsers {
  /** Default: `sub`. */
  readonly subjectClaim?: string;
  readonly create?: boolean;
  /** Each role is given for a group of its name. */
  readonly roles?: readonly string[];
}

/**
 * @param users undefined: the tokens of the issuer prove no user
 * @param signer the issuer that signs the tokens
 */
export async function storeIssuer(
  { knex }: Database,
  tenant: string,
  name: string,
  users?: TestUsers,
  signer?: Pick<TestIssuer, 'url' | 'jwks'>,
): Promise<StoredTestIssuer> {
  const id = makeId('iss', Date.now(), randomBytes(10));
  const [tenantId, issuerName] = [parseTenantId(tenant), parseIssuerName(name)];
  if (tenantId === undefined || issuerName === undefined) throw new Error(`no names: ${tenant} ${name}`);
  const mapping = users && {
    ...{ subject_claim: users.subjectClaim ?? 'sub', create: users.create ?? false, default_roles: [] },
    roles: (users.roles ?? []).map((role) => ({ claim: 'groups', in: [role], roles: [role] })),
  };
  await knex('issuers').insert({
    ...{ id, tenant_id: tenantId, name: issuerName, kind: 'oidc', issuer: signer?.url ?? `https://${id}.example` },
    ...(signer === undefined ? {} : { jwks: JSON.stringify(signer.jwks()), jwks_set_at: new Date() }),
    ...{ audiences: ['postern'], algorithms: ['ES256'], users: mapping === undefined ? null : JSON.stringify(mapping) },
  });
  return { id, tenantId, name: issuerName };
}
