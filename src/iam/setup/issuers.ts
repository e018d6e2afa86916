/**
 * The issuers of a tenant in a setup file. A file has no client secret: a stored one stays while the issuer keeps its
 * value, and the API sets one.
 */

import { Refusal } from '../../domain/errors.ts';
import { type IssuerName, makeId, type TenantId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { MAX_ISSUERS, writeNewIssuer } from '../issuers/create.ts';
import { DEFAULT_ALGORITHMS, DEFAULT_LEEWAY_SECONDS, type IssuerSso } from '../issuers/entity.ts';
import { enabledIssuerOf, type StoredIssuer } from '../issuers/queries.ts';
import { countReferences } from '../issuers/reference-queries.ts';
import { issuerResource } from '../issuers/resource.ts';
import { removeIssuer } from '../issuers/revoke.ts';
import { writeIssuer } from '../issuers/update.ts';
import { type IssuerValues, type ReadIssuer, readIssuerChanges, readNewIssuer } from '../issuers/values.ts';
import type { ApplyContext, PlannedAction } from './action.ts';
import type { IssuerDocument } from './document.ts';
import { difference, type SetupMembers, type View, viewOf } from './members.ts';
import type { SetupError } from './read.ts';

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
export interface IssuerRules {
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
  if (wanted === undefined) return [];
  const before = new Map(stored.map((row) => [row.name, row]));
  const named = new Set(wanted.map(({ key }) => key));
  return [
    ...wanted.flatMap((one) => planIssuer(tenant, one, before.get(one.key), rules, errors)),
    ...(prune ? stored.filter(({ name }) => !named.has(name)).map((row) => planRemoval(tenant, row)) : []),
  ];
}

function planIssuer(
  tenant: TenantId,
  { at, key, document }: WantedIssuer,
  before: StoredIssuer | undefined,
  rules: IssuerRules,
  errors: SetupError[],
): readonly IssuerAction[] {
  const read = readAt(at, errors, () =>
    before === undefined ? readNew(at, document, rules, errors) : readChanged(at, document, before, rules, errors),
  );
  if (read === undefined) return [];
  const changes = difference(
    before === undefined ? {} : viewOf(ISSUER_MEMBERS, before),
    viewOf(ISSUER_MEMBERS, read.values),
  );
  const action = { type: 'issuer', tenant, name: key, changes, before, after: read.values } as const;
  if (before === undefined) return [{ ...action, verb: 'create', run: (context) => create(context, tenant, read) }];
  return changes.length === 0 ? [] : [{ ...action, verb: 'change', run: (context) => change(context, before, read) }];
}

/** Reports the refusal of a reader at the place of the issuer. */
function readAt(at: string, errors: SetupError[], read: () => ReadIssuer | undefined): ReadIssuer | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal) || error.extras.errors === undefined) throw error;
    errors.push(...error.extras.errors.map(({ path, message }) => ({ path: at + path, message })));
    return undefined;
  }
}

function readNew(
  at: string,
  document: IssuerDocument,
  rules: IssuerRules,
  errors: SetupError[],
): ReadIssuer | undefined {
  const { issuer, audiences } = document;
  const missing = Object.entries({ issuer, audiences }).filter(([, value]) => value === undefined);
  errors.push(
    ...missing.map(([member]) => ({ path: `${at}/${member}`, message: 'This member is required for a new issuer.' })),
  );
  if (issuer === undefined || audiences === undefined) return undefined;
  return readNewIssuer({ ...withDefaults(document), issuer, audiences }, rules);
}

function readChanged(
  at: string,
  document: IssuerDocument,
  before: StoredIssuer,
  rules: IssuerRules,
  errors: SetupError[],
): ReadIssuer | undefined {
  const { kind, ...changes } = withDefaults(document);
  if (kind !== undefined && kind !== before.kind) {
    errors.push({
      path: `${at}/kind`,
      message: `The kind of an issuer never changes. The stored one is ${before.kind}.`,
    });
    return undefined;
  }
  const { issuer = before.issuer } = document;
  if (issuer === before.issuer || before.sso === null) return readIssuerChanges(before, changes, rules);
  // The stored secret is not sent to another issuer.
  const forgotten = { ...before, sso: { ...before.sso, client_secret_set: false } };
  return { ...readIssuerChanges(forgotten, changes, rules), clientSecret: null };
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

function planRemoval(tenant: TenantId, row: StoredIssuer): IssuerAction {
  const run = async (context: ApplyContext): Promise<void> => {
    await removeIssuer(context.trx, row);
    await record(context, 'delete', row, { before: shown(row, context.nowMs) });
  };
  return { verb: 'delete', type: 'issuer', tenant, name: row.name, changes: [], before: row, after: undefined, run };
}

async function create(context: ApplyContext, tenant: TenantId, read: ReadIssuer): Promise<void> {
  const { trx, nowMs, random } = context;
  const id = makeId('iss', nowMs, random(10));
  const row = await writeNewIssuer(trx, { id, tenant_id: tenant, nowMs }, { values: read.values, sealed: undefined });
  await record(context, 'create', row, { after: shown(row, nowMs) });
}

async function change(context: ApplyContext, before: StoredIssuer, read: ReadIssuer): Promise<void> {
  const { trx, nowMs } = context;
  const sealed = read.clientSecret === null ? null : undefined;
  const repasted =
    read.values.jwks !== null && difference({ jwks: before.jwks }, { jwks: read.values.jwks }).length > 0;
  const row = await writeIssuer(trx, before, { values: read.values, sealed, repasted, nowMs });
  await record(context, 'update', row, { before: shown(before, nowMs), after: shown(row, nowMs) });
}

function shown(row: StoredIssuer, nowMs: number): object {
  return issuerResource(row, { maxStalenessMs: Number.POSITIVE_INFINITY }, nowMs);
}

function record(
  { audit }: ApplyContext,
  verb: string,
  { id, tenant_id }: StoredIssuer,
  states: { readonly before?: object; readonly after?: object },
): Promise<void> {
  return audit({ action: `issuer.${verb}`, target: { type: 'issuer', id }, tenant: tenant_id, ...states });
}

/** Returns the issuers of a tenant after these actions, by name. */
export function issuersAfter(
  stored: readonly StoredIssuer[],
  actions: readonly IssuerAction[],
): ReadonlyMap<IssuerName, Values> {
  const issuers = new Map<IssuerName, Values>(stored.map((row) => [row.name, row]));
  for (const { name, after } of actions) {
    if (after === undefined) issuers.delete(name);
    else issuers.set(name, after);
  }
  return issuers;
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
  if (issuersAfter(stored, actions).size > MAX_ISSUERS && actions.some(({ verb }) => verb === 'create')) {
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
