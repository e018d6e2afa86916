/** Decodes rows into the domain's records. A row that does not match the schema is a fault. */

import { Fault } from '../domain/errors.ts';
import {
  type KeyDigest,
  parseId,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
} from '../domain/ids.ts';
import type {
  KeyRecord,
  PolicyRecord,
  ResourceConstraints,
  RoleRecord,
  SessionRecord,
  TenantQuotas,
  TenantRecord,
  TenantSettings,
  UserRecord,
} from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';
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
  };
}

export function userRecord(row: Row): UserRecord {
  return {
    id: must(parseId('usr', text(row, 'id')), 'id'),
    tenantId: must(parseTenantId(text(row, 'tenant_id')), 'tenant_id'),
    status: oneOf(row, 'status', ['active', 'deactivated']),
    roles: roleNames(row['roles']),
  };
}

export function sessionRecord(row: Row): SessionRecord {
  return {
    id: must(parseId('ses', text(row, 'id')), 'id'),
    userId: must(parseId('usr', text(row, 'user_id')), 'user_id'),
    ended: row['ended'] === true,
    expiresAtMs: number(row, 'expires_at_ms'),
  };
}

/** A tenant's rules in pieces of JSON of about 32 KB, as cache-loader.ts reads them. */
interface RulePieces {
  readonly roles: readonly string[];
  readonly policies: readonly string[];
}

export function* tenantRecord(row: Row, { roles, policies }: RulePieces): Steps<TenantRecord> {
  return {
    id: must(parseTenantId(text(row, 'id')), 'id'),
    status: oneOf(row, 'status', ['active', 'suspended']),
    settings: settings(object(row['settings'], 'settings')),
    quotas: quotas(object(row['quotas'], 'quotas')),
    roles: yield* itemsOf(roles, 'roles', (role) => roleRecord(named(ROLE_MEMBERS, role, 'roles'))),
    policies: yield* policyRecords(policies),
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
  'attached_roles',
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
  };
}

const CONSTRAINED_KINDS: ReadonlySet<string> = new Set(['models', 'collections', 'agents']);

/** An unknown kind is a fault: without its constraint, the grant would cover more than intended. */
function constraints(value: unknown): ResourceConstraints {
  const row = object(value, 'resource_constraints');
  const unknown = Object.keys(row).find((kind) => !CONSTRAINED_KINDS.has(kind));
  if (unknown !== undefined) throw damaged(`resource_constraints.${unknown}`);
  return {
    ...optionalTexts(row, 'models'),
    ...optionalTexts(row, 'collections'),
    ...optionalTexts(row, 'agents'),
  };
}

function settings(row: Row): TenantSettings {
  return {
    ...present('default_model', optional(row, 'default_model', text)),
    ...present('max_tokens_per_request', optionalNumber(row, 'max_tokens_per_request')),
    ...present('rate_limit_rpm', optionalNumber(row, 'rate_limit_rpm')),
    ...present('timezone', optional(row, 'timezone', text)),
    ...present('allow_keys_without_expiry', optional(row, 'allow_keys_without_expiry', boolean)),
    ...present('require_stream_usage', optional(row, 'require_stream_usage', boolean)),
  };
}

function quotas(row: Row): TenantQuotas {
  return {
    ...present('monthly_tokens', optionalNumber(row, 'monthly_tokens')),
    ...present('max_users', optionalNumber(row, 'max_users')),
    ...present('max_collections', optionalNumber(row, 'max_collections')),
  };
}

function roleNames(value: unknown): readonly RoleName[] {
  return texts(value, 'roles').map((name) => must(parseRoleName(name), 'roles'));
}

function optionalTexts<Name extends string>(row: Row, name: Name): { readonly [N in Name]?: readonly string[] } {
  return present(
    name,
    optional(row, name, () => texts(row[name], name)),
  );
}

/** Returns an object with the member, or without it if there is no value: absent and null mean the same. */
function present<Name extends string, T>(name: Name, value: T | undefined): { readonly [N in Name]?: T } {
  const made: { [N in Name]?: T } = {};
  if (value !== undefined) {
    made[name] = value;
  }
  return made;
}

function optional<T>(row: Row, name: string, read: (row: Row, name: string) => T): T | undefined {
  return row[name] === null || row[name] === undefined ? undefined : read(row, name);
}

function optionalNumber(row: Row, name: string): number | undefined {
  return optional(row, name, number);
}

function text(row: Row, name: string): string {
  const value = row[name];
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

function list(value: unknown, name: string): readonly unknown[] {
  if (!Array.isArray(value)) throw damaged(name);
  return value;
}

function object(value: unknown, name: string): Row {
  if (!isObject(value)) throw damaged(name);
  return value;
}

function isObject(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function must<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw damaged(name);
  return value;
}

function damaged(name: string): Fault {
  return new Fault(`a stored row does not match the schema: ${name}`);
}
