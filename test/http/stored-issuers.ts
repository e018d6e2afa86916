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

export interface StoredTestIssuer {
  readonly id: IssuerId;
  readonly tenantId: TenantId;
  readonly name: IssuerName;
}

interface TestUsers {
  readonly create?: boolean;
  /** Each role is given for a group of its name. */
  readonly roles?: readonly string[];
}

/** @param users undefined: the tokens of the issuer prove no user */
export async function storeIssuer(
  { knex }: Database,
  tenant: string,
  name: string,
  users?: TestUsers,
): Promise<StoredTestIssuer> {
  const id = makeId('iss', Date.now(), randomBytes(10));
  const [tenantId, issuerName] = [parseTenantId(tenant), parseIssuerName(name)];
  if (tenantId === undefined || issuerName === undefined) throw new Error(`no names: ${tenant} ${name}`);
  const mapping = users && {
    ...{ subject_claim: 'sub', create: users.create ?? false, default_roles: [] },
    roles: (users.roles ?? []).map((role) => ({ claim: 'groups', in: [role], roles: [role] })),
  };
  await knex('issuers').insert({
    ...{ id, tenant_id: tenantId, name: issuerName, kind: 'oidc', issuer: `https://${id}.example` },
    ...{ audiences: ['postern'], algorithms: ['ES256'], users: mapping === undefined ? null : JSON.stringify(mapping) },
  });
  return { id, tenantId, name: issuerName };
}
