/**
 * Logins to the console by an issuer: the browser goes to the provider and comes back with a code, which proves a
 * subject. The subject is the user that is linked to it; an email address proves none. The user gets the same session as
 * after a login with a password.
 *
 * The browser keeps the state of the login in a sealed cookie. Each state counts once for all replicas, because a used
 * one is noted in the database.
 */

import type { AdmittedIssuerUser } from '../../credential-cache/ports.ts';
import { Fault, Refusal } from '../../domain/errors.ts';
import type { IssuerId } from '../../domain/ids.ts';
import { type Claims, isSubject, linkedClaim, matchesRules, subjectOf } from '../../identity/claims.ts';
import { describedUser } from '../../identity/issuer-token-reader.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { type AuthEvent, record } from '../auth/audit.ts';
import { beginningSession } from '../auth/begin.ts';
import { returnAttempt } from '../auth/failure-queries.ts';
import type { IssuedTokens, Provenance } from '../auth/parts.ts';
import { attemptAt, type LoginAttempt, withAttemptLimits } from '../auth/throttle.ts';
import { auditUsername, toStorableText } from '../change/audit-row.ts';
import { applyHere } from '../change/change.ts';
import { openClientSecret } from '../issuers/client-secret.ts';
import { beginIssuerSession } from '../sessions/issuer-session-queries.ts';
import { endSession } from '../sessions/queries.ts';
import { sealIdToken } from './id-token.ts';
import type { SsoError, SsoParts } from './parts.ts';
import { ProviderError } from './provider.ts';
import {
  findSsoIssuer,
  findSsoUser,
  isLoggedOut,
  keepIdToken,
  type SsoIssuer,
  type SsoUser,
  useOnce,
} from './queries.ts';
import {
  logoutDigest,
  NO_SID,
  newState,
  openState,
  type SsoState,
  STATE_KEPT_MS,
  sealState,
  stateDigest,
} from './state.ts';

interface Started {
  readonly kind: 'started';
  /** The login page of the provider. */
  readonly url: string;
  /** For the cookie. */
  readonly sealed: string;
}

interface Failed {
  readonly kind: 'failed';
  readonly error: SsoError;
}

interface LoginToStart {
  readonly issuerId: IssuerId | undefined;
  /** The tenant whose issuer it must be. Undefined: any. */
  readonly tenant: string | undefined;
  /** The path of the console after the login. */
  readonly next: string | undefined;
  readonly redirectUri: string;
}

/** Begins a login. Rejects with a Fault if the store is unavailable. */
export async function startLogin(parts: SsoParts, login: LoginToStart, from: Provenance): Promise<Started | Failed> {
  const { issuerId, tenant, next, redirectUri } = login;
  const { starts, providers } = parts.sso;
  if (starts.waitSeconds(from.throttledAs) > 0) return failed('too_many_attempts');
  starts.count(from.throttledAs);
  const issuer = issuerId === undefined ? undefined : await findSsoIssuer(parts.db.knex, issuerId);
  if (issuer === undefined || (tenant !== undefined && tenant !== issuer.tenantId)) return failed('unknown_issuer');
  const state = newState({ issuerId: issuer.id, redirectUri, next, startedMs: from.nowMs }, parts.random);
  try {
    const url = await providers.authorizationUrl(issuer, state);
    return { kind: 'started', url, sealed: sealState(parts, state) };
  } catch (error) {
    if (error instanceof ProviderError) return failed('unavailable');
    throw error;
  }
}

interface Begun {
  readonly kind: 'begun';
  readonly pair: IssuedTokens;
}

export interface Finished {
  /** The path of the console that the login began for. */
  readonly next: string | undefined;
  readonly result: Begun | Failed;
}

/**
 * Finishes a login with the provider's answer. Rejects with a Fault if the store is unavailable.
 * @param cookie undefined: the browser sent none
 * @param answer the query of the callback
 */
export async function finishLogin(
  parts: SsoParts,
  issuerId: IssuerId | undefined,
  cookie: string | undefined,
  answer: URLSearchParams,
  from: Provenance,
): Promise<Finished> {
  const state = cookie === undefined ? undefined : openState(parts, cookie, from.nowMs);
  if (state === undefined) return { next: undefined, result: failed('expired') };
  const { next } = state;
  // An answer of one provider must not finish the login at another.
  if (state.issuerId !== issuerId || answer.get('state') !== state.state) return { next, result: failed('expired') };
  // Each state is an account of its own, so that failures count for the address only.
  const attempt = attemptAt(`sso:${state.state}`, from.throttledAs);
  try {
    return { next, result: await withAttemptLimits(parts, attempt, () => finish(parts, state, answer, attempt, from)) };
  } catch (error) {
    if (error instanceof Refusal && error.code === 'too_many_attempts') return { next, result: failed(error.code) };
    throw error;
  }
}

async function finish(
  parts: SsoParts,
  state: SsoState,
  answer: URLSearchParams,
  attempt: LoginAttempt,
  from: Provenance,
): Promise<Begun | Failed> {
  const { knex } = parts.db;
  const issuer = await findSsoIssuer(knex, state.issuerId);
  if (issuer === undefined) return failed('unknown_issuer');
  const fail = async (error: SsoError, reason: string, known: Known = {}): Promise<Failed> => {
    await recordFailure(parts, issuer, error, reason, known, from);
    return failed(error);
  };
  if (!(await useOnce(knex, stateDigest(state), STATE_KEPT_MS))) return fail('expired', 'replayed');
  try {
    const found = await parts.sso.providers.exchange(issuer, clientSecret(parts, issuer), state, answer);
    switch (found.kind) {
      case 'denied':
        return await fail('denied', 'denied_by_issuer', { detail: found.detail });
      case 'invalid':
        return await fail('invalid', 'invalid_answer', { detail: found.detail });
      case 'proved': {
        // The provider may have taken seconds, in which an administrator may have changed the issuer.
        const current = await findSsoIssuer(knex, issuer.id);
        if (current === undefined) return await fail('unknown_issuer', 'issuer_disabled');
        const reason = refusedFor(current, found.claims);
        if (reason !== undefined) return await fail('invalid', reason);
        return await enter(parts, current, { ...found, state }, attempt, from, fail);
      }
      default:
        return found satisfies never;
    }
  } catch (error) {
    // The client did not cause the failure.
    await returnAttempt(knex, attempt);
    if (error instanceof ProviderError) return await fail('unavailable', 'unavailable', { detail: error.message });
    throw error;
  }
}

function clientSecret(parts: SsoParts, { id, secretSealed }: SsoIssuer): string | undefined {
  if (secretSealed === null) return undefined;
  const secret = openClientSecret(parts, id, secretSealed);
  if (secret === undefined) throw new Fault(`the secret of the client of the issuer ${id} cannot be decrypted`);
  return secret;
}

/** Returns why verified claims do not suffice, for the audit log; undefined if they do. */
function refusedFor({ sso, users, requiredClaims, revokedBefore }: SsoIssuer, claims: Claims): string | undefined {
  if (claims['azp'] !== undefined && claims['azp'] !== sso.client_id) return 'audience';
  if (sso.required_acr !== undefined && claims['acr'] !== sso.required_acr) return 'acr';
  if (revokedBefore !== null && issuedMs(claims) < revokedBefore.getTime()) return 'revoked_before';
  // A list that the token does not have must not count as an empty one.
  if (linkedClaim(claims, [...requiredClaims, ...(users?.roles ?? [])]) !== undefined) return 'linked_claims';
  return matchesRules(claims, requiredClaims) ? undefined : 'claims';
}

/** The library has checked that `iat` is a number. */
function issuedMs(claims: Claims): number {
  return Number(claims['iat']) * 1000;
}

/** Facts for the audit row of a failure. */
interface Known {
  readonly detail?: string | undefined;
  readonly subject?: string | undefined;
  readonly user?: SsoUser | undefined;
}

type Fail = (error: SsoError, reason: string, known?: Known) => Promise<Failed>;

interface Proof {
  readonly claims: Claims;
  readonly idToken: string;
  readonly state: SsoState;
}

async function enter(
  parts: SsoParts,
  issuer: SsoIssuer,
  { claims, idToken, state }: Proof,
  attempt: LoginAttempt,
  from: Provenance,
  fail: Fail,
): Promise<Begun | Failed> {
  const person = personOf(issuer, claims);
  if (person === undefined) return fail('no_account', 'no_subject');
  const { subject } = person;
  const admitted = await parts.sso.users.admit(person);
  if (admitted.kind === 'refused') {
    return fail(admitted.reason === 'email_in_use' ? 'email_in_use' : 'no_account', admitted.reason, { subject });
  }
  const user = await findSsoUser(parts.db.knex, issuer.id, subject);
  if (user === undefined) return fail('no_account', 'no_principal', { subject });
  if (!user.tenantActive) return fail('tenant_suspended', 'tenant_suspended', { subject, user });
  const { beginning, pair } = beginningSession(parts, from, issuer.tenantId, {
    attempt,
    forgives: false,
    cookie: true,
    details: { issuer: issuer.name, subject },
  });
  const { session, token, audit } = beginning;
  const sid = typeof claims['sid'] === 'string' && isSubject(claims['sid']) ? claims['sid'] : undefined;
  const sub = String(claims['sub']);
  const refused = await tenantTransaction(parts.db, issuer.tenantId, async (trx) => {
    const held = await findSsoIssuer(trx, issuer.id, 'share');
    if (held === undefined || refusedFor(held, claims) !== undefined) return 'ended';
    const begins = await beginIssuerSession(trx, {
      session,
      owner: { kind: 'user', id: user.id },
      issuerId: issuer.id,
      sso: { sid, subject: sub },
      token,
      audit: { ...audit, actorId: user.id, targetId: user.id },
    });
    if (!begins) return 'deactivated';
    // The user's row is locked now, and an administrator may have removed the identity before.
    if ((await findSsoUser(trx, issuer.id, subject))?.id !== user.id) {
      await endSession(trx, session.id);
      return 'ended';
    }
    const sealed = sealIdToken(parts, session.id, idToken);
    if (sealed !== undefined) await keepIdToken(trx, session.id, sealed);
    await returnAttempt(trx, attempt);
    return undefined;
  });
  // The provider may have ended its session while this one began. Its logout found no session here.
  const names = [
    logoutDigest(issuer.id, sid ?? NO_SID, sub),
    logoutDigest(issuer.id, undefined, sub),
    logoutDigest(issuer.id, sid, undefined),
  ];
  const isOver = refused === undefined && (await isLoggedOut(parts.db.knex, stateDigest(state), names));
  if (isOver) await tenantTransaction(parts.db, issuer.tenantId, (trx) => endSession(trx, session.id));
  // The roles may have changed, also if the user may not log in.
  await applyHere(parts);
  if (refused !== undefined) return fail('no_account', refused, { subject, user });
  if (isOver) return fail('denied', 'logged_out', { subject, user });
  return { kind: 'begun', pair: await pair(user.id) };
}

function personOf({ id, tenantId, name, users }: SsoIssuer, claims: Claims): AdmittedIssuerUser | undefined {
  if (users === null || subjectOf(claims, 'sub') === undefined) return undefined;
  const described = describedUser(claims, users);
  if (described.kind === 'none') return undefined;
  const { kind: _kind, ...person } = described;
  return { issuer: { id, tenantId, name }, ...person, iatMs: issuedMs(claims) };
}

function failed(error: SsoError): Failed {
  return { kind: 'failed', error };
}

/** Audits a failure under the user if the provider proved it, otherwise under the issuer. */
async function recordFailure(
  parts: SsoParts,
  issuer: SsoIssuer,
  error: SsoError,
  reason: string,
  { detail, subject, user }: Known,
  from: Provenance,
): Promise<void> {
  const isRefused = error === 'tenant_suspended';
  const target: AuthEvent['target'] =
    user === undefined ? { type: 'issuer', id: issuer.id } : { type: 'user', id: user.id };
  await record(parts.db.knex, from, {
    action: 'auth.login',
    actor: isRefused ? user?.id : undefined,
    tenant: issuer.tenantId,
    target,
    result: isRefused ? 'refused' : 'failure',
    after: {
      reason,
      issuer: issuer.name,
      ...(subject === undefined ? {} : { subject: auditUsername(subject) }),
      ...(detail === undefined ? {} : { detail: toStorableText(detail) }),
    },
  });
}
