/** Exports the audit log as one stream of NDJSON or CSV, newest first, with the filters of the list. */

import type { AdminParts } from '../caller/caller.ts';
import {
  batchOf,
  type CsvColumns,
  type ExportCaller,
  exportFormats,
  MAX_BATCH_BYTES,
  startExport,
} from '../list/export.ts';
import { cursorsOf, scopeOf } from '../list/list.ts';
import type { StoredAudit } from './queries.ts';
import { auditFilter, auditResource, fetchAudit, positionOf } from './read.ts';
import type { AuditQuery } from './schemas.ts';

const CSV_COLUMNS: CsvColumns<StoredAudit> = {
  id: (row) => String(row.id),
  time: (row) => row.time.toISOString(),
  actor_type: (row) => row.actor_type,
  actor_id: (row) => row.actor_id,
  tenant_id: (row) => row.tenant_id,
  address: (row) => row.address,
  action: (row) => row.action,
  target_type: (row) => row.target_type,
  target_id: (row) => row.target_id,
  result: (row) => row.result,
  before: (row) => json(row.before),
  after: (row) => json(row.after),
  request_id: (row) => row.request_id,
};

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

const FORMATS = exportFormats<StoredAudit>(CSV_COLUMNS, auditResource);

const BATCH = 200;

/**
 * Resolves after the first batch is read.
 * @throws Refusal `invalid_parameter`
 */
export async function exportAudit(
  parts: Pick<AdminParts, 'db' | 'feed' | 'now'>,
  from: ExportCaller,
  query: AuditQuery,
  format: keyof typeof FORMATS,
): Promise<AsyncIterable<string>> {
  const filter = auditFilter(query);
  return startExport(parts, from, cursorsOf(from.caller, 'audit', query), {
    fetch: async (caller, after) => {
      const page = { after, take: BATCH, maxBytes: MAX_BATCH_BYTES };
      return batchOf(await fetchAudit(parts.db.knex, scopeOf(caller), query, filter, page), positionOf);
    },
    format: FORMATS[format],
  });
}
