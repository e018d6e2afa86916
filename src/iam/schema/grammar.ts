/**
 * The forms of names and patterns, for the description of the API. The use cases reject other texts, with their
 * reasons.
 */

import { CONDITIONS } from '../../decision/condition-table.ts';
import { MAX_GLOB_LENGTH, MAX_STARS } from '../../decision/limits.ts';
import { MAX_PATTERN_LENGTH } from '../../decision/permissions.ts';
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '../../identity/password-rules.ts';
import { asksAlso } from './keywords.ts';

/** A key of metadata, as a name in JSON that the server reads and stores. */
export const METADATA_KEY = '^[^\\u0000]*[^\\u0000\\\\]$';

/** Names of roles and policies. */
export const NAME = '^[a-z][a-z0-9_-]{0,62}$';
export const TENANT_ID_PATTERN = '^[a-z0-9][a-z0-9-]{0,62}$';
/** `*` or `<resource>:<action>`. */
export const PERMISSION_PATTERN = '^(\\*|(\\*|[a-z][a-z0-9_-]*):(\\*|[a-z][a-z0-9_-]*))$';
/** One permission, without wildcards. */
export const PERMISSION = '^[a-z][a-z0-9_-]*:[a-z][a-z0-9_-]*$';
const HIDDEN =
  '\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb';
const LITERAL = '[^*\\u0000-\\u001f\\u007f-\\u009f]*';
const GLOB = `${LITERAL}(\\*${LITERAL}){0,${MAX_STARS}}`;
/** Longest `<kind>/<glob>`, in characters. */
const MAX_RESOURCE_PATTERN_LENGTH = 'collections/'.length + MAX_GLOB_LENGTH;
/** `*` or `<kind>/<glob>`. */
export const RESOURCE_PATTERN = `^(\\*|(models|collections|agents)/(?!$)${GLOB})$`;

export const aName = asksAlso({ pattern: NAME });
/** Text that a person types: not blank, without control characters. The server removes surrounding blanks. */
export const aBudgetName = asksAlso({
  minLength: 1,
  pattern: `^[^${HIDDEN}]*[^\\s${HIDDEN}][^${HIDDEN}]*$`,
  examples: ['Research, EMEA'],
});
export const aTenantId = asksAlso({ pattern: TENANT_ID_PATTERN });
export const aPermissionPattern = asksAlso({ pattern: PERMISSION_PATTERN, maxLength: MAX_PATTERN_LENGTH });
export const aPermission = asksAlso({ pattern: PERMISSION, maxLength: MAX_PATTERN_LENGTH });
export const aResourcePattern = asksAlso({ pattern: RESOURCE_PATTERN, maxLength: MAX_RESOURCE_PATTERN_LENGTH });
/** Names of models, collections and agents, or globs. */
export const aResourceName = asksAlso({ minLength: 1, maxLength: MAX_GLOB_LENGTH, pattern: `^(?!$)${GLOB}$` });
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

/** The operators of each condition as a request may have them. */
const conditionMembers = Object.entries(CONDITIONS).map(([key, { operators, schema, description }]) => [
  key,
  {
    type: 'object',
    description,
    properties: Object.fromEntries(operators.map((operator) => [operator, schema])),
    additionalProperties: false,
    minProperties: 1,
  },
]);

export const someConditions = asksAlso({
  properties: {
    ...Object.fromEntries(conditionMembers),
    timezone: { type: 'string', description: 'A name of the IANA time zone database.', examples: ['Europe/Berlin'] },
  },
  additionalProperties: false,
});
