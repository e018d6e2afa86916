/** What a change of an issuer adds, beside a naive twin that asks tokens. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseIssuerName, parseRoleName, type RoleName } from '../../src/domain/ids.ts';
import type { ClaimRule, IssuerUsers, StoredEarlier } from '../../src/domain/records.ts';
import type { IssuerValues } from '../../src/iam/issuers/values.ts';
import { earlierAfter, wideningOf } from '../../src/iam/issuers/widening.ts';
import { mappedRoles, matchesRules } from '../../src/identity/claims.ts';
import { runs } from '../support/properties.ts';

const name = parseIssuerName('one');
if (name === undefined) throw new Error('no name');

const some = <T>(values: readonly T[]) => fc.subarray([...values], { minLength: 1 });
const rule: fc.Arbitrary<ClaimRule> = fc.record({
  claim: fc.constantFrom('a', 'b'),
  in: some(['x', 'xy', 'x*', '*', '*y']),
});
const roles: readonly RoleName[] = ['developer', 'analyst'].flatMap((role) => parseRoleName(role) ?? []);
const users: fc.Arbitrary<IssuerUsers | null> = fc.option(
  fc.record({
    subject_claim: fc.constantFrom('sub', 'oid'),
    create: fc.boolean(),
    roles: fc.array(
      fc.tuple(rule, some(roles)).map(([each, given]) => ({ ...each, roles: given })),
      { maxLength: 2 },
    ),
    default_roles: fc.subarray([...roles]),
  }),
  { nil: null },
);
const AUDIENCES = ['p', 'q'];
const ALGORITHMS = ['ES256', 'RS256'];
const TYPES = ['JWT', '', 'at+jwt'];
const AGES = [10, 20, null];
const values: fc.Arbitrary<IssuerValues> = fc.record({
  name: fc.constant(name),
  kind: fc.constant('oidc' as const),
  issuer: fc.constant('https://login.example'),
  audiences: some(AUDIENCES),
  jwks_uri: fc.constant(null),
  jwks: fc.constant(null),
  ca: fc.constant(null),
  algorithms: some(ALGORITHMS),
  token_types: fc.option(some(TYPES), { nil: null }),
  required_claims: fc.array(rule, { maxLength: 2 }),
  users,
  sso: fc.constant(null),
  enabled: fc.constant(true),
  max_age_seconds: fc.constantFrom(...AGES),
  leeway_seconds: fc.constantFrom(0, 5, 10),
});

interface Token {
  readonly aud: readonly string[];
  readonly alg: string;
  readonly typ: string;
  readonly ageSeconds: number;
  /** The time since `exp`. */
  readonly pastSeconds: number;
  readonly claims: Readonly<Record<string, unknown>>;
}

const claim = fc.constantFrom('x', 'y', 'xy', 'xz', 'z', undefined);
const token: fc.Arbitrary<Token> = fc.record({
  aud: some(AUDIENCES),
  alg: fc.constantFrom(...ALGORITHMS),
  typ: fc.constantFrom(...TYPES),
  ageSeconds: fc.constantFrom(5, 15, 25),
  pastSeconds: fc.constantFrom(-1, 3, 8),
  claims: fc.record({ a: claim, b: claim }),
});

interface Acceptance {
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
  readonly tokenTypes: readonly string[];
  readonly requiredClaims: readonly ClaimRule[];
  readonly maxAgeSeconds?: number | undefined;
  readonly leewaySeconds?: number;
}

const acceptanceOf = (issuer: IssuerValues): Acceptance => ({
  audiences: issuer.audiences,
  algorithms: issuer.algorithms,
  tokenTypes: issuer.token_types ?? ['at+jwt', 'JWT', ''],
  requiredClaims: issuer.required_claims,
  maxAgeSeconds: issuer.max_age_seconds ?? undefined,
  leewaySeconds: issuer.leeway_seconds,
});

function accepts(by: Acceptance, { aud, alg, typ, ageSeconds, pastSeconds, claims }: Token): boolean {
  return (
    aud.some((one) => by.audiences.includes(one)) &&
    by.algorithms.includes(alg) &&
    by.tokenTypes.includes(typ) &&
    matchesRules(claims, by.requiredClaims) &&
    ageSeconds <= (by.maxAgeSeconds ?? Number.POSITIVE_INFINITY) &&
    pastSeconds < (by.leewaySeconds ?? Number.POSITIVE_INFINITY)
  );
}

const given = (issuer: IssuerValues, { claims }: Token): readonly RoleName[] =>
  issuer.users === null ? [] : mappedRoles(issuer.users, claims);

describe('a change of an issuer', () => {
  it('counts as wider if any token is accepted after it and not before', () => {
    fc.assert(
      fc.property(values, values, fc.array(token, { minLength: 20, maxLength: 20 }), (before, after, tokens) => {
        const further = tokens.filter(
          (one) => accepts(acceptanceOf(after), one) && !accepts(acceptanceOf(before), one),
        );
        const { acceptsMore, everything } = wideningOf(before, after);
        if (further.length > 0) expect([acceptsMore, everything]).toEqual([true, true]);
      }),
      { numRuns: runs(300) },
    );
  });

  it('names each role that any claims give after it and not before', () => {
    fc.assert(
      fc.property(values, values, fc.array(token, { minLength: 20, maxLength: 20 }), (before, after, tokens) => {
        const { roles: named, everything, givesMore } = wideningOf(before, after);
        for (const one of tokens) {
          const had = given(before, one);
          const further = given(after, one).filter((role) => !had.includes(role));
          if (further.length === 0) continue;
          expect([givesMore, everything || further.every((role) => named.includes(role))]).toEqual([true, true]);
        }
      }),
      { numRuns: runs(300) },
    );
  });

  it('that changes nothing adds nothing', () => {
    fc.assert(
      fc.property(values, (issuer) => {
        expect(wideningOf(issuer, structuredClone(issuer))).toEqual({
          everything: false,
          roles: [],
          acceptsMore: false,
          replacesKeys: false,
          givesMore: false,
          refusesOlder: false,
        });
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('a token that is older than several changes within a day', () => {
  it('is accepted only if each version since accepted it', () => {
    fc.assert(
      fc.property(
        fc.array(values, { minLength: 2, maxLength: 5 }),
        fc.array(token, { minLength: 20, maxLength: 20 }),
        (versions, tokens) => {
          let earlier: StoredEarlier | null = null;
          for (const [i, next] of versions.slice(1).entries()) {
            const current = versions[i];
            if (current === undefined || !wideningOf(current, next).acceptsMore) continue;
            earlier = earlierAfter({ ...current, earlier }, undefined, i * 60_000) ?? null;
          }
          const last = versions.at(-1);
          for (const one of tokens) {
            if (last === undefined || !accepts(acceptanceOf(last), one)) continue;
            if (earlier !== null && !accepts(earlier, one)) continue;
            expect(versions.every((version) => accepts(acceptanceOf(version), one))).toBe(true);
          }
        },
      ),
      { numRuns: runs(300) },
    );
  });
});
