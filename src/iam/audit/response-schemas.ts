/** The schemas of the responses of /v1/iam/audit. */

import { Type } from 'typebox';
import { component, nullable } from '../schema/keywords.ts';

import { instant, text } from '../schema/resource-parts.ts';
import { oneOf } from '../schema/schemas.ts';
import { MAX_UNSEALED } from './chain.ts';

export const AuditRow = component(
  'AuditRow',
  Type.Object({
    id: text,
    time: instant,
    actor: Type.Object({
      type: oneOf('user', 'api_key', 'system', 'anonymous'),
      id: nullable(Type.String({ description: 'Null for the system and for requests without a known principal.' })),
    }),
    tenant_id: nullable(Type.String({ description: 'Null if the event belongs to no tenant.' })),
    address: nullable(text),
    action: Type.String({ examples: ['user.create', 'auth.login'] }),
    target: Type.Object({ type: nullable(text), id: nullable(text) }),
    result: oneOf('success', 'failure', 'refused'),
    before: Type.Unknown({ description: 'The state before the change, without secrets. Null if nothing is recorded.' }),
    after: Type.Unknown({ description: 'The state after the change, or details of the event, without secrets.' }),
    request_id: nullable(text),
  }),
);

export const AuditChain = component(
  'AuditChain',
  Type.Object({
    rows: Type.Integer({ minimum: 0, description: 'The number of audit rows that are sealed.' }),
    seals: Type.Integer({ minimum: 0 }),
    unsealed: Type.Integer({
      minimum: 0,
      maximum: MAX_UNSEALED,
      description: `Rows that wait for a seal, at most ${MAX_UNSEALED}.`,
    }),
    newest_seal: Type.Unsafe({
      ...Type.Object({
        number: Type.Integer({ minimum: 1 }),
        hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
        time: instant,
      }),
      type: ['object', 'null'],
      description: 'Null if there is none yet.',
    }),
  }),
);
