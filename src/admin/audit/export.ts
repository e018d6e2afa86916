/** The audit log as one stream, newest first: every row that the filters let through, fetched batch by batch as the reader takes them. */

import { listAudit, type StoredAudit } from '../../store/queries/audit-log.ts';
import type { AdminParts, Caller } from '../caller.ts';
import { scopeOf } from '../list.ts';
import { AUDIT_CSV_HEADER, auditCsvLine } from './csv.ts';
import { type AuditFilterQuery, auditFilter } from './filter.ts';
import { positionOf } from './list.ts';
import { type AuditResource, auditResource } from './resource.ts';

export type ExportFormat = 'ndjson' | 'csv';

interface Format {
  readonly header: string;
  readonly line: (row: AuditResource) => string;
}

const FORMATS: Readonly<Record<ExportFormat, Format>> = {
  ndjson: { header: '', line: (row) => `${JSON.stringify(row)}\n` },
  csv: { header: AUDIT_CSV_HEADER, line: auditCsvLine },
};

/** Between two batches no connection is held, however slowly the reader reads. */
const BATCH = 200;

/**
 * Resolves when the first rows are there, so that what can fail has a chance to do so before the answer begins.
 * @throws Refusal `invalid_parameter`
 */
export async function exportAudit(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: AuditFilterQuery,
  format: ExportFormat,
): Promise<AsyncIterable<string>> {
  const filter = auditFilter(query);
  const scope = scopeOf(caller);
  const fetch = (after: readonly string[] | undefined): Promise<readonly StoredAudit[]> =>
    listAudit(parts.db.knex, scope, filter, { after, take: BATCH });
  return pieces(FORMATS[format], await fetch(undefined), fetch);
}

async function* pieces(
  { header, line }: Format,
  first: readonly StoredAudit[],
  fetch: (after: readonly string[]) => Promise<readonly StoredAudit[]>,
): AsyncGenerator<string> {
  if (header !== '') yield header;
  for (let rows = first; ; ) {
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows.map((row) => line(auditResource(row))).join('');
    if (rows.length < BATCH) return;
    rows = await fetch(positionOf(last));
  }
}
