/**
 * The verification of tokens of other issuers (RFC 7519, RFC 8725, RFC 9068). The issuer's record decides algorithm,
 * key, type, audience and claims; nothing in the token does. The result of `checkIssuerToken` does not depend on the
 * clock, so it may be kept.
 */

import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { importJWK } from 'jose/key/import';
import type { CheckedIssuerToken, IssuerTokenReason } from '../credential-cache/ports.ts';
import { Fault } from '../domain/errors.ts';
import { type IssuerTokenTimes, stateAt } from '../domain/issuer-token-times.ts';
import type { IssuerAcceptance, IssuerKey, IssuerRecord } from '../domain/records.ts';
import { normalTokenType } from '../domain/token-types.ts';
import { type Claims, claimValue, linkedClaim, mappedRoles, matchesRules, subjectOf } from './claims.ts';
import { parseIssuerToken, trustDomainOf, type UnverifiedToken } from './issuer-token-form.ts';

export type { UnverifiedToken } from './issuer-token-form.ts';

/** Returns the parts of a token; undefined for a text in another form. */
export function readIssuerToken(token: string): UnverifiedToken | undefined {
  const read = parseIssuerToken(token);
  return read.kind === 'token' ? read.token : undefined;
}

/**
 * Verifies everything except the clock. A token that is older than the issuer's last wider change must satisfy the
 * members before it as well.
 * @throws Fault (by rejecting) if a signature cannot be checked
 */
export async function checkIssuerToken(token: UnverifiedToken, issuer: IssuerRecord): Promise<CheckedIssuerToken> {
  if (!issuer.enabled) return invalid('issuer_disabled');
  const stranger = problemOfIssuer(token, issuer);
  if (stranger !== undefined) return invalid(stranger.reason);
  const acceptances = acceptancesOf(token, issuer);
  if (acceptances.some((by) => problemOfAlgorithm(token, by) !== undefined)) return invalid('algorithm');
  for (const keys of new Set(acceptances.map((by) => by.keys))) {
    const signed = await checkSignature(token, keys);
    if (signed.kind !== 'signed') return invalid(signed.reason, signed.kind === 'unknown_key');
  }
  for (const { reason, problem } of CHECKS) {
    if (acceptances.some((by) => problem(token, by, issuer) !== undefined)) return rejected(reason);
  }
  const times = timesOf(token, issuer);
  if (times === undefined) return rejected('claims');
  if (!isRevoked(times, issuer)) return { kind: 'valid', times };
  return { ...rejected('revoked_before'), validUntilMs: times.validUntilMs };
}

type Invalid = Extract<CheckedIssuerToken, { kind: 'invalid' }>;

const invalid = (reason: IssuerTokenReason, unknownKey = false): Invalid => ({
  kind: 'invalid',
  reason,
  unknownKey,
  signed: false,
});

/** The result for a token of the issuer that the issuer does not accept. */
const rejected = (reason: IssuerTokenReason): Invalid => ({ kind: 'invalid', reason, unknownKey: false, signed: true });

/** The members that a token must satisfy: the issuer's, and those before a change that came after the token. */
function acceptancesOf({ claims }: UnverifiedToken, issuer: IssuerRecord): readonly IssuerAcceptance[] {
  const { earlier } = issuer;
  const iat = secondsOf(claims, 'iat');
  return earlier !== undefined && (iat === undefined || toMs(iat) < earlier.untilMs) ? [issuer, earlier] : [issuer];
}

interface Problem {
  readonly reason: IssuerTokenReason;
  readonly detail: string;
}

/** An issuer of the kind `spiffe` is chosen by the trust domain of `sub`, every other one by `iss`. */
function problemOfIssuer({ claims, hasOtherHeaders }: UnverifiedToken, issuer: IssuerRecord): Problem | undefined {
  if (issuer.kind === 'oidc') {
    if (claims['iss'] === issuer.issuer) return undefined;
    return { reason: 'unknown_issuer', detail: `The iss is ${shown(claims['iss'])}, and not ${shown(issuer.issuer)}.` };
  }
  if (trustDomainOf(claims) !== issuer.issuer)
    return { reason: 'claims', detail: `The sub is no SPIFFE ID of the trust domain ${shown(issuer.issuer)}.` };
  // JWT-SVID, section 2.
  if (hasOtherHeaders) return { reason: 'claims', detail: 'A JWT-SVID has no header members except alg, kid and typ.' };
  return undefined;
}

function problemOfAlgorithm({ alg }: UnverifiedToken, { algorithms }: IssuerAcceptance): string | undefined {
  if (algorithms.includes(alg) && KEY_TYPES.has(alg)) return undefined;
  return `The alg is ${shown(alg)}, and the issuer accepts ${shown(algorithms)}.`;
}

interface Check {
  readonly step: string;
  readonly reason: IssuerTokenReason;
  readonly problem: (token: UnverifiedToken, by: IssuerAcceptance, issuer: IssuerRecord) => string | undefined;
}

/** The checks after the signature, in order. */
const CHECKS: readonly Check[] = [
  { step: 'type', reason: 'claims', problem: problemOfType },
  { step: 'audience', reason: 'audience', problem: problemOfAudience },
  { step: 'required_claims', reason: 'claims', problem: problemOfClaims },
];

/** OpenID Connect Core 1.0, sections 2 and 3.3.2.11. An access token has none of them. */
const ID_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash'];

function problemOfType({ typ, claims }: UnverifiedToken, { tokenTypes }: IssuerAcceptance): string | undefined {
  const marker = ID_TOKEN_CLAIMS.find((name) => Object.hasOwn(claims, name));
  if (marker !== undefined) return `The token is an ID token, because it has ${marker}. Send the access token.`;
  if (tokenTypes.some((type) => normalTokenType(type) === typ)) return undefined;
  return `The typ is ${typ === '' ? 'absent' : shown(typ)}, and the issuer accepts ${shown(tokenTypes)}.`;
}

function problemOfAudience({ claims }: UnverifiedToken, { audiences }: IssuerAcceptance): string | undefined {
  const aud = claimValue(claims, 'aud');
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (named.some((item) => typeof item === 'string' && audiences.includes(item))) return undefined;
  return `The aud is ${shown(aud)}, and the issuer accepts ${shown(audiences)}.`;
}

function problemOfClaims({ claims }: UnverifiedToken, { requiredClaims }: IssuerAcceptance): string | undefined {
  const failed = requiredClaims.find((rule) => !matchesRules(claims, [rule]));
  if (failed === undefined) return undefined;
  const linked = linkedClaim(claims, [failed]);
  if (linked !== undefined) return overage(linked);
  const value = claimValue(claims, failed.claim);
  return `The claim ${failed.claim} is ${shown(value)}, and the issuer requires one of ${shown(failed.in)}.`;
}

const overage = (claim: string): string =>
  `The token has a link in place of the claim ${claim} (_claim_names), because the list is too long for a token. Map another claim, such as the roles of the application.`;

/** The end of the year 9999, in seconds. A larger time is in another unit. */
const MAX_SECONDS = 253_402_300_799;

/** RFC 7519, section 2: a NumericDate may have a fraction. */
function secondsOf(claims: Claims, claim: string): number | undefined {
  const value = claimValue(claims, claim);
  return typeof value === 'number' && value >= 0 && value <= MAX_SECONDS ? value : undefined;
}

const toMs = (seconds: number): number => Math.floor(seconds * 1000);

/** Returns undefined if `iat` or `exp` is missing, or a time is not a number of seconds. */
function timesOf(token: UnverifiedToken, issuer: IssuerRecord): IssuerTokenTimes | undefined {
  const { claims } = token;
  const iat = secondsOf(claims, 'iat');
  const exp = secondsOf(claims, 'exp');
  const nbf = claimValue(claims, 'nbf') === undefined ? iat : secondsOf(claims, 'nbf');
  if (iat === undefined || exp === undefined || nbf === undefined) return undefined;
  const acceptances = acceptancesOf(token, issuer);
  const leewayMs = Math.min(...acceptances.map((by) => by.leewaySeconds)) * 1000;
  const iatMs = toMs(iat);
  const maxAges = acceptances.map((by) => by.maxAgeSeconds ?? Number.POSITIVE_INFINITY);
  return {
    iatMs,
    validFromMs: Math.max(iatMs, toMs(nbf)) - leewayMs,
    validUntilMs: toMs(exp) + leewayMs,
    tooOldFromMs: iatMs + Math.min(...maxAges) * 1000 + leewayMs,
  };
}

function isRevoked({ iatMs }: IssuerTokenTimes, { revokedBeforeMs }: IssuerRecord): boolean {
  return revokedBeforeMs !== undefined && iatMs < revokedBeforeMs;
}

/** The type of key of each algorithm (RFC 7518, section 3.1; RFC 8037). */
const KEY_TYPES: ReadonlyMap<string, { readonly kty: string; readonly crv?: string }> = new Map<
  string,
  { readonly kty: string; readonly crv?: string }
>([
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'].map((alg) => [alg, { kty: 'RSA' }] as const),
  ['ES256', { kty: 'EC', crv: 'P-256' }],
  ['ES384', { kty: 'EC', crv: 'P-384' }],
  ['ES512', { kty: 'EC', crv: 'P-521' }],
  ['EdDSA', { kty: 'OKP', crv: 'Ed25519' }],
]);

/** Keys that are tried for a token without `kid`. */
const MAX_KEYS_TRIED = 8;

type Signed =
  | { readonly kind: 'signed' }
  | { readonly kind: 'unknown_key' | 'not_signed'; readonly reason: IssuerTokenReason; readonly detail: string };

async function checkSignature(token: UnverifiedToken, keys: readonly IssuerKey[]): Promise<Signed> {
  const { kid, alg } = token;
  const named = kid === undefined ? keys : keys.filter((key) => key['kid'] === kid);
  if (kid !== undefined && named.length === 0)
    return { kind: 'unknown_key', reason: 'signature', detail: `The issuer has no key with the kid ${shown(kid)}.` };
  const fitting = named.filter((key) => fits(key, alg)).slice(0, MAX_KEYS_TRIED);
  if (fitting.length === 0)
    return { kind: 'not_signed', reason: 'algorithm', detail: `The issuer has no such key for the alg ${shown(alg)}.` };
  for (const key of fitting) if (await isSignedBy(key, token)) return { kind: 'signed' };
  return { kind: 'not_signed', reason: 'signature', detail: 'The signature does not verify.' };
}

/** A key verifies signatures of its own type only, and of its `alg` only if it names one. */
function fits(key: IssuerKey, alg: string): boolean {
  const type = KEY_TYPES.get(alg);
  if (type === undefined || key['kty'] !== type.kty || key['crv'] !== type.crv) return false;
  return key['alg'] === undefined || key['alg'] === alg;
}

type VerificationKey = Awaited<ReturnType<typeof importJWK>>;
/** The imported keys of each record, by algorithm. A key's record is frozen, and cached with its issuer. */
const imported = new WeakMap<IssuerKey, Map<string, Promise<VerificationKey>>>();

function importedKey(key: IssuerKey, alg: string): Promise<VerificationKey> {
  const byAlgorithm = imported.getOrInsertComputed(key, () => new Map());
  return byAlgorithm.getOrInsertComputed(alg, () => importPublicKey(key, alg));
}

/** Only the public members of the types in KEY_TYPES are read. */
async function importPublicKey({ kty, crv, n, e, x, y }: IssuerKey, alg: string): Promise<VerificationKey> {
  const members = Object.entries({ kty, crv, n, e, x, y }).filter(([, value]) => value !== undefined);
  return importJWK(Object.fromEntries(members), alg);
}

async function isSignedBy(key: IssuerKey, { token, alg }: UnverifiedToken): Promise<boolean> {
  try {
    await compactVerify(token, await importedKey(key, alg), { algorithms: [alg] });
    return true;
  } catch (error) {
    if (error instanceof JOSEError) return false;
    throw new Fault('a signature of an issuer could not be checked', { cause: error });
  }
}

/** One step of an examination. `skipped`: an earlier step leaves nothing to examine. */
interface ExaminedStep {
  readonly step: string;
  readonly outcome: 'passed' | 'failed' | 'skipped';
  readonly detail: string;
}

/**
 * Examines a token as `checkIssuerToken` does, and continues after a failure. For the administrators of the issuer: the
 * details quote the token's claims.
 * @returns the steps parsed, issuer, keys, algorithm, signature, type, audience, required_claims, time and, if the
 *   issuer has users, mapping
 */
export async function examineIssuerToken(
  token: string,
  issuer: IssuerRecord,
  nowMs: number,
): Promise<readonly ExaminedStep[]> {
  const read = parseIssuerToken(token);
  if (read.kind === 'malformed') return [step('parsed', read.problem, '')];
  const unverified = read.token;
  const acceptances = acceptancesOf(unverified, issuer);
  const failing = (problem: Check['problem']): string | undefined =>
    acceptances.map((by) => problem(unverified, by, issuer)).find((detail) => detail !== undefined);
  const algorithm = failing(problemOfAlgorithm);
  return [
    step('parsed', undefined, 'The token is a signed JWT.'),
    step(
      'issuer',
      issuer.enabled ? problemOfIssuer(unverified, issuer)?.detail : 'The issuer is disabled.',
      `The issuer is ${shown(issuer.issuer)}.`,
    ),
    step('keys', issuer.keys.length === 0 ? 'The keys were never fetched.' : undefined, 'The issuer has keys.'),
    step('algorithm', algorithm, `The issuer accepts the alg ${shown(unverified.alg)}.`),
    algorithm === undefined && issuer.keys.length > 0
      ? step('signature', await problemOfSignature(unverified, acceptances), 'A key of the issuer made the signature.')
      : { step: 'signature', outcome: 'skipped', detail: 'Without a key of the issuer, no signature is checked.' },
    ...CHECKS.map(({ step: name, problem }) => step(name, failing(problem), PASSED[name] ?? '')),
    step('time', problemOfTimes(unverified, issuer, nowMs), 'The token is valid now.'),
    ...mappingStep(unverified, issuer),
  ];
}

const PASSED: Readonly<Record<string, string>> = {
  type: 'The issuer accepts this type of token.',
  audience: 'The token is for an audience of the issuer.',
  required_claims: 'The token has the required claims.',
};

function step(name: string, problem: string | undefined, passed: string): ExaminedStep {
  return problem === undefined
    ? { step: name, outcome: 'passed', detail: passed }
    : { step: name, outcome: 'failed', detail: problem };
}

async function problemOfSignature(
  token: UnverifiedToken,
  acceptances: readonly IssuerAcceptance[],
): Promise<string | undefined> {
  for (const keys of new Set(acceptances.map((by) => by.keys))) {
    const signed = await checkSignature(token, keys);
    if (signed.kind !== 'signed') return signed.detail;
  }
  return undefined;
}

function problemOfTimes(token: UnverifiedToken, issuer: IssuerRecord, nowMs: number): string | undefined {
  const times = timesOf(token, issuer);
  if (times === undefined)
    return 'The token needs iat and exp as numbers of seconds, and nbf must be one if it is present.';
  const state = stateAt(times, nowMs);
  if (state !== 'expired' && isRevoked(times, issuer))
    return 'The issuer refuses tokens that are as old as this one (revoked_before).';
  return state === 'valid' ? undefined : STATES[state];
}

const STATES = {
  expired: 'The token has expired.',
  not_yet_valid: 'The iat or nbf is in the future.',
  too_old: 'The time since iat is longer than max_age_seconds.',
} as const;

function mappingStep({ claims }: UnverifiedToken, { users }: IssuerRecord): readonly ExaminedStep[] {
  if (users === undefined) return [];
  const linked = linkedClaim(claims, users.roles);
  if (linked !== undefined) return [step('mapping', overage(linked), '')];
  const subject = subjectOf(claims, users.subject_claim);
  if (subject === undefined) {
    return [
      step(
        'mapping',
        `The claim ${users.subject_claim} is no text of 1 to 512 characters, so the token proves no user.`,
        '',
      ),
    ];
  }
  const roles = mappedRoles(users, claims);
  return [
    step(
      'mapping',
      undefined,
      `The subject ${shown(subject)} gets ${roles.length === 0 ? 'no roles' : `the roles ${roles.join(', ')}`}.`,
    ),
  ];
}

const MAX_SHOWN = 200;

/** Quotes a value of a token or of the issuer as JSON, cut at 200 characters. */
function shown(value: unknown): string {
  const text = value === undefined ? 'absent' : JSON.stringify(value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN).toWellFormed()}…`;
}
