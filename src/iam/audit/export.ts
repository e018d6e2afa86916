/** The audit log as one stream, newest first: every row that the filters let through. */

import type { AdminParts } from '../caller/caller.ts';
import {
  type ExportCaller,
  type ExportFormat,
  MAX_BATCH_BYTES,
  startExport,
  stoppedCsv,
  stoppedNdjson,
} from '../list/export.ts';
import { cursorsOf, scopeOf } from '../list/list.ts';
import { AUDIT_CSV_HEADER, auditCsvLine } from './csv.ts';
import { auditFilter } from './filter.ts';
import { type AuditListQuery, positionIn, positionOf } from './list.ts';
import { listAudit, type StoredAudit } from './queries.ts';
import { auditResource } from './resource.ts';

const FORMATS = {
  ndjson: { header: '', line: (row) => `${JSON.stringify(auditResource(row))}\n`, stopped: stoppedNdjson },
  csv: { header: AUDIT_CSV_HEADER, line: (row) => auditCsvLine(auditResource(row)), stopped: stoppedCsv },
} as const satisfies Readonly<Record<string, ExportFormat<StoredAudit>>>;

export type AuditExportFormat = keyof typeof FORMATS;

/** Rows of one batch. */
const BATCH = 200;

/**
 * Resolves when the first rows are fetched.
 * @throws Refusal `invalid_parameter`
 */
export async function exportAudit(
  parts: Pick<AdminParts, 'db' | 'feed' | 'now'>,
  from: ExportCaller,
  query: AuditListQuery,
  format: AuditExportFormat,
): Promise<AsyncIterable<string>> {
  const filter = auditFilter(query);
  return startExport(parts, from, cursorsOf(from.caller, 'audit', query), {
    fetch: (caller, after) =>
      listAudit(parts.db.knex, scopeOf(caller), filter, {
        after: positionIn(after),
        take: BATCH,
        maxBytes: MAX_BATCH_BYTES,
      }),
    position: positionOf,
    format: FORMATS[format],
  });
}
