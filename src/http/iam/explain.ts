/** /v1/iam/explain */

import { Type } from 'typebox';
import { type ExplainParts, explainRequest } from '../../admin/explain/explain.ts';
import { callerRoute, NOTHING, type Route } from '../route.ts';
import { nullable } from '../validation.ts';
import { closed } from './schemas.ts';

const question = Type.Object(
  {
    subject: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'The id of a user or a key.' })),
    credential: Type.Optional(Type.String({ maxLength: 16_384 })),
    tenant_id: Type.Optional(Type.String({ maxLength: 1024, description: 'Stands for X-Tenant-ID.' })),
    method: Type.String({ minLength: 1, maxLength: 64 }),
    path: Type.String({ maxLength: 65_536 }),
    client_ip: Type.Optional(nullable(Type.String({ maxLength: 128 }))),
    time: Type.Optional(Type.String({ format: 'date-time', maxLength: 64 })),
    body: Type.Optional(Type.String()),
    content_type: Type.Optional(Type.String({ maxLength: 1024 })),
  },
  closed,
);

export function explainRoutes(parts: ExplainParts): readonly Route[] {
  return [
    callerRoute({
      method: 'POST',
      path: '/v1/iam/explain',
      summary: 'Explain what would be decided about a request. Nothing is counted.',
      permission: 'use-case',
      body: question,
      query: NOTHING,
      handler: async ({ caller, body }) => ({ status: 200, body: await explainRequest(parts, { kind: 'caller', caller }, body) }),
    }),
  ];
}
