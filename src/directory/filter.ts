/** Search filters as text (RFC 4515): escaping, templates with `{0}`, and whether a configured one can be read at all. */

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

/** The value as it stands in a filter: one value, whatever it holds (RFC 4515, section 3). */
export function escapeFilterValue(value: string): string {
  return value.replace(
    /[*()\\]|(?=\p{ASCII})\p{Cc}/gu,
    (char) => `\\${char.charCodeAt(0).toString(16).padStart(2, '0')}`,
  );
}

/** @param values for `{0}`, `{1}`; escaped here, and never looked at for placeholders themselves */
export function fillFilter(template: string, values: readonly string[]): string {
  return template.replace(/\{(\d)\}/g, (whole, digit: string) => {
    const value = values[Number(digit)];
    return value === undefined ? whole : escapeFilterValue(value);
  });
}

/** The template with every `{0}` and `{1}` standing for any value, so that it says who could match at all. */
export function anyOf(template: string): string {
  return template.replace(/(:=)?\{\d\}/g, (_, rule: string | undefined) => `${rule ?? ''}*`);
}

/** Whether `anyOf` means what it says: a matching rule takes `*` for a star. */
export function hasAnyForm(template: string): boolean {
  return !/:=[^()]*\{\d\}/.test(template);
}

/**
 * Bytes above 127 that are written as `\c3\a9` become the characters that they encode; undefined when they encode none. The client's
 * parser would take each for a character of its own.
 */
export function decodeHighBytes(template: string): string | undefined {
  const text = template.replace(/(?:\\[89a-fA-F][0-9a-fA-F])+/g, (run) =>
    Buffer.from(run.replaceAll('\\', ''), 'hex').toString('utf8'),
  );
  return text.includes('\ufffd') ? undefined : text;
}

/** An attribute description (RFC 4512, section 2.5): a name or an object identifier, and options. */
const DESCRIPTION = /(?<=\()(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)+)(?:;[A-Za-z0-9-]+)*(?=[~<>:]?=|:)/g;
/** The descriptions that the client's parser reads. */
const PLAIN = /^[A-Za-z][A-Za-z0-9-]*$/;
/** A name that no attribute has. */
const STAND_IN = /^_(\d+)$/;

/** Returns undefined if the text is not a filter. */
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

/** Puts the descriptions back in the place of their stand-ins. */
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

/** Whether a template can be filled and read. */
export function isFilterTemplate(template: string): boolean {
  return isBalanced(template) && parseFilter(fillFilter(template, ['x', 'x'])) !== undefined;
}

/** One pair of parentheses around all. The client's parser forgives what is missing at the end; a server may read that otherwise. */
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
