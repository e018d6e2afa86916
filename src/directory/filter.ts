/** Search filters as text (RFC 4515): escaping, templates with `{0}`, and validation. */

import {
  AndFilter,
  ApproximateFilter,
  EqualityFilter,
  ExtensibleFilter,
  type Filter,
  FilterParser,
  GreaterThanEqualsFilter,
  LessThanEqualsFilter,
  NotFilter,
  OrFilter,
  PresenceFilter,
  SubstringFilter,
} from 'ldapts';

/** Escapes a value for a filter, so that any text stays one value (RFC 4515, section 3). */
export function escapeFilterValue(value: string): string {
  return value.replace(
    /[*()\\]|(?=\p{ASCII})\p{Cc}/gu,
    (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** @param values for `{0}` and `{1}`. This escapes them, and does not replace placeholders in them. */
export function fillFilter(template: string, values: readonly string[]): string {
  return template.replace(/\{(\d)\}/g, (whole, digit: string) => {
    const value = values[Number(digit)];
    return value === undefined ? whole : escapeFilterValue(value);
  });
}

/**
 * Returns the template with `*` for every `{0}` and `{1}`, so that it matches every entry that some value can match.
 */
export function anyOf(template: string): string {
  return template.replace(/(:=)?\{\d\}/g, (_, rule: string | undefined) => `${rule ?? ''}*`);
}

/** Reports whether `anyOf` works for the template: a matching rule treats `*` as a character. */
export function hasAnyForm(template: string): boolean {
  return !/:=[^()]*\{\d\}/.test(template);
}

/**
 * Decodes bytes above 127 that are written as `\c3\a9`, because the client's parser would treat each as a character.
 * Returns undefined if they encode no character.
 */
export function decodeHighBytes(template: string): string | undefined {
  const text = template.replace(/(?:\\[89a-fA-F][0-9a-fA-F])+/g, (run) =>
    Buffer.from(run.replaceAll('\\', ''), 'hex').toString('utf8'),
  );
  return text.includes('\ufffd') ? undefined : text;
}

/** An attribute description (RFC 4512, section 2.5): a name or an object identifier, and options. */
const DESCRIPTION = /(?<=\()(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)(?:;[A-Za-z0-9-]+)*(?=[~<>:]?=|:)/g;
/** The descriptions that the client's parser supports. */
const PLAIN = /^[A-Za-z][A-Za-z0-9-]*$/;
/** A name that no attribute has. */
const STAND_IN = /^_(\d+)$/;

export function parseFilter(text: string): Filter | undefined {
  const described: string[] = [];
  const readable = text.replace(DESCRIPTION, (name) => (PLAIN.test(name) ? name : `_${described.push(name) - 1}`));
  try {
    const filter = FilterParser.parseString(readable);
    if (described.length > 0) describe(filter, described);
    return filter;
  } catch {
    return undefined;
  }
}

/** Replaces the stand-ins by their descriptions. */
function describe(filter: Filter, described: readonly string[]): void {
  const nameOf = (attribute: string): string => described[Number(STAND_IN.exec(attribute)?.[1])] ?? attribute;
  if (filter instanceof AndFilter || filter instanceof OrFilter) {
    for (const each of filter.filters) describe(each, described);
  } else if (filter instanceof NotFilter) {
    describe(filter.filter, described);
  } else if (filter instanceof ExtensibleFilter) {
    filter.matchType = nameOf(filter.matchType);
  } else if (
    filter instanceof EqualityFilter ||
    filter instanceof SubstringFilter ||
    filter instanceof PresenceFilter ||
    filter instanceof GreaterThanEqualsFilter ||
    filter instanceof LessThanEqualsFilter ||
    filter instanceof ApproximateFilter
  ) {
    filter.attribute = nameOf(filter.attribute);
  }
}

export function isFilterTemplate(template: string): boolean {
  return isBalanced(template) && parseFilter(fillFilter(template, ['x', 'x'])) !== undefined;
}

/**
 * Reports whether one pair of parentheses encloses the text. The client's parser accepts missing ones at the end; a
 * server may not.
 */
function isBalanced(text: string): boolean {
  let depth = 0;
  for (const [index, char] of [...text].entries()) {
    if (index > 0 && depth === 0) return false;
    if (char === '(') depth++;
    if (char === ')') depth--;
    if (depth < 0) return false;
  }
  return depth === 0 && text.startsWith('(');
}
