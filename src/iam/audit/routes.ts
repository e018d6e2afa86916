/** /v1/iam/audit: pages of JSON, or everything as one stream of NDJSON or CSV. */

import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { exportableList } from '../../http/exports.ts';
import type { AdminParts } from '../caller/caller.ts';
import { listOf } from '../schema/resource-parts.ts';
import { exportAudit } from './export.ts';
import { auditChain, listAuditPage } from './read.ts';
import { AuditChain, AuditLogRow, auditQuery } from './schemas.ts';

const list = exportableList(
  'One page of rows, newest first, or the stream that the Accept header asks for.',
  listOf(AuditLogRow),
  {
    ndjson: 'One row as JSON on each line.',
    csv: 'A header line, then one row on each line. before and after are JSON.',
  },
);

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
      answers: list.answers,
      handler: ({ caller, again, query, header }) =>
        list.answer(header('accept'), query, {
          page: () => listAuditPage(parts, caller, query),
          whole: async (format) => ({
            name: 'audit',
            pieces: await exportAudit(parts, { caller, again }, query, format),
          }),
        }),
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
