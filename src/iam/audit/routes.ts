/** /v1/iam/audit: pages of JSON, or everything as one stream of NDJSON or CSV. */

import { Type } from 'typebox';
import { type Answers, shows } from '../../http/answers.ts';
import { type Answer, callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { LONGEST_EXPORT_MS, PAGES, refuseLimit, stopsEarly, wantedType } from '../../http/exports.ts';
import type { AdminParts } from '../caller/caller.ts';
import { listOf } from '../schema/resource-parts.ts';
import { type AuditExportFormat, exportAudit } from './export.ts';
import { auditChain, listAuditPage } from './read.ts';
import { AuditChain, AuditLogRow, auditQuery } from './schemas.ts';

const EXPORTS: Readonly<
  Record<string, { readonly format: AuditExportFormat; readonly type: string; readonly file: string }>
> = {
  'application/x-ndjson': { format: 'ndjson', type: 'application/x-ndjson; charset=utf-8', file: 'audit.ndjson' },
  'text/csv': { format: 'csv', type: 'text/csv; charset=utf-8; header=present', file: 'audit.csv' },
};

const answers: Answers = {
  200: {
    description: 'One page of rows, newest first, or the stream that the Accept header asks for.',
    content: {
      [PAGES]: listOf(AuditLogRow),
      'application/x-ndjson': Type.String({
        description: `One row as JSON on each line. ${stopsEarly('an object with `object` `export_stopped`, `reason`, `detail` and `next_cursor`')}`,
      }),
      'text/csv': Type.String({
        description: `A header line, then one row on each line. before and after are JSON. ${stopsEarly('`export_stopped`, the reason and the cursor')}`,
      }),
    },
  },
};

export function auditEndpoints(parts: AdminParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/audit',
      operationId: 'listAudit',
      summary:
        'Read the audit log, newest first: in pages, or as one stream of NDJSON or CSV if the Accept header asks for it.',
      permission: 'audit:read',
      query: auditQuery,
      answers,
      handler: async ({ caller, again, query, header }): Promise<Answer> => {
        const wanted = EXPORTS[wantedType(header('accept'), Object.keys(EXPORTS))];
        const headers = { vary: 'accept' };
        if (wanted === undefined) return { status: 200, headers, body: await listAuditPage(parts, caller, query) };
        refuseLimit(query);
        const pieces = await exportAudit(parts, { caller, again }, query, wanted.format);
        return {
          status: 200,
          headers: { ...headers, 'content-disposition': `attachment; filename="${wanted.file}"` },
          stream: { type: wanted.type, pieces, longestMs: LONGEST_EXPORT_MS },
        };
      },
    }),
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/audit/chain',
      operationId: 'getAuditChain',
      summary: 'Show how far the audit log is sealed. The server verifies nothing.',
      permission: 'audit:read',
      // All tenants share a chain.
      platformOnly: true,
      answers: shows('The state of the chain.', AuditChain),
      run: () => auditChain(parts),
    }),
  ];
}
