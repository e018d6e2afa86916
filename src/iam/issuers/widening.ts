/**
 * The additions of a change of an issuer: tokens that it accepts in addition, and roles that its mapping gives in addition.
 * Pure. Where two versions cannot be compared, the change counts as wider.
 */

import { isDeepStrictEqual } from 'node:util';
import { compileGlob, globContains } from '../../decision/globs.ts';
import type { RoleName } from '../../domain/ids.ts';
import type { ClaimRule, IssuerKey, IssuerUsers, StoredEarlier } from '../../domain/records.ts';
import { DEFAULT_TOKEN_TYPES } from '../../domain/token-types.ts';
import { rolesOfMapping } from './users.ts';
import type { IssuerValues } from './values.ts';

export interface Widening {
  /**
   * True if further tokens are accepted, or tokens prove other principals. Then everything that the issuer gives
   * counts as given.
   */
  readonly everything: boolean;
  /** Roles that the mapping gives to further subjects. */
  readonly roles: readonly RoleName[];
  /** True if a member by which tokens are accepted became wider: tokens issued before must satisfy both versions. */
  readonly acceptsMore: boolean;
  /** True if the keys come from another source. */
  readonly replacesKeys: boolean;
  /** True if older tokens must not create users or give roles. */
  readonly givesMore: boolean;
  /** True if older tokens must be refused altogether. */
  readonly refusesOlder: boolean;
}

export function wideningOf(before: IssuerValues, after: IssuerValues): Widening {
  const replacesKeys = isOther(before, after, ['issuer', 'jwks', 'jwks_uri', 'ca']);
  const acceptsMore = replacesKeys || acceptsFurther(before, after);
  const proves = provesOthers(before.users, after.users);
  const enables = after.enabled && !before.enabled;
  const refusesOlder = enables || before.issuer !== after.issuer || proves === 'other subjects';
  const given = rolesAdded(before.users, after.users);
  const creates = after.users?.create === true && before.users?.create !== true;
  return {
    everything: acceptsMore || enables || proves !== 'the same' || loginIsWider(before, after),
    roles: creates ? rolesOfMapping(after.users) : given,
    acceptsMore,
    replacesKeys,
    givesMore: creates || given.length > 0 || proves !== 'the same',
    refusesOlder,
  };
}

function isOther(before: IssuerValues, after: IssuerValues, members: readonly (keyof IssuerValues)[]): boolean {
  return members.some((member) => !isDeepStrictEqual(before[member], after[member]));
}

function acceptsFurther(before: IssuerValues, after: IssuerValues): boolean {
  return (
    hasMore(before.audiences, after.audiences) ||
    hasMore(before.algorithms, after.algorithms) ||
    hasMore(typesOf(before), typesOf(after)) ||
    requiresMore(after, before) ||
    (after.max_age_seconds ?? Number.POSITIVE_INFINITY) > (before.max_age_seconds ?? Number.POSITIVE_INFINITY) ||
    after.leeway_seconds > before.leeway_seconds
  );
}

function typesOf({ kind, token_types }: IssuerValues): readonly string[] {
  return token_types ?? DEFAULT_TOKEN_TYPES[kind];
}

function hasMore(before: readonly string[], after: readonly string[]): boolean {
  return after.some((text) => !before.includes(text));
}

/** Reports whether tokens that satisfied `required_claims` may not satisfy them after a change. */
export function requiresMore(before: IssuerValues, after: IssuerValues): boolean {
  return !after.required_claims.every((rule) => before.required_claims.some((other) => implies(other, rule)));
}

/** Reports whether each token that satisfies one rule satisfies the other. */
function implies(one: ClaimRule, other: ClaimRule): boolean {
  if (one.claim !== other.claim) return false;
  const globs = other.in.map(compileGlob);
  return one.in.every((value) => globs.some((glob) => globContains(glob, compileGlob(value))));
}

function provesOthers(
  before: IssuerUsers | null,
  after: IssuerUsers | null,
): 'the same' | 'further subjects' | 'other subjects' {
  if (after === null) return 'the same';
  if (before === null) return 'further subjects';
  return before.subject_claim === after.subject_claim ? 'the same' : 'other subjects';
}

/** The login accepts ID tokens of another client, or with another strength of authentication. */
export function loginIsWider({ sso: before }: IssuerValues, { sso: after }: IssuerValues): boolean {
  if (after === null) return false;
  if (before === null || before.client_id !== after.client_id) return true;
  return before.required_acr !== undefined && before.required_acr !== after.required_acr;
}

/** Returns the roles that a rule, or the default, gives to subjects to which the mapping did not give them before. */
function rolesAdded(before: IssuerUsers | null, after: IssuerUsers | null): readonly RoleName[] {
  if (after === null) return [];
  const gave = (role: RoleName, rule: ClaimRule | undefined): boolean =>
    before?.default_roles.includes(role) === true ||
    (rule !== undefined && before?.roles.some((old) => old.roles.includes(role) && implies(rule, old)) === true);
  return [
    ...new Set([
      ...after.default_roles.filter((role) => !gave(role, undefined)),
      ...after.roles.flatMap((rule) => rule.roles.filter((role) => !gave(role, rule))),
    ]),
  ];
}

const KEPT_MS = 24 * 3_600_000;
/** Rules that `earlier` has after several changes. With more, the change refuses older tokens altogether. */
const MAX_RULES = 200;

interface Acceptance extends Omit<StoredEarlier, 'untilMs'> {}

/**
 * Returns the members that tokens issued before a wider change must satisfy as well: those before the change, and those
 * before another one of the last 24 hours.
 * @param keys the keys before the change, if it replaces their source
 * @param nowMs floored to the second, because `iat` has whole seconds
 * @returns undefined if the members became too many
 */
export function earlierAfter(
  before: IssuerValues & { readonly earlier: StoredEarlier | null },
  keys: readonly IssuerKey[] | undefined,
  nowMs: number,
): StoredEarlier | undefined {
  const now: Acceptance = {
    audiences: before.audiences,
    algorithms: before.algorithms,
    tokenTypes: typesOf(before),
    requiredClaims: before.required_claims,
    leewaySeconds: before.leeway_seconds,
    ...(before.max_age_seconds === null ? {} : { maxAgeSeconds: before.max_age_seconds }),
    ...(keys === undefined ? {} : { keys }),
  };
  const { earlier } = before;
  const recent = earlier !== null && nowMs - earlier.untilMs < KEPT_MS ? earlier : undefined;
  const both = recent === undefined ? now : intersection(recent, now);
  return both.requiredClaims.length > MAX_RULES ? undefined : { ...both, untilMs: nowMs };
}

/** The members that accept a token only if both versions accept it. */
function intersection(one: Acceptance, other: Acceptance): Acceptance {
  const common = (left: readonly string[], right: readonly string[]) => left.filter((text) => right.includes(text));
  const ages = [one.maxAgeSeconds, other.maxAgeSeconds].filter((age) => age !== undefined);
  const leeways = [one.leewaySeconds, other.leewaySeconds].filter((leeway) => leeway !== undefined);
  const rules = new Map([...one.requiredClaims, ...other.requiredClaims].map((rule) => [JSON.stringify(rule), rule]));
  const keys =
    one.keys === undefined || other.keys === undefined
      ? (one.keys ?? other.keys)
      : one.keys.filter((key) => other.keys?.some((same) => isDeepStrictEqual(key, same)));
  return {
    audiences: common(one.audiences, other.audiences),
    algorithms: common(one.algorithms, other.algorithms),
    tokenTypes: common(one.tokenTypes, other.tokenTypes),
    requiredClaims: [...rules.values()],
    ...(ages.length === 0 ? {} : { maxAgeSeconds: Math.min(...ages) }),
    ...(leeways.length === 0 ? {} : { leewaySeconds: Math.min(...leeways) }),
    ...(keys === undefined ? {} : { keys }),
  };
}
