/** Tests a token at an issuer, for the administrator that configures it. It proves no principal and stores nothing. */

import { type Static, Type } from 'typebox';
import type { TenantId } from '../../domain/ids.ts';
import type { IssuerRecord } from '../../domain/records.ts';
import { examineIssuerToken, readIssuerToken } from '../../identity/issuer-token.ts';
import { loadIssuerById } from '../../store/issuer-records.ts';
import type { Queryable } from '../../store/queryable.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { orNotFound, requestedId } from '../caller/refusals.ts';
import { component, described, flagOf, nullable, shownText, shownTextOrNull } from '../schema/keywords.ts';
import { text } from '../schema/resource-parts.ts';
import { closed, oneOf } from '../schema/schemas.ts';
import type { IssuerParts, IssuerSettings } from './parts.ts';
import { type PrincipalResult, provedPrincipal } from './proved-principal.ts';

export const issuerTestRequest = component(
  'IssuerTestRequest',
  Type.Object(
    {
      token: Type.String({
        minLength: 1,
        maxLength: 32_768,
        description: 'A token of the issuer. It is neither stored nor logged.',
      }),
    },
    { ...closed, examples: [{ token: 'eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl' }] },
  ),
);

export const issuerTest = component(
  'IssuerTest',
  Type.Object({
    accepted: flagOf('Every step passed: a request with this token is authenticated.'),
    steps: Type.Array(
      Type.Object({
        step: shownText(
          '`parsed`, `issuer`, `keys`, `algorithm`, `signature`, `type`, `audience`, `required_claims`, `time`, `mapping` (of an issuer with `users`) or `principal`.',
        ),
        outcome: described(
          oneOf('passed', 'failed', 'skipped'),
          'The result of the step. `skipped`: another step leaves nothing to examine.',
        ),
        detail: shownText('The values that the step compared, or the correction.'),
      }),
      { description: 'All steps. The examination continues after a step that failed.' },
    ),
    principal: nullable(
      Type.Object(
        {
          type: described(oneOf('user', 'api_key'), 'The kind of principal.'),
          id: text,
          name: shownTextOrNull('Null without `admin:users` for a user, or `admin:keys` for a key.'),
        },
        { description: 'The user or key that the token proves. Null: none, or a user that does not exist yet.' },
      ),
    ),
  }),
);
type IssuerTest = Readonly<Static<typeof issuerTest>>;

/** @throws Refusal `not_found` */
export async function testIssuer(
  { db, issuers }: Pick<IssuerParts, 'db' | 'issuers'>,
  caller: Caller,
  id: string,
  token: string,
): Promise<IssuerTest> {
  const tested = orNotFound(await testToken(db.knex, issuers, caller.tenant, id, token, caller.nowMs), 'issuer');
  const { principal } = tested;
  if (principal === null) return tested;
  const mayRead = isAuthorized(caller, principal.type === 'user' ? 'admin:users' : 'admin:keys');
  return mayRead ? tested : { ...tested, principal: { ...principal, name: null } };
}

/** @returns undefined if the tenant has no such issuer */
export async function testToken(
  q: Queryable,
  settings: Pick<IssuerSettings, 'maxStalenessMs'>,
  tenant: TenantId,
  id: string,
  token: string,
  nowMs: number,
): Promise<IssuerTest | undefined> {
  const issuer = await loadIssuerById(q, tenant, requestedId('iss', id));
  if (issuer === undefined) return undefined;
  const examined = await examineIssuerToken(token, issuer, nowMs);
  const unverified = readIssuerToken(token);
  const proved: PrincipalResult | undefined =
    unverified && (await provedPrincipal(q, issuer, unverified.claims, nowMs));
  const steps = [
    ...examined.map((one) =>
      one.step === 'keys' && one.outcome === 'passed' && isStale(issuer, settings, nowMs) ? { ...one, ...STALE } : one,
    ),
    ...(proved === undefined ? [] : [{ step: 'principal', outcome: proved.outcome, detail: proved.detail }]),
  ];
  return {
    accepted: steps.every(({ outcome }) => outcome === 'passed'),
    steps,
    principal: proved?.principal ?? null,
  };
}

const STALE = {
  outcome: 'failed',
  detail:
    'The keys are older than issuers.max-staleness, so tokens of this issuer are answered with 503. `keys.error` of the issuer says why they were not fetched.',
} as const;

function isStale(
  { keysFetchedAtMs }: IssuerRecord,
  { maxStalenessMs }: Pick<IssuerSettings, 'maxStalenessMs'>,
  nowMs: number,
): boolean {
  return keysFetchedAtMs !== undefined && nowMs - keysFetchedAtMs > maxStalenessMs;
}
