/**
 * The claims of a token: how a rule on a claim finds and compares its value. Everything here reads claims whose
 * signature the caller has verified, and is bounded: a token and the rules of an issuer come from other people.
 */

import { compileNames, type NameSet, namesMatch } from '../decision/globs.ts';
import { type RuleWork, ruleWork } from '../decision/limits.ts';
import type { RoleName } from '../domain/ids.ts';
import { isObject, pointerSteps } from '../domain/json.ts';
import { type ClaimRule, type IssuerUsers, MAX_SUBJECT_LENGTH } from '../domain/records.ts';
import { isStorable } from '../domain/storable.ts';
import { compareTexts } from '../domain/text.ts';

/** The payload of a token, with each member once. */
export type Claims = Readonly<Record<string, unknown>>;

export function isGlob(text: string): boolean {
  return text.includes('*');
}

/**
 * Returns the value of a claim; undefined if the token has none.
 * @param claim a name, or a JSON pointer (RFC 6901) if it begins with `/`
 */
export function claimValue(claims: Claims, claim: string): unknown {
  return namesOf(claim).reduce<unknown>(member, claims);
}

function namesOf(claim: string): readonly string[] {
  return claim.startsWith('/') ? pointerSteps(claim) : [claim];
}

/** RFC 6901, section 4: an index without leading zeros. */
const INDEX = /^(?:0|[1-9][0-9]{0,8})$/;

/** Own members only: a claim may have the name of a member of every object. */
function member(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return INDEX.test(name) ? value[Number(name)] : undefined;
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** Returns a claim that is a text of 1 to 512 characters which PostgreSQL can store; otherwise undefined. */
export function subjectOf(claims: Claims, claim: string): string | undefined {
  const value = claimValue(claims, claim);
  return typeof value === 'string' && isSubject(value) ? value : undefined;
}

/** Reports whether a text can be stored as a subject: 1 to 512 characters (code points), as the schemas count them. */
export function isSubject(text: string): boolean {
  const isShort =
    text.length <= MAX_SUBJECT_LENGTH ||
    (text.length <= 2 * MAX_SUBJECT_LENGTH && [...text].length <= MAX_SUBJECT_LENGTH);
  return text !== '' && isShort && isStorable(text);
}

/**
 * Reports whether the claims satisfy each of the rules.
 * @param work what the matching may still spend, as in a decision; when it is spent, nothing matches any longer
 */
export function matchesRules(claims: Claims, rules: readonly ClaimRule[], work: RuleWork = ruleWork()): boolean {
  return rules.every((rule) => matchesRule(claims, rule, work));
}

function matchesRule(claims: Claims, rule: ClaimRule, work: RuleWork): boolean {
  const value = claimValue(claims, rule.claim);
  const names = valuesOf(rule);
  const matches = (item: unknown): boolean => typeof item === 'string' && namesMatch(names, item, work);
  return Array.isArray(value) ? value.some(matches) : matches(value);
}

/** The compiled values of a rule. A rule belongs to one cached record, which is frozen. */
const compiled = new WeakMap<ClaimRule, NameSet>();

function valuesOf(rule: ClaimRule): NameSet {
  return compiled.getOrInsertComputed(rule, () => compileNames(rule.in, 'leave out'));
}

/** Returns the roles that the mapping of an issuer gives for these claims, sorted and each once. */
export function mappedRoles(users: IssuerUsers, claims: Claims): readonly RoleName[] {
  const work = ruleWork();
  const given = users.roles.filter((rule) => matchesRule(claims, rule, work)).flatMap((rule) => rule.roles);
  return [...new Set([...users.default_roles, ...given])].toSorted(compareTexts);
}

/**
 * Returns the first claim of the rules that the token replaces by a link: a provider with too many groups of a user
 * sends the address of the list in `_claim_names` (OpenID Connect Core 1.0, section 5.6.2). Such a claim must not count
 * as an empty list.
 */
export function linkedClaim(claims: Claims, rules: readonly ClaimRule[]): string | undefined {
  const links = claimValue(claims, '_claim_names');
  if (links === undefined) return undefined;
  return rules
    .flatMap((rule) => namesOf(rule.claim).slice(0, 1))
    .find((name) => isObject(links) && Object.hasOwn(links, name));
}
