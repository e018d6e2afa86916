/** The schemas of /v1/iam/audit. */

import { type Static, Type } from 'typebox';
import { component, countOf, filterText, nullable, shownTextOrNull } from '../schema/keywords.ts';
import { instant, text } from '../schema/resource-parts.ts';
import { closed, countedPage, names, oneOf, searchText, tenantFilter, timeParameter } from '../schema/schemas.ts';

const auditResult = oneOf('success', 'failure', 'refused');

const name = Type.Optional(
  shownTextOrNull(
    'With `include=names`: the current name of the user or key. Null: there is none, or the caller may not read it.',
  ),
);

export const AuditLogRow = component(
  'AuditRow',
  Type.Object({
    id: text,
    time: instant,
    actor: Type.Object({
      type: oneOf('user', 'api_key', 'system', 'anonymous'),
      id: shownTextOrNull('Null for the system and for requests without a known principal.'),
      name,
    }),
    tenant_id: shownTextOrNull('Null if the event belongs to no tenant.'),
    address: nullable(text),
    action: Type.String({ examples: ['user.create', 'auth.login'] }),
    target: Type.Object({ type: nullable(text), id: nullable(text), name }),
    result: auditResult,
    before: Type.Unknown({ description: 'The state before the change, without secrets. Null if nothing is recorded.' }),
    after: Type.Unknown({ description: 'The state after the change, or details of the event, without secrets.' }),
    request_id: nullable(text),
  }),
);
export type AuditResource = Static<typeof AuditLogRow>;

/** The bound on the count of unsealed rows. A running server seals rows within seconds. */
export const MAX_UNSEALED = 100_000;

export const AuditChain = component(
  'AuditChain',
  Type.Object({
    rows: countOf('The number of audit rows that are sealed.'),
    seals: Type.Integer({ minimum: 0 }),
    unsealed: Type.Integer({
      minimum: 0,
      maximum: MAX_UNSEALED,
      description: `Rows that wait for a seal, at most ${MAX_UNSEALED}.`,
    }),
    newest_seal: nullable(
      Type.Object(
        {
          number: Type.Integer({ minimum: 1 }),
          hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
          time: instant,
        },
        { description: 'Null if there is none yet.' },
      ),
    ),
  }),
);

export const auditQuery = Type.Object(
  {
    ...countedPage,
    ...tenantFilter,
    actor: filterText(64, 'An id, or `system` or `anonymous` for actors without an id.'),
    action: filterText(64, 'As in auth.login.'),
    target: filterText(400, 'An id or a name, or with its type before it: role/auditor.'),
    q: searchText(
      'Any part of the name or email address of the actor or of the target, in any case; or a whole id, request id, name of a target, or prefix of a key. The page has no `total` if more than 500 users and keys have the text.',
    ),
    result: Type.Optional(auditResult),
    from: timeParameter('The start of the time span, included.'),
    to: timeParameter('The end of the time span, excluded.'),
    request_id: Type.Optional(Type.String({ minLength: 1, maxLength: 64 })),
    include: names,
  },
  closed,
);
export type AuditQuery = Static<typeof auditQuery>;
