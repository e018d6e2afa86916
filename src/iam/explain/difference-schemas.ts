/** The schema of the response of /v1/iam/explain/difference. */

import { type Static, Type } from 'typebox';
import { RESOURCE_KINDS } from '../../decision/model.ts';
import { component, described, flagOf, nullable, shownText, shownTextOrNull } from '../schema/keywords.ts';
import { texts } from '../schema/resource-parts.ts';
import { closed, oneOf } from '../schema/schemas.ts';

const namesByKind = (description: string) =>
  Type.Object(
    { models: Type.Optional(texts), collections: Type.Optional(texts), agents: Type.Optional(texts) },
    { description },
  );

const nameSet = Type.Object({
  patterns: described(texts, 'One of them matches the name.'),
  also: described(texts, 'All of them match the name.'),
  except: described(texts, 'None of them matches the name.'),
});
export type BoxNames = Static<typeof nameSet>;

const witness = Type.Object(
  {
    subject: shownText('The id of a user or key.'),
    method: shownTextOrNull('Null for a request of the management API.'),
    path: shownTextOrNull('Null for a request of the management API.'),
    model: shownTextOrNull('The model that the request names.'),
    body: shownTextOrNull('The JSON body as text; null if the route reads none.'),
    client_ip: shownTextOrNull('Null: an unknown address.'),
    time: Type.String({ format: 'date-time', description: 'The time of the request.' }),
  },
  { description: 'One request of the box, with the members of a request to explain.' },
);

const box = component(
  'DifferenceBox',
  Type.Object({
    principals: Type.Object(
      {
        roles: described(
          texts,
          'Each user of the box holds one of them. A box without users: the owner of each key. A box may also have keys that no user owns.',
        ),
        without_roles: described(texts, 'None of these users or owners holds one of these.'),
        exact: flagOf('`false`: other users, or other owners, have such roles as well.'),
        users: Type.Integer({ description: 'The number of users.' }),
        keys: Type.Integer({ description: 'The number of keys.' }),
      },
      { description: 'The principals of the box.' },
    ),
    permission: shownText('The permission of the route.'),
    permissions: described(texts, 'The permission, or the two of a route with two.'),
    self: flagOf('`true`: a user acts on itself in the management API.'),
    resources: namesByKind(
      'Patterns of the names, by kind. A kind that is absent is one that the request does not have.',
    ),
    except: namesByKind('Patterns of names that are outside.'),
    regions: Type.Optional(
      Type.Array(
        Type.Object({
          kind: described(oneOf(...RESOURCE_KINDS), 'The kind of the names.'),
          each: Type.Array(nameSet, { description: 'Each resource of the request is in one of the sets.' }),
          some: Type.Array(Type.Array(nameSet), {
            description: 'In addition, each list of sets contains one of the resources of the request.',
          }),
          unnamed: flagOf('A request that does not name the resource is in the box as well.'),
        }),
        { description: 'Present if `resources` and `except` do not say everything: the exact names, by kind.' },
      ),
    ),
    addresses: Type.Optional(described(texts, 'CIDR blocks, and `missing` for an unknown address. Absent: all.')),
    week: Type.Optional(described(texts, 'Weekly hours. Absent: always.')),
    timezone: Type.Optional(shownText('The time zone of `week`.')),
    clocks: Type.Optional(
      Type.Array(
        Type.Object({
          timezone: shownText('A time zone.'),
          week: described(texts, 'Weekly hours.'),
        }),
        {
          description: 'Present if the hours matter in several time zones: the request lies in the hours of each.',
        },
      ),
    ),
    by: shownText('The name of the policy or role that the change comes from.'),
    by_kind: described(oneOf('policy', 'role'), 'The kind of the rule in `by`.'),
    witness,
    recent_requests: nullable(
      Type.Integer({
        description:
          'Metered requests of the last 7 days by keys, users and models of the box. Usage records no route, address or hour, so fewer may lie in a box that names them. Null if there is too much usage to read.',
      }),
    ),
  }),
);
export type DifferenceBox = Static<typeof box>;

const lists = {
  unchanged: flagOf('`true`: both lists are empty, and the difference is complete.'),
  newly_allowed: Type.Array(box, { description: 'Requests that are denied now and would be allowed.' }),
  newly_denied: Type.Array(box, { description: 'Requests that are allowed now and would be denied.' }),
};

export const RulesDifference = component(
  'Difference',
  Type.Object({
    complete: flagOf('`false`: a bound was exceeded, and there may be more boxes.'),
    reason: Type.Optional(shownText('Present unless `complete`: which bound.')),
    ...lists,
    management: Type.Object(lists, { description: 'The same for requests of the management API, /v1/iam.' }),
    affected: Type.Object(
      {
        users: Type.Integer({ description: 'The number of users.' }),
        keys: Type.Integer({ description: 'The number of keys.' }),
      },
      { description: 'Users and keys of the tenant with a request whose outcome changes.' },
    ),
    recent: Type.Object(
      {
        checked: Type.Integer({ description: 'Recent decisions that were decided again with and without the change.' }),
        changed: Type.Integer({ description: 'Those of them whose outcome differs.' }),
        sampled: flagOf('`true`: other decisions were not recorded.'),
      },
      { description: 'Recorded decisions of the last 24 hours.' },
    ),
  }),
);
export type RulesDifference = Static<typeof RulesDifference>;

export const differenceQuery = Type.Object(
  {
    shadow: Type.Optional(
      flagOf(
        '`true`: `recent` has decisions in shadow mode. `false`: decisions that the gate enforced. Default: false.',
      ),
    ),
  },
  closed,
);
