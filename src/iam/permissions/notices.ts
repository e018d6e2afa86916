/**
 * Notices about parts of a role, a policy or a key that have no effect. The server computes them for each answer and
 * does not store them.
 */

import { isNeeded } from '../../decision/permission-catalog.ts';
import { isPermissionPattern } from '../../decision/permissions.ts';
import type { KeyResource } from '../api-keys/entity.ts';
import { invalidFields } from '../caller/refusals.ts';
import type { PolicyResource } from '../policies/entity.ts';
import type { RoleResource } from '../roles/entity.ts';
import { MAX_NOTICES } from '../schema/resource-parts.ts';
import { type CatalogParts, catalogOf } from './catalog.ts';

export interface Notice {
  readonly kind: 'unneeded_pattern' | 'binds_no_one';
  /** A JSON pointer to the member. */
  readonly path: string;
  /** The pattern that covers no permission; null for other kinds. */
  readonly pattern: string | null;
  /** The nearest pattern of the same form that covers a permission. */
  readonly nearest: string | null;
  readonly message: string;
}

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
export function noticedRole(parts: CatalogParts, role: RoleResource): RoleResource & Noticed {
  return { ...role, ...noticed(role.builtin ? [] : patternNotices(parts, role.permissions, '/permissions')) };
}

export function noticedPolicy(parts: CatalogParts, policy: PolicyResource): PolicyResource & Noticed {
  return { ...policy, ...noticed(policyNotices(parts, policy)) };
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

function noticed(notices: readonly Notice[]): Noticed {
  return notices.length === 0 ? {} : { notices, notice: notices.map(({ message }) => message).join(' ') };
}
