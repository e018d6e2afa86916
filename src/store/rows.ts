/** Decodes rows into the domain's records. A row that does not match the schema is a fault. */

import { Fault } from '../domain/errors.ts';
import {
  type IssuerId,
  type KeyDigest,
  parseId,
  parseIssuerName,
  parseKeyDigest,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
} from '../domain/ids.ts';
import { isObject } from '../domain/json.ts';
import {
  BUDGET_PERIODS,
  BUDGET_UNITS,
  type BudgetRecord,
  type BudgetScope,
  type ClaimRule,
  type IssuerKey,
  type IssuerRecord,
  type IssuerUsers,
  type KeyRecord,
  type LinkRecord,
  type PolicyRecord,
  type ProofRecord,
  type RateLimitRule,
  type ResourceConstraints,
  type RoleRecord,
  type SessionRecord,
  type TenantQuotas,
  type TenantRecord,
  type TenantSettings,
  type UserRecord,
} from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';
import { DEFAULT_TOKEN_TYPES } from '../domain/token-types.ts';
import type { Row } from './pool.ts';

/** @param requested digest that found the row: the key's own, or the one before its last rotation */
export function keyRecord(row: Row, requested: KeyDigest): KeyRecord {
  return {
    id: must(parseId('key', text(row, 'id')), 'id'),
    digest: requested,
    tenantId: must(parseTenantId(text(row, 'tenant_id')), 'tenant_id'),
    userId: row['user_id'] === null ? undefined : must(parseId('usr', text(row, 'user_id')), 'user_id'),
    scopes: texts(row['scopes'], 'scopes'),
    constraints: constraints(row['resource_constraints']),
    rateLimitRpm: optionalNumber(row, 'rate_limit_rpm'),
    expiresAtMs: optionalNumber(row, 'expires_at_ms'),
    graceUntilMs: row['by_previous'] === true ? number(row, 'previous_until_ms') : undefined,
    revoked: row['revoked'] === true,
    disabled: row['disabled'] === true,
    issuerId: optional(row, 'proof_issuer_id', issuerId),
    ...rateLimits(row),
    ...keyMetadata(row),
  };
}

export function userRecord(row: Row): UserRecord {
  return {
    id: must(parseId('usr', text(row, 'id')), 'id'),
    tenantId: must(parseTenantId(text(row, 'tenant_id')), 'tenant_id'),
    status: oneOf(row, 'status', ['active', 'deactivated']),
    roles: roleNames(row['roles']),
    ...rateLimits(row),
  };
}

/** Returns the member, or nothing for the many rows that have no limits. */
function rateLimits(row: Row): Pick<KeyRecord, 'rateLimits'> {
  const rules = optional(row, 'rate_limits', rateLimitRules);
  return rules === undefined || rules.length === 0 ? {} : { rateLimits: rules };
}

function rateLimitRules(row: Row, name: string): readonly RateLimitRule[] {
  return list(row[name], name).map((item) => {
    const rule = object(item, 'rate_limits');
    return Object.freeze({
      models: texts(rule['models'], 'rate_limits'),
      ...member(rule, 'requests_per_minute', number),
      ...member(rule, 'tokens_per_minute', number),
      ...member(rule, 'parallel', number),
    });
  });
}

function keyMetadata(row: Row): Pick<KeyRecord, 'metadata'> {
  const pairs = Object.entries(object(row['metadata'], 'metadata'));
  if (pairs.length === 0) return {};
  return { metadata: Object.fromEntries(pairs.map(([name, value]) => [name, textOf(value, 'metadata')])) };
}

export function sessionRecord(row: Row): SessionRecord {
  return {
    id: must(parseId('ses', text(row, 'id')), 'id'),
    userId: row['user_id'] === null ? undefined : must(parseId('usr', text(row, 'user_id')), 'user_id'),
    keyId: row['api_key_id'] === null ? undefined : must(parseId('key', text(row, 'api_key_id')), 'api_key_id'),
    issuerId: row['issuer_id'] === null ? undefined : must(parseId('iss', text(row, 'issuer_id')), 'issuer_id'),
    scope: row['scope'] === null ? undefined : texts(row['scope'], 'scope'),
    ended: row['ended'] === true,
    expiresAtMs: number(row, 'expires_at_ms'),
  };
}

/** The columns are those of `ISSUER` (issuer-records.ts). */
export function issuerRecord(row: Row): IssuerRecord {
  const keys = issuerKeys(row['keys'], 'keys');
  const kind = oneOf(row, 'kind', ['oidc', 'spiffe']);
  const leewaySeconds = number(row, 'leeway_seconds');
  return {
    id: issuerId(row, 'id'),
    tenantId: must(parseTenantId(text(row, 'tenant_id')), 'tenant_id'),
    name: must(parseIssuerName(text(row, 'name')), 'name'),
    kind,
    enabled: row['enabled'] === true,
    issuer: text(row, 'issuer'),
    valueSinceMs: number(row, 'value_since_ms'),
    audiences: texts(row['audiences'], 'audiences'),
    algorithms: texts(row['algorithms'], 'algorithms'),
    tokenTypes: optional(row, 'token_types', textsIn) ?? DEFAULT_TOKEN_TYPES[kind],
    requiredClaims: claimRules(row['required_claims'], 'required_claims'),
    maxAgeSeconds: optionalNumber(row, 'max_age_seconds'),
    keys,
    users: optional(row, 'users', () => issuerUsers(object(row['users'], 'users'))),
    leewaySeconds,
    revokedBeforeMs: optionalNumber(row, 'revoked_before_ms'),
    earlier: optional(row, 'earlier', () => earlier(object(row['earlier'], 'earlier'), { keys, leewaySeconds })),
    usersSinceMs: optionalNumber(row, 'users_since_ms'),
    keysFetchedAtMs:
      row['pasted'] === true ? undefined : (optionalNumber(row, 'fetched_at_ms') ?? Number.NEGATIVE_INFINITY),
    globProofs: proofRecords(row['glob_proofs'], 'glob_proofs'),
  };
}

/** @param current the current members, for a change that kept them */
function earlier(
  row: Row,
  current: Pick<IssuerRecord, 'keys' | 'leewaySeconds'>,
): NonNullable<IssuerRecord['earlier']> {
  return {
    audiences: texts(row['audiences'], 'earlier.audiences'),
    algorithms: texts(row['algorithms'], 'earlier.algorithms'),
    tokenTypes: texts(row['tokenTypes'], 'earlier.tokenTypes'),
    requiredClaims: claimRules(row['requiredClaims'], 'earlier.requiredClaims'),
    maxAgeSeconds: optionalNumber(row, 'maxAgeSeconds'),
    leewaySeconds: optionalNumber(row, 'leewaySeconds') ?? current.leewaySeconds,
    keys: optional(row, 'keys', () => issuerKeys(row['keys'], 'earlier.keys')) ?? current.keys,
    untilMs: number(row, 'untilMs'),
  };
}

function issuerUsers(row: Row): IssuerUsers {
  return {
    subject_claim: text(row, 'subject_claim'),
    ...member(row, 'email_claim', text),
    ...member(row, 'name_claim', text),
    create: boolean(row, 'create'),
    roles: list(row['roles'], 'users.roles').map((item) => {
      const rule = object(item, 'users.roles');
      return { ...claimRule(rule, 'users.roles'), roles: roleNames(rule['roles']) };
    }),
    default_roles: roleNames(row['default_roles']),
  };
}

function issuerKeys(value: unknown, name: string): readonly IssuerKey[] {
  return list(value, name).map((key) => Object.freeze(object(key, name)));
}

function claimRules(value: unknown, name: string): readonly ClaimRule[] {
  return list(value, name).map((rule) => claimRule(object(rule, name), name));
}

function claimRule(row: Row, name: string): ClaimRule {
  return { claim: text(row, 'claim'), in: texts(row['in'], name) };
}

export const NO_LINK: LinkRecord = Object.freeze({ proofs: [], user: undefined });

/** The columns are those of `link` (issuer-records.ts). */
export function linkRecord(row: Row): LinkRecord {
  return {
    proofs: proofRecords(row['proofs'], 'proofs'),
    user: optional(row, 'linked_user', () => {
      const { id, roles_as_of_ms } = named(USER_MEMBERS, row['linked_user'], 'linked_user');
      return {
        id: must(parseId('usr', String(id)), 'linked_user'),
        rolesAsOfMs: optionalNumber({ roles_as_of_ms }, 'roles_as_of_ms'),
      };
    }),
  };
}

/** The members of the arrays in issuer-records.ts, in order. */
const PROOF_MEMBERS = ['digest', 'subject', 'claims', 'expires_at_ms'] as const;
const USER_MEMBERS = ['id', 'roles_as_of_ms'] as const;

function proofRecords(value: unknown, name: string): readonly ProofRecord[] {
  return list(value, name).map((item) => {
    const row = named(PROOF_MEMBERS, item, name);
    return {
      digest: must(parseKeyDigest(text(row, 'digest')), name),
      subject: text(row, 'subject'),
      claims: claimRules(row['claims'], name),
      expiresAtMs: optionalNumber(row, 'expires_at_ms'),
    };
  });
}

function issuerId(row: Row, name: string): IssuerId {
  return must(parseId('iss', text(row, name)), name);
}

/** A tenant's rules in pieces of JSON of about 32 KB, as cache-loader.ts reads them. */
interface RulePieces {
  readonly roles: readonly string[];
  readonly policies: readonly string[];
  readonly budgets: readonly string[];
}

export function* tenantRecord(row: Row, { roles, policies, budgets }: RulePieces): Steps<TenantRecord> {
  return {
    id: must(parseTenantId(text(row, 'id')), 'id'),
    status: oneOf(row, 'status', ['active', 'suspended']),
    settings: settings(object(row['settings'], 'settings')),
    quotas: quotas(object(row['quotas'], 'quotas')),
    roles: yield* itemsOf(roles, 'roles', (role) => roleRecord(named(ROLE_MEMBERS, role, 'roles'))),
    policies: yield* policyRecords(policies),
    budgets: yield* itemsOf(budgets, 'budgets', (budget) => budgetRecord(named(BUDGET_MEMBERS, budget, 'budgets'))),
  };
}

export function policyRecords(pieces: readonly string[]): Steps<readonly PolicyRecord[]> {
  return itemsOf(pieces, 'policies', (policy) => policyRecord(named(POLICY_MEMBERS, policy, 'policies')));
}

function* itemsOf<T>(pieces: readonly string[], name: string, read: (item: unknown) => T): Steps<readonly T[]> {
  const items: T[] = [];
  for (const piece of pieces) {
    for (const item of list(JSON.parse(piece), name)) {
      items.push(read(item));
      yield;
    }
  }
  return items;
}

/** The members of the arrays in cache-loader.ts, in order. */
const ROLE_MEMBERS = ['name', 'permissions', 'resource_constraints'] as const;
const POLICY_MEMBERS = [
  'name',
  'effect',
  'actions',
  'resources',
  'conditions',
  'applies_to',
  'enabled',
  'reports',
  'attached_roles',
] as const;

const BUDGET_MEMBERS = [
  'name',
  'id',
  'unit',
  'limit',
  'period',
  'timezone',
  'applies_to',
  'per',
  'models',
  'action',
  'epoch',
] as const;

function named(members: readonly string[], value: unknown, name: string): Row {
  const values = list(value, name);
  if (values.length !== members.length) throw damaged(name);
  return Object.fromEntries(members.map((member, i) => [member, values[i]]));
}

function roleRecord(row: Row): RoleRecord {
  return {
    name: must(parseRoleName(text(row, 'name')), 'name'),
    permissions: texts(row['permissions'], 'permissions'),
    constraints: constraints(row['resource_constraints']),
  };
}

function policyRecord(row: Row): PolicyRecord {
  return {
    name: must(parsePolicyName(text(row, 'name')), 'name'),
    effect: oneOf(row, 'effect', ['allow', 'deny']),
    actions: texts(row['actions'], 'actions'),
    resources: texts(row['resources'], 'resources'),
    // The compiler decides the effect of a condition that this program does not know.
    conditions: object(row['conditions'], 'conditions'),
    appliesTo: oneOf(row, 'applies_to', ['everyone', 'roles']),
    attachedRoles: roleNames(row['attached_roles']),
    enabled: row['enabled'] === true,
    ...(row['reports'] === true ? { reports: true } : {}),
  };
}

function budgetRecord(row: Row): BudgetRecord {
  return {
    id: must(parseId('bud', text(row, 'id')), 'id'),
    name: text(row, 'name'),
    unit: oneOf(row, 'unit', BUDGET_UNITS),
    limit: number(row, 'limit'),
    period: oneOf(row, 'period', BUDGET_PERIODS),
    timezone: optional(row, 'timezone', text),
    appliesTo: budgetScope(object(row['applies_to'], 'applies_to')),
    per: oneOf(row, 'per', ['all', 'key', 'user']),
    models: optional(row, 'models', textsIn),
    action: oneOf(row, 'action', ['block', 'report']),
    epoch: number(row, 'epoch'),
  };
}

/** An unknown selector is a fault: the budget would bound nothing. */
function budgetScope(row: Row): BudgetScope {
  const [kind, value] = Object.entries(row)[0] ?? [];
  switch (kind) {
    case 'tenant':
      return { tenant: true };
    case 'keys':
      return { keys: texts(value, 'keys').map((id) => must(parseId('key', id), 'keys')) };
    case 'users':
      return { users: texts(value, 'users').map((id) => must(parseId('usr', id), 'users')) };
    case 'roles':
      return { roles: roleNames(value) };
    case 'metadata': {
      const pairs = Object.entries(object(value, 'metadata'));
      return { metadata: Object.fromEntries(pairs.map(([name, each]) => [name, textOf(each, 'metadata')])) };
    }
    default:
      throw damaged('applies_to');
  }
}

const CONSTRAINED_KINDS: ReadonlySet<string> = new Set(['models', 'collections', 'agents']);

/** An unknown kind is a fault: without its constraint, the grant would cover more than intended. */
function constraints(value: unknown): ResourceConstraints {
  const row = object(value, 'resource_constraints');
  const unknown = Object.keys(row).find((kind) => !CONSTRAINED_KINDS.has(kind));
  if (unknown !== undefined) throw damaged(`resource_constraints.${unknown}`);
  return {
    ...member(row, 'models', textsIn),
    ...member(row, 'collections', textsIn),
    ...member(row, 'agents', textsIn),
  };
}

function settings(row: Row): TenantSettings {
  return {
    ...member(row, 'default_model', text),
    ...member(row, 'max_tokens_per_request', number),
    ...member(row, 'rate_limit_rpm', number),
    ...member(row, 'timezone', text),
    ...member(row, 'allow_keys_without_expiry', boolean),
    ...member(row, 'require_stream_usage', boolean),
    ...member(row, 'rate_limits', rateLimitRules),
  };
}

function quotas(row: Row): TenantQuotas {
  return {
    ...member(row, 'monthly_tokens', number),
    ...member(row, 'max_users', number),
    ...member(row, 'max_collections', number),
  };
}

function roleNames(value: unknown): readonly RoleName[] {
  return texts(value, 'roles').map((name) => must(parseRoleName(name), 'roles'));
}

/** Returns an object with the member, or without it if there is no value: absent and null mean the same. */
function member<Name extends string, T>(
  row: Row,
  name: Name,
  read: (row: Row, name: string) => T,
): { readonly [N in Name]?: T } {
  const value = optional(row, name, read);
  const made: { [N in Name]?: T } = {};
  if (value !== undefined) made[name] = value;
  return made;
}

function optional<T>(row: Row, name: string, read: (row: Row, name: string) => T): T | undefined {
  return row[name] === null || row[name] === undefined ? undefined : read(row, name);
}

function optionalNumber(row: Row, name: string): number | undefined {
  return optional(row, name, number);
}

function text(row: Row, name: string): string {
  return textOf(row[name], name);
}

function textOf(value: unknown, name: string): string {
  if (typeof value !== 'string') throw damaged(name);
  return value;
}

function number(row: Row, name: string): number {
  const value = row[name];
  if (typeof value !== 'number') throw damaged(name);
  return value;
}

function boolean(row: Row, name: string): boolean {
  const value = row[name];
  if (typeof value !== 'boolean') throw damaged(name);
  return value;
}

function oneOf<const T extends string>(row: Row, name: string, values: readonly T[]): T {
  const value = row[name];
  return must(
    values.find((known) => known === value),
    name,
  );
}

function texts(value: unknown, name: string): readonly string[] {
  const items = list(value, name);
  const found = items.filter((item) => typeof item === 'string');
  if (found.length !== items.length) throw damaged(name);
  return found;
}

function textsIn(row: Row, name: string): readonly string[] {
  return texts(row[name], name);
}

function list(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw damaged(name);
  return value;
}

function object(value: unknown, name: string): Row {
  if (!isObject(value)) throw damaged(name);
  return value;
}

function must<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw damaged(name);
  return value;
}

function damaged(name: string): Fault {
  return new Fault(`a stored row does not match the schema: ${name}`);
}
