/** The bounds of names, globs and rules. Validation enforces them and evaluation relies on them. */

/** Longest name or glob in a role, a policy or a key, in characters (code points). */
export const MAX_GLOB_LENGTH = 256;
export const MAX_STARS = 8;
/** The largest number of entries of one list of `resource_constraints`: one list per kind. */
export const MAX_CONSTRAINT_NAMES = 200;
/** The largest number of bytes of the constraints of one key, as JSON. */
export const MAX_CONSTRAINTS_BYTES = 64 * 1024;
/** The largest number of entries of any other list of a rule: permissions, actions, resources, networks. */
export const MAX_ENTRIES = 1000;
/**
 * The largest number of windows of one operator of `weekly_hours`: a grid of 7 x 24 cells has at most 12 runs of hours
 * in each day.
 */
export const MAX_WEEKLY_WINDOWS = 84;
/** Longest name of a resource in a request, in bytes of UTF-8; so it has at most as many UTF-16 code units. */
export const MAX_RESOURCE_NAME = 512;

/**
 * The largest number of members of the object in a request's body. Their names are at most as long as those of
 * resources.
 */
export const MAX_MEMBERS = 256;
/** The largest number of collections that one request names: each is compared with every grant and policy. */
export const MAX_COLLECTIONS = 64;
export const MAX_CHOICES = 128;
export const MAX_PROMPTS = 2048;
/** Bytes of text in UTF-8 for one token of an estimate. English text has about this ratio. */
export const BYTES_PER_TOKEN = 4;

/**
 * Most work of one decision on rules, in units of about 25 ns: a policy that names the permission, a name compared with
 * a list, a piece of a glob compared with a name. The bound ends steps 12 to 14 within 5 ms for any rules and any
 * request. A key at all of its bounds with a request at all of its own takes 120,000.
 */
export const MAX_RULE_WORK = 130_000;

/** The work that is left for one decision. Negative: the limit was exceeded, and the decision must be a denial. */
export interface RuleWork {
  left: number;
}

export function ruleWork(): RuleWork {
  return { left: MAX_RULE_WORK };
}
