/**
 * Notices about parts of a role, a policy or a key that have no effect. The server computes them for each answer and
 * does not store them.
 */

import type { Static } from 'typebox';
import type { RuleFinding } from '../../decision/difference/findings.ts';
import { isNeeded } from '../../decision/permission-catalog.ts';
import { isPermissionPattern } from '../../decision/permissions.ts';
import type { KeyResource } from '../api-keys/entity.ts';
import { invalidFields } from '../caller/refusals.ts';
import type { PolicyResource } from '../policies/entity.ts';
import type { RoleResource } from '../roles/entity.ts';
import { MAX_NOTICES, type noticePart } from '../schema/resource-parts.ts';
import { type CatalogParts, catalogOf } from './catalog.ts';
import { NO_FINDINGS, type TenantFindings } from './findings.ts';

export type Notice = Static<typeof noticePart>;

/** Both members are absent if there are no notices. */
export interface Noticed {
  readonly notices?: readonly Notice[];
  /** The messages of `notices` as one text. */
  readonly notice?: string;
}

/**
 * Returns a notice for each pattern that covers no permission of any route and no management permission, at most
 * `MAX_NOTICES`.
 */
export function patternNotices({ routes }: CatalogParts, patterns: readonly string[], path: string): readonly Notice[] {
  const catalog = catalogOf(routes);
  const unneeded = patterns.flatMap((pattern, index) => (isNeeded(catalog, pattern) ? [] : [{ pattern, index }]));
  return unneeded.slice(0, MAX_NOTICES).map(({ pattern, index }) => {
    const nearest = catalog.nearest(pattern) ?? null;
    const advice = nearest === null ? '' : ` The nearest existing permission is ${nearest}.`;
    const message = `${pattern} covers no permission that a route or an endpoint needs.${advice}`;
    return { kind: 'unneeded_pattern', path: `${path}/${index}`, pattern, nearest, message };
  });
}

/**
 * Rejects patterns that cover no permission, for requests with `?strict=true`. The use case rejects texts that are not
 * patterns.
 * @param patterns undefined if the request does not name the member
 * @throws Refusal `invalid_field`
 */
export function refuseUnneeded(parts: CatalogParts, patterns: readonly string[] | undefined, path: string): void {
  if (patterns?.every(isPermissionPattern) !== true) return;
  const notices = patternNotices(parts, patterns, path);
  if (notices.length > 0) throw invalidFields(notices.map(({ path, message }) => ({ path, message })));
}

/** Built-in roles have no notices: no request can change them. */
export function noticedRole(
  parts: CatalogParts,
  role: RoleResource,
  findings: TenantFindings = NO_FINDINGS,
): RoleResource & Noticed {
  if (role.builtin) return role;
  const found = findings.about('role', role.tenant_id, role.name).map(findingNotice);
  return { ...role, ...noticed([...found, ...patternNotices(parts, role.permissions, '/permissions')]) };
}

export function noticedPolicy(
  parts: CatalogParts,
  policy: PolicyResource,
  findings: TenantFindings = NO_FINDINGS,
): PolicyResource & Noticed {
  const found =
    policy.enabled && policy.mode === 'enforce'
      ? findings.about('policy', policy.tenant_id, policy.name).map(findingNotice)
      : [];
  return { ...policy, ...noticed([...found, ...policyNotices(parts, policy)]) };
}

function findingNotice({ kind, rule, effect, by }: RuleFinding): Notice {
  const others = by.map((one) => `the ${one.kind} ${one.name}`).join(', ');
  return { kind, path: '', pattern: null, nearest: null, message: findingMessage(kind, rule.kind, effect, others) };
}

function findingMessage(
  kind: RuleFinding['kind'],
  rule: 'policy' | 'role',
  effect: RuleFinding['effect'],
  others: string,
): string {
  switch (kind) {
    case 'duplicate':
      return `The policy says the same as ${others}. Delete one of them.`;
    case 'shadowed':
      return `Every request that the ${rule} permits is denied, by ${others}. Delete the ${rule}, or narrow the denies.`;
    case 'no_effect':
      return effect === 'deny'
        ? `Every request that the policy denies is denied without it, by ${others}. The policy may be deleted.`
        : `No request depends on the ${rule}: other rules decide in the same way without it, such as ${others}. The ${rule} may be deleted.`;
    default:
      return kind satisfies never;
  }
}

export function noticedKey<K extends KeyResource>(parts: CatalogParts, key: K): K & Noticed {
  return { ...key, ...noticed(patternNotices(parts, key.scopes, '/scopes')) };
}

/** Returns the notices of a policy, saved or not. */
export function policyNotices(
  parts: CatalogParts,
  policy: Pick<PolicyResource, 'actions' | 'applies_to' | 'attached_roles'>,
): readonly Notice[] {
  const { applies_to: appliesTo, attached_roles: roles } = policy;
  return [
    ...(appliesTo === 'roles' && roles.length === 0 ? [BINDS_NO_ONE] : []),
    ...patternNotices(parts, policy.actions, '/actions'),
  ];
}

export const BINDS_NO_ONE: Notice = {
  kind: 'binds_no_one',
  path: '/attached_roles',
  pattern: null,
  nearest: null,
  message: 'The policy applies to roles, but no role is attached, so it applies to no principal. Attach a role.',
};

export function noticed(notices: readonly Notice[]): Noticed {
  return notices.length === 0 ? {} : { notices, notice: notices.map(({ message }) => message).join(' ') };
}
