/** The schema of /v1/iam/overview. */

import { type Static, Type } from 'typebox';
import { ApiKey, type KeyResource } from '../api-keys/entity.ts';
import { AuditLogRow } from '../audit/schemas.ts';
import { RecentDecision } from '../decisions/schemas.ts';
import type { Noticed } from '../permissions/notices.ts';
import { component, countOf, described, flagOf, shownText } from '../schema/keywords.ts';
import { instant, noticePart, text } from '../schema/resource-parts.ts';
import { oneOf } from '../schema/schemas.ts';
import { MonthlyLimit } from '../schema/tenant-limits.ts';
import { User } from '../users/entity.ts';

/** The rows of each part. */
export const SHOWN = { denials: 5, changes: 5, users: 5, notices: 8, keys: 4, models: 5 } as const;
/** The newest active keys, whose notices are computed. */
export const EXAMINED_KEYS = 100;
/** The days within which a key is about to expire. */
export const SOON_DAYS = 14;

const users = (description: string) => Type.Array(User, { maxItems: SHOWN.users, description });

const NoticedResource = component(
  'NoticedResource',
  Type.Object({
    kind: oneOf('role', 'policy', 'key'),
    id: shownText('The name of a role or policy, or the id of a key.'),
    name: text,
    notice: noticePart,
  }),
);
export type NoticedResource = Static<typeof NoticedResource>;

export const Overview = component(
  'Overview',
  Type.Object({
    monthly_tokens: Type.Optional(MonthlyLimit),
    denials: Type.Optional(
      Type.Array(RecentDecision, { maxItems: SHOWN.denials, description: 'The latest denials, with names.' }),
    ),
    changes: Type.Optional(
      Type.Array(AuditLogRow, { maxItems: SHOWN.changes, description: 'The latest changes, with names.' }),
    ),
    users: Type.Optional(
      Type.Object({
        locked: users('Accounts that failed logins have locked.'),
        email_conflicts: users('Users of a directory whose address another user has.'),
        suspended: users('Users that their directory has suspended.'),
      }),
    ),
    unpriced_models: Type.Optional(
      Type.Array(
        Type.Object({
          model: shownText('The name that the requests gave.'),
          requests: countOf('The requests of the current month that cost nothing.'),
        }),
        {
          maxItems: SHOWN.models,
          description: 'Models without a price, those with the most requests first. Empty while no prices are set.',
        },
      ),
    ),
    notices: Type.Object(
      {
        data: Type.Array(NoticedResource, {
          maxItems: SHOWN.notices,
          description: 'Notices of enabled policies, custom roles and active keys that the caller may read.',
        }),
        has_more: Type.Boolean(),
        all_keys: flagOf(`\`false\`: of the active keys, only the newest ${EXAMINED_KEYS} were examined.`),
      },
      { description: 'Parts of rules and keys without effect.' },
    ),
    expiring_keys: Type.Object(
      {
        before: described(instant, 'The end of the time within which they expire.'),
        total: countOf(`Active keys that expire within ${SOON_DAYS} days, at most 10,000.`),
        data: Type.Array(ApiKey, { maxItems: SHOWN.keys, description: 'The first of them to expire.' }),
      },
      { description: 'Keys that expire soon.' },
    ),
  }),
);
/** Rows as their lists show them. */
export interface OverviewReport extends Omit<Static<typeof Overview>, 'expiring_keys'> {
  readonly expiring_keys: {
    readonly before: Date;
    readonly total: number;
    readonly data: readonly (KeyResource & Noticed)[];
  };
}
