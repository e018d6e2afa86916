/** Exports a who-can list as one stream of NDJSON or CSV: roles, users and keys, each in one row. */

import type { AdminParts } from '../caller/caller.ts';
import { type CsvColumns, type ExportCaller, exportFormats, MAX_BATCH_BYTES, startExport } from '../list/export.ts';
import { cursorsOf } from '../list/list.ts';
import type { WhoCanQuery } from './schemas.ts';
import { type AccessRow, abilitiesInQuery, gatherAccess, listedName, type WhoCanParts } from './who-can.ts';

const CSV_COLUMNS: CsvColumns<AccessRow> = {
  type: (row) => row.type,
  id: (row) => (row.type === 'role' ? null : row.id),
  name: (row) => (row.type === 'api_key' ? row.description : row.name),
  email: (row) => (row.type === 'user' ? row.email : null),
  tenant_id: (row) => (row.type === 'user' ? row.tenant_id : null),
  user_id: (row) => (row.type === 'api_key' ? row.user_id : null),
  roles: (row) => (row.type === 'user' ? row.roles.join(' ') : null),
  by: (row) => row.by,
  permissions: (row) => row.permissions.join(' '),
  verdict: (row) => row.verdict,
  conditions: (row) => row.conditions.join(' '),
  expires_at: (row) => (row.type === 'api_key' ? (row.expires_at?.toISOString() ?? null) : null),
};

const FORMATS = exportFormats<AccessRow>(CSV_COLUMNS, (row) => row);

const BATCH = 200;
const LISTED = 'roles_and_principals';

/**
 * Resolves after the first batch. Each batch has the bounds of a page.
 * @throws Refusal `invalid_parameter`
 */
export async function exportWhoCan(
  parts: WhoCanParts & Pick<AdminParts, 'feed' | 'now'>,
  from: ExportCaller,
  query: WhoCanQuery,
  format: keyof typeof FORMATS,
): Promise<AsyncIterable<string>> {
  const abilities = abilitiesInQuery(parts, query);
  return startExport<AccessRow>(parts, from, cursorsOf(from.caller, listedName(LISTED), query), {
    fetch: async (caller, after) => {
      const { found } = await gatherAccess(parts, caller, abilities, LISTED, {
        after,
        limit: BATCH,
        maxBytes: MAX_BATCH_BYTES,
      });
      return { rows: found.shown, next: found.next };
    },
    format: FORMATS[format],
  });
}
