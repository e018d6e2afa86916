/** The parts that the schemas of many endpoints are made of. */

import { type TArrayOptions, type TSchema, Type } from 'typebox';
import { MAX_CONSTRAINT_NAMES, MAX_ENTRIES } from '../../decision/limits.ts';
import type { Metadata } from '../../domain/records.ts';
import { VISIBLE_TEXT, VISIBLE_TITLE } from '../../domain/visible-text.ts';
import { MAX_COUNTED, MAX_CURSOR_LENGTH, MAX_LIMIT } from '../list/list.ts';
import {
  aName,
  aPermissionPattern,
  aResourceName,
  aResourcePattern,
  METADATA_KEY,
  TENANT_ID_PATTERN,
} from './grammar.ts';
import { asksAlso, described, filterText, flagOf, nullable } from './keywords.ts';

/** One of a few words. An `enum` has one error for an invalid value, and a union of constants has several. */
export function oneOf<const T extends string>(...words: readonly T[]) {
  return Type.Unsafe<T>({ type: 'string', enum: [...words] });
}

/**
 * For the description of the API: no NUL, and none of the characters that VISIBLE_TEXT refuses. It excludes every
 * joiner, and does not mention tags, because patterns of OpenAPI documents have no characters beyond U+FFFF.
 */
const DESCRIBED_TEXT =
  '[^\\u0000\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]*';

/** Text that people write: not blank, and without hidden characters. */
export function title(maxLength: number) {
  const described = `^${DESCRIBED_TEXT}\\S${DESCRIBED_TEXT}$`;
  return Type.String({ minLength: 1, maxLength, pattern: VISIBLE_TITLE, ...asksAlso({ pattern: described }) });
}

/** A time of a request, which may be absent. */
export function timeParameter(description: string) {
  return Type.Optional(Type.String({ format: 'date-time', maxLength: 64, description }));
}

/** Text that people write, without hidden characters. It may be empty. */
export function visibleText(maxLength: number) {
  return Type.String({ maxLength, pattern: VISIBLE_TEXT, ...asksAlso({ pattern: `^${DESCRIBED_TEXT}$` }) });
}

export const description = visibleText(2000);

const MAX_METADATA_PAIRS = 16;

export const metadataKey = {
  type: 'string',
  minLength: 1,
  maxLength: 64,
  pattern: '(?<!\\\\)$',
  ...asksAlso({ pattern: METADATA_KEY }),
};

/** Pairs that people attach to a key, a user or a tenant; null = none. */
export const metadata = Type.Unsafe<Metadata | null>({
  type: ['object', 'null'],
  description:
    'Pairs of text. Budgets can select keys by them. Nothing else in a decision reads them. An update replaces all pairs. Null or an empty object removes them.',
  maxProperties: MAX_METADATA_PAIRS,
  propertyNames: metadataKey,
  additionalProperties: { type: 'string', maxLength: 512 },
});

/** ASCII, so that lower case is the same everywhere; otherwise the address's host decides what is one. */
export const email = Type.String({ minLength: 3, maxLength: 254, pattern: '^[!-?A-~]+@[!-?A-~]+$' });

const texts = (item: TSchema, options: TArrayOptions) => Type.Unsafe<readonly string[]>(Type.Array(item, options));

/** Permission patterns. The use case gives the reasons for which a text is none. */
export const patterns = texts(Type.String({ maxLength: 256, ...aPermissionPattern }), { maxItems: MAX_ENTRIES });

export const somePatterns = texts(Type.String({ maxLength: 512, ...aPermissionPattern }), {
  minItems: 1,
  maxItems: MAX_ENTRIES,
});

export const someResourcePatterns = texts(Type.String({ maxLength: 512, ...aResourcePattern }), {
  minItems: 1,
  maxItems: MAX_ENTRIES,
});

export const roleNames = texts(Type.String({ maxLength: 64, ...aName }), { maxItems: 100 });

const resourceNames = Type.Unsafe<readonly string[] | null>({
  type: ['array', 'null'],
  items: { type: 'string', maxLength: 512, ...aResourceName },
  maxItems: MAX_CONSTRAINT_NAMES,
});

/**
 * Absent or null = any; an empty list = none. The constraints of a key take at most `MAX_CONSTRAINTS_BYTES` as JSON.
 */
export const resourceConstraints = Type.Unsafe<unknown>({
  type: ['object', 'null'],
  properties: { models: resourceNames, collections: resourceNames, agents: resourceNames },
  additionalProperties: false,
});

/** Absent or null = no limit, 0 = nothing. */
export const limitOrNull = nullable(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));

export const page = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_LIMIT, description: 'The number of rows of a page. Default: 50.' }),
  ),
  cursor: filterText(MAX_CURSOR_LENGTH, 'The `next_cursor` of the previous page, or of the export that stopped.'),
};

/** The parameters of a list whose rows can be counted. */
export const countedPage = {
  ...page,
  count: Type.Optional(
    flagOf(`\`true\`: the page also has \`total\`, or \`total_exceeds\` beyond ${MAX_COUNTED} rows.`),
  ),
};

/** Means the same as X-Tenant-ID; platform administrators may say `*` for every tenant. */
export const tenantFilter = {
  tenant_id: Type.Optional(
    Type.String({
      maxLength: 63,
      description: 'The same as X-Tenant-ID. Platform administrators may send * for all tenants.',
      ...asksAlso({ pattern: `^\\*$|${TENANT_ID_PATTERN}` }),
    }),
  ),
};

/** `include=names`: the names beside the ids of a list's rows. */
export const names = Type.Optional(
  described(
    oneOf('names'),
    '`names`: the current names of users (with `admin:users`) and keys (with `admin:keys`) beside their ids.',
  ),
);

/** The filter `q`: a part of some texts of a row. */
export const searchText = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }));

/** A filter that is present or not. */
export const only = (description: string) =>
  Type.Optional(Type.Unsafe<true>({ type: 'boolean', enum: [true], description }));

/** For lists of resources that have notices. */
export const withNotices = {
  notices: only(
    "`true`: only those with a notice. With `tenant_id=*`, rules of other tenants than the caller's own have no notice `duplicate`, `shadowed` or `no_effect`.",
  ),
};

export const closed = { additionalProperties: false } as const;

/** The query of a change of several resources that can be tried. */
export const dryRun = (verb: 'revokes' | 'changes') => {
  const description = `\`true\`: the server ${verb} nothing, and reports what it would ${verb.slice(0, -1)}.`;
  return Type.Object({ dry_run: Type.Optional(Type.Boolean({ description })) }, closed);
};

export const forced = Type.Object({ force: Type.Optional(Type.Boolean()) }, closed);

const strict = Type.Optional(flagOf('Rejects patterns that no route and no endpoint needs (422). Default: false.'));

export const strictly = Type.Object({ strict }, closed);

export const forcedStrictly = Type.Object({ ...forced.properties, strict }, closed);
