/** What names and patterns look like, for the description of the API. The use cases refuse what is otherwise, with their reasons. */

import { MAX_ENTRIES, MAX_GLOB_LENGTH, MAX_STARS, MAX_WEEKLY_WINDOWS } from '../../decision/limits.ts';
import { MAX_PATTERN_LENGTH } from '../../decision/permissions.ts';
import { DAY_NAMES } from '../../domain/records.ts';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../identity/password-rules.ts';
import { asksAlso } from './keywords.ts';

/** Of roles and policies. */
export const NAME = '^[a-z][a-z0-9_-]{0,62}$';
export const TENANT_ID = '^[a-z0-9][a-z0-9-]{0,62}$';
/** `*` or `<resource>:<action>`. */
export const PERMISSION_PATTERN = '^(\\*|(\\*|[a-z][a-z0-9_-]*):(\\*|[a-z][a-z0-9_-]*))$';
/** One permission, without wildcards. */
export const PERMISSION = '^[a-z][a-z0-9_-]*:[a-z][a-z0-9_-]*$';
const LITERAL = '[^*\\u0000-\\u001f\\u007f-\\u009f]*';
const GLOB = `${LITERAL}(\\*${LITERAL}){0,${MAX_STARS}}`;
/** Longest `<kind>/<glob>`, in characters. */
export const MAX_RESOURCE_PATTERN_LENGTH = 'collections/'.length + MAX_GLOB_LENGTH;
/** `*` or `<kind>/<glob>`. */
export const RESOURCE_PATTERN = `^(\\*|(models|collections|agents)/(?!$)${GLOB})$`;
/** Names of models, collections and agents, or globs. */
export const RESOURCE_NAME = `^(?!$)${GLOB}$`;
const TIME_OF_DAY = '([01][0-9]|2[0-3]):[0-5][0-9]';
const END_OF_SPAN = `(${TIME_OF_DAY}|24:00)`;
const DAY = `(${DAY_NAMES.join('|')})`;
/** `<days> <start>-<end>`: a range names two different days, and the start and the end differ. */
const WEEKLY_WINDOW = `^(?!(.{3})-\\1)(?!.* (.{5})-\\2)${DAY}(-${DAY})? ${TIME_OF_DAY}-${END_OF_SPAN}$`;

export const aName = asksAlso({ pattern: NAME });
export const aTenantId = asksAlso({ pattern: TENANT_ID });
export const aPermissionPattern = asksAlso({ pattern: PERMISSION_PATTERN, maxLength: MAX_PATTERN_LENGTH });
export const aPermission = asksAlso({ pattern: PERMISSION, maxLength: MAX_PATTERN_LENGTH });
export const aResourcePattern = asksAlso({ pattern: RESOURCE_PATTERN, maxLength: MAX_RESOURCE_PATTERN_LENGTH });
/** It must not be easily guessed either. */
export const aPassword = asksAlso({
  minLength: MIN_PASSWORD_LENGTH,
  maxLength: MAX_PASSWORD_LENGTH,
  pattern: '^[^\\u0000]*$',
  examples: ['a lake of tin whistles'],
});

/** Two members that exclude each other. */
export function notBoth(one: string, other: string) {
  return asksAlso({ not: { required: [one, other] } });
}

const operators = (one: string, other: string, operand: object) => ({
  type: 'object',
  properties: { [one]: operand, [other]: operand },
  additionalProperties: false,
  minProperties: 1,
});

const addresses = {
  type: 'array',
  items: {
    type: 'string',
    description: 'An address or a CIDR block without host bits, IPv4 or IPv6.',
    examples: ['10.0.0.0/8'],
  },
  minItems: 1,
  maxItems: MAX_ENTRIES,
};
const span = {
  type: 'array',
  items: { type: 'string', pattern: `^${END_OF_SPAN}$` },
  minItems: 2,
  maxItems: 2,
  uniqueItems: true,
  // Only the end may be 24:00.
  not: { type: 'array', prefixItems: [{ const: '24:00' }, {}], items: {}, minItems: 2, maxItems: 2 },
  examples: [['22:00', '06:00']],
};
const days = { type: 'array', items: { type: 'string', enum: DAY_NAMES }, minItems: 1, maxItems: MAX_ENTRIES };

const windows = {
  type: 'array',
  items: {
    type: 'string',
    pattern: WEEKLY_WINDOW,
    description:
      'Days and a window. The start is included, the end excluded; one that crosses midnight belongs to the day on which it starts.',
    examples: ['Mon-Fri 08:00-18:00', 'Sat 22:00-02:00', 'Sun 20:00-24:00'],
  },
  minItems: 1,
  maxItems: MAX_WEEKLY_WINDOWS,
};

export const someConditions = asksAlso({
  properties: {
    ip_address: operators('in', 'not_in', addresses),
    time: operators('between', 'not_between', span),
    day_of_week: operators('in', 'not_in', days),
    weekly_hours: operators('in', 'not_in', windows),
    timezone: { type: 'string', description: 'A name of the IANA time zone database.', examples: ['Europe/Berlin'] },
  },
  additionalProperties: false,
});
