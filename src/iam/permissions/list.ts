/** Lists every permission, with the routes and endpoints that need it, so that a client can show what a pattern covers. */

import { compilePatterns, covers, type PatternSet } from '../../decision/permissions.ts';
import type { Caller } from '../caller/caller.ts';
import { type List, type ListQuery, paged } from '../list/list.ts';
import { type CatalogParts, catalogOf } from './catalog.ts';

export interface PermissionQuery extends ListQuery {
  /** Default: every permission. */
  readonly pattern?: string;
}

/** A request that needs the permission. */
export interface NeedingRoute {
  readonly method: string;
  /** A template, with `{name}` for its variables. */
  readonly path: string;
}

export interface PermissionResource {
  /** `<resource>:<action>` */
  readonly permission: string;
  /** `platform`: routes behind the proxy; `management`: endpoints of `/v1/iam`. */
  readonly kind: 'platform' | 'management';
  /** At most `MAX_ROUTES`. */
  readonly routes: readonly NeedingRoute[];
  /** All of them. */
  readonly route_count: number;
}

/** An endpoint of management, with the permissions of which it takes one. */
export interface NeedingEndpoint extends NeedingRoute {
  readonly permissions: readonly string[];
}

/** Routes that one permission shows. */
export const MAX_ROUTES = 100;

/** @throws Refusal `invalid_parameter` for a cursor of another list */
export async function listPermissionsPage(
  { routes }: CatalogParts,
  endpoints: readonly NeedingEndpoint[],
  caller: Caller,
  query: PermissionQuery,
): Promise<List<PermissionResource>> {
  const set: PatternSet = compilePatterns([query.pattern ?? '*']);
  const named = catalogOf(routes)
    .permissions.filter((permission) => covers(set, permission))
    .map(({ text }) => text);
  const platform = new Map<string, NeedingRoute[]>();
  for (const { method, template, permissions } of routes.routes) {
    for (const { text } of permissions) platform.set(text, [...(platform.get(text) ?? []), { method, path: template }]);
  }
  const show = (permission: string): PermissionResource => {
    const ofPlatform = platform.get(permission) ?? [];
    const ofManagement = endpoints.flatMap(({ method, path, permissions }) =>
      permissions.includes(permission) ? [{ method, path }] : [],
    );
    const needing = [...ofPlatform, ...ofManagement];
    const kind = ofPlatform.length > 0 ? 'platform' : 'management';
    return { permission, kind, routes: needing.slice(0, MAX_ROUTES), route_count: needing.length };
  };
  return paged(
    caller,
    'permissions',
    query,
    async ({ after, take }) =>
      named.filter((permission) => after === undefined || permission > (after[0] ?? '')).slice(0, take),
    (permission) => [permission],
    show,
    async () => named.length,
  );
}
