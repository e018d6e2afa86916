/** Lists the permissions of the platform that a key's scopes cover, each with its last recorded use. */

import { type Static, Type } from 'typebox';
import { compilePatterns, covers } from '../../decision/permissions.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type List, paged } from '../list/list.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { component, nullable } from '../schema/keywords.ts';
import { closed, countedPage } from '../schema/schemas.ts';
import { lastUses } from './permission-use-queries.ts';
import { type PlatformPermission, platformPermissions, UNUSED_DAYS } from './platform-permissions.ts';
import { readKey } from './read.ts';

export const KeyPermission = component(
  'ApiKeyPermission',
  Type.Object({
    permission: Type.String({ examples: ['chat:write'] }),
    last_used_on: nullable(
      Type.String({
        format: 'date',
        description: `The day of the last recorded use, in UTC. Null: no use is recorded in the last ${UNUSED_DAYS} days.`,
      }),
    ),
  }),
);

export const keyPermissionPage = Type.Object(countedPage, closed);

/** @throws Refusal of the decision; `not_found`; `invalid_parameter` for a cursor of another list */
export async function listKeyPermissions(
  parts: AdminParts & CatalogParts,
  caller: Caller,
  text: string,
  query: Static<typeof keyPermissionPage>,
): Promise<List<Static<typeof KeyPermission>>> {
  const { id, scopes } = await readKey(parts, caller, text);
  const set = compilePatterns(scopes);
  const covered = platformPermissions(parts.routes).filter(({ permission }) => covers(set, permission));
  const uses = await lastUses(parts.db.knex, id, caller.nowMs);
  return paged(
    caller,
    `permissions of ${id}`,
    query,
    async ({ after, take }) =>
      covered.filter(({ permission }) => after === undefined || permission.text > (after[0] ?? '')).slice(0, take),
    ({ permission }) => [permission.text],
    ({ permission, recorded }) => ({ permission: permission.text, last_used_on: lastOf(recorded, uses) }),
    async () => covered.length,
  );
}

function lastOf(recorded: PlatformPermission['recorded'], uses: ReadonlyMap<string, string>): string | null {
  const days = recorded.flatMap((name) => uses.get(name) ?? []);
  return days.toSorted().at(-1) ?? null;
}
