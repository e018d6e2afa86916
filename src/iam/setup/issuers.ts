/**
 * The issuers of a tenant in a setup file. A file has no client secret: a stored one stays while the issuer keeps its
 * value, and the API sets one.
 */

import { isDeepStrictEqual } from 'node:util';
import { Refusal } from '../../domain/errors.ts';
import { type IssuerName, makeId, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { DEFAULT_ALGORITHMS, DEFAULT_LEEWAY_SECONDS, type IssuerSso } from '../issuers/entity.ts';
import { enabledIssuerOf, type StoredIssuer } from '../issuers/queries.ts';
import { issuerResource } from '../issuers/read.ts';
import { countReferences } from '../issuers/reference-queries.ts';
import { removeIssuer } from '../issuers/revoke.ts';
import { type IssuerValues, readIssuerChanges, readNewIssuer } from '../issuers/values.ts';
import { MAX_ISSUERS, writeIssuer, writeNewIssuer } from '../issuers/write.ts';
import type { PlannedAction } from './action.ts';
import type { IssuerDocument } from './document.ts';
import type { SetupMembers, View } from './members.ts';
import type { SetupError } from './read.ts';
import { auditedResource, planEach, planValues, readAt, type SetupResource, valuesByName } from './resource-plan.ts';

type Values = Omit<IssuerValues, 'name'>;
export type IssuerAction = PlannedAction<StoredIssuer, Values, IssuerName>;

/** An issuer of a file. Its values are read together with those that are stored. */
export interface WantedIssuer {
  /** A JSON pointer to the issuer in the document. */
  readonly at: string;
  readonly key: IssuerName;
  readonly document: IssuerDocument;
}

export const ISSUER_MEMBERS: SetupMembers<Values> = {
  kind: { initial: 'oidc' },
  issuer: {},
  audiences: {},
  jwks_uri: { empty: null },
  jwks: { empty: null },
  ca: { empty: null },
  algorithms: { empty: DEFAULT_ALGORITHMS },
  token_types: { empty: null },
  required_claims: { empty: [] },
  users: { empty: null },
  sso: { empty: null, view: (sso) => sso && withoutSecret(sso) },
  enabled: { initial: true },
  max_age_seconds: { empty: null },
  leeway_seconds: { empty: DEFAULT_LEEWAY_SECONDS },
};

function withoutSecret({ client_secret_set: _set, ...sso }: IssuerSso): View {
  return { ...sso };
}

/** Settings of the server that the values of issuers depend on. */
interface IssuerRules {
  readonly allowedHosts: readonly string[];
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
}

/** @param wanted undefined: the file does not state the issuers. @param prune deletes issuers that it does not name */
export function planIssuers(
  tenant: TenantId,
  wanted: readonly WantedIssuer[] | undefined,
  stored: readonly StoredIssuer[],
  prune: boolean,
  rules: IssuerRules,
  errors: SetupError[],
): readonly IssuerAction[] {
  const resource = issuerResources(tenant);
  return planEach(resource, wanted, stored, prune, ({ at, key, document }, before) => {
    const values = readAt(at, errors, () =>
      before === undefined ? readNew(at, document, rules, errors) : readChanged(at, document, before, rules, errors),
    );
    return values === undefined ? [] : planValues(resource, key, before, values);
  });
}

function readNew(at: string, document: IssuerDocument, rules: IssuerRules, errors: SetupError[]): Values | undefined {
  const { issuer, audiences } = document;
  const missing = Object.entries({ issuer, audiences }).filter(([, value]) => value === undefined);
  errors.push(
    ...missing.map(([member]) => ({ path: `${at}/${member}`, message: 'This member is required for a new issuer.' })),
  );
  if (issuer === undefined || audiences === undefined) return undefined;
  return readNewIssuer({ ...withDefaults(document), issuer, audiences }, rules).values;
}

function readChanged(
  at: string,
  document: IssuerDocument,
  before: StoredIssuer,
  rules: IssuerRules,
  errors: SetupError[],
): Values | undefined {
  const { kind, ...changes } = withDefaults(document);
  if (kind !== undefined && kind !== before.kind) {
    errors.push({
      path: `${at}/kind`,
      message: `The kind of an issuer never changes. The stored one is ${before.kind}.`,
    });
    return undefined;
  }
  const { issuer = before.issuer } = document;
  // The stored secret is not sent to another issuer.
  const sso = before.sso && {
    ...before.sso,
    client_secret_set: before.sso.client_secret_set && issuer === before.issuer,
  };
  return readIssuerChanges({ ...before, sso }, changes, rules).values;
}

/** Null means the default of a member that is never null. */
function withDefaults({ algorithms, required_claims, leeway_seconds, ...document }: IssuerDocument) {
  return {
    ...document,
    ...(algorithms === undefined ? {} : { algorithms: algorithms ?? DEFAULT_ALGORITHMS }),
    ...(required_claims === undefined ? {} : { required_claims: required_claims ?? [] }),
    ...(leeway_seconds === undefined ? {} : { leeway_seconds: leeway_seconds ?? DEFAULT_LEEWAY_SECONDS }),
  };
}

function issuerResources(tenant: TenantId): SetupResource<StoredIssuer, Values, IssuerName> {
  return auditedResource({
    type: 'issuer',
    tenant,
    members: ISSUER_MEMBERS,
    keyOf: (row) => row.name,
    idOf: (row) => row.id,
    show: (row, nowMs) => issuerResource(row, { maxStalenessMs: Number.POSITIVE_INFINITY }, nowMs),
    insert: ({ trx, nowMs, random }, name, values) => {
      const id = makeId('iss', nowMs, random(10));
      return writeNewIssuer(trx, { id, tenant_id: tenant, nowMs }, { values: { name, ...values }, sealed: undefined });
    },
    update: ({ trx, nowMs }, before, after) => {
      const values = { name: before.name, ...after };
      const sealed = values.sso?.client_secret_set === true ? undefined : null;
      const repasted = values.jwks !== null && !isDeepStrictEqual(before.jwks, values.jwks);
      return writeIssuer(trx, before, { values, sealed, repasted, nowMs });
    },
    remove: ({ trx }, row) => removeIssuer(trx, row),
  });
}

/**
 * An issuer is deleted only if nothing refers to it, a tenant has at most `MAX_ISSUERS`, and a value of `iss` has one
 * enabled issuer.
 * @throws Refusal `in_use`, `quota_exceeded`, `already_exists`
 */
export async function refuseBrokenIssuers(
  trx: Transaction,
  tenant: TenantId,
  stored: readonly StoredIssuer[],
  actions: readonly IssuerAction[],
  /** The actions of all tenants of the setup. */
  all: readonly IssuerAction[],
): Promise<void> {
  if (valuesByName(stored, actions).size > MAX_ISSUERS && actions.some(({ verb }) => verb === 'create')) {
    throw new Refusal(
      'quota_exceeded',
      `The tenant ${tenant} may have ${MAX_ISSUERS} issuers, and the file would give it more.`,
    );
  }
  for (const { verb, name, before, after } of actions) {
    if (verb === 'delete' && before !== undefined) {
      const { keys, links } = await countReferences(trx, before.id, 1);
      if (keys + links === 0) continue;
      throw new Refusal(
        'in_use',
        `The issuer ${name} of the tenant ${tenant} cannot be deleted, because keys or users refer to it. Set enabled: false, or delete it through the API with force=true.`,
      );
    }
    if (after?.enabled !== true || (before?.enabled === true && before.issuer === after.issuer)) continue;
    const owner = await enabledIssuerOf(trx, after.issuer);
    if (owner === undefined || owner === before?.id || all.some((other) => frees(other, owner, after.issuer))) continue;
    throw new Refusal(
      'already_exists',
      `The issuer ${name} of the tenant ${tenant} cannot be enabled, because another enabled issuer has the same value. A token belongs to one issuer only.`,
    );
  }
}

function frees({ before, after }: IssuerAction, owner: string, value: string): boolean {
  return before?.id === owner && (after === undefined || !after.enabled || after.issuer !== value);
}
