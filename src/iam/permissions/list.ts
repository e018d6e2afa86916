/**
 * Lists every permission, with the routes and endpoints that need it, so that a client can show what a pattern covers.
 */

import { type Static, Type } from 'typebox';
import { compilePatterns, covers, MAX_PATTERN_LENGTH } from '../../decision/permissions.ts';
import type { Caller } from '../caller/caller.ts';
import { type List, paged } from '../list/list.ts';
import { PERMISSION_PATTERN } from '../schema/grammar.ts';
import { component, described, shownText } from '../schema/keywords.ts';
import { closed, countedPage, oneOf } from '../schema/schemas.ts';
import { type CatalogParts, catalogOf } from './catalog.ts';

/** The largest number of routes that the list shows for one permission. */
const MAX_ROUTES = 100;

export const permissionSchema = component(
  'Permission',
  Type.Object({
    permission: Type.String({ examples: ['chat:write'] }),
    kind: described(
      oneOf('platform', 'management'),
      '`platform`: routes of the platform require it. `management`: only endpoints under /v1/iam require it.',
    ),
    routes: Type.Array(Type.Object({ method: Type.String(), path: shownText('A path template.') }), {
      maxItems: MAX_ROUTES,
      description:
        'The routes and endpoints that require the permission, or for which it is one of two sufficient permissions.',
    }),
    route_count: Type.Integer({ description: `All of them; \`routes\` shows ${MAX_ROUTES} at most.` }),
  }),
);

export const permissionFilters = Type.Object(
  {
    ...countedPage,
    pattern: Type.Optional(
      Type.String({
        maxLength: MAX_PATTERN_LENGTH,
        pattern: PERMISSION_PATTERN,
        description: 'Only permissions that this pattern covers.',
      }),
    ),
  },
  closed,
);

type PermissionResource = Readonly<Static<typeof permissionSchema>>;

/** An endpoint of management, with its path template and the permissions of which it requires one. */
export interface ManagementEndpoint {
  readonly method: string;
  readonly path: string;
  readonly permissions: readonly string[];
}

/** @throws Refusal `invalid_parameter` for a cursor of another list */
export async function listPermissionsPage(
  { routes }: CatalogParts,
  endpoints: readonly ManagementEndpoint[],
  caller: Caller,
  query: Readonly<Static<typeof permissionFilters>>,
): Promise<List<PermissionResource>> {
  const set = compilePatterns([query.pattern ?? '*']);
  const named = catalogOf(routes)
    .permissions.filter((permission) => covers(set, permission))
    .map(({ text }) => text);
  const platform = new Map<string, PermissionResource['routes']>();
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
