/** The schemas of a change of several users. */

import { Type } from 'typebox';
import { component, countOf, flagOf, nullable, optionalText } from '../schema/keywords.ts';
import { rejection, text } from '../schema/resource-parts.ts';
import { closed, dryRun, oneOf } from '../schema/schemas.ts';
import { userFilters } from './entity.ts';

/** The largest number of users of one change. */
export const MAX_CHANGED = 500;

const userFilter = Type.Object(userFilters, {
  ...closed,
  description: 'Users that match all members, except the caller. An empty object matches every user of the tenant.',
});

/** The use case accepts exactly one of `ids` and `filter`. */
export const severalUsers = component(
  'UsersToChange',
  Type.Object(
    {
      action: oneOf('deactivate', 'add_role', 'remove_role'),
      role: optionalText(64, 'The role to add or to remove. Not for `deactivate`.'),
      ids: Type.Optional(
        Type.Array(Type.String({ maxLength: 64 }), {
          minItems: 1,
          maxItems: MAX_CHANGED,
          description: 'The ids of the users. Either `ids` or `filter`.',
        }),
      ),
      filter: Type.Optional(userFilter),
    },
    { ...closed, examples: [{ action: 'add_role', role: 'auditor', filter: { q: 'research' } }] },
  ),
);

export const userTrial = dryRun('changes');

export const UserChangesReport = component(
  'UserChangesReport',
  Type.Object({
    dry_run: Type.Boolean(),
    changed: countOf('The number of users that were changed, or that would be changed in a dry run.'),
    has_more: flagOf('The filter matched more users than one request takes. Send it again for the rest.'),
    data: Type.Array(
      Type.Object({
        id: text,
        outcome: oneOf('changed', 'would_change', 'unchanged', 'not_found', 'rejected'),
        ...rejection,
        user: Type.Optional(
          Type.Object({ name: text, email: nullable(text) }, { description: 'Identifies the user to a person.' }),
        ),
      }),
    ),
  }),
);
