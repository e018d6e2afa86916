/**
 * Refreshing: one refresh token becomes the next, with a new access token. The claim is one transaction under the lock of the session's
 * row, so of any number of uses at once exactly one makes the successor and the others find it made.
 *
 * A second use within ten seconds, while nobody has used the successor, is a lost answer or a second tab: it gets the same successor,
 * derived again. Any other second use means that two parties hold the token, and nobody can tell which is the thief: the session ends.
 *
 * For a user of a directory the claim is made twice. The first finds that a successor would be made, and makes none; then, with nothing
 * held, the directory is asked; the second makes it, together with the roles that the directory gives now. A directory that cannot be asked
 * leaves the token as it was, and so does one that is asked for nothing because another use was faster.
 */

import type { DirectoryPerson } from '../../directory/model.ts';
import {
  deriveSuccessor,
  isRefreshToken,
  makeRefreshNonce,
  type OpaqueToken,
  opaqueDigest,
} from '../../identity/opaque-tokens.ts';
import type { Queryable } from '../../store/queryable.ts';
import { transaction } from '../../store/transaction.ts';
import {
  endSession,
  lockSessionOfToken,
  type RefreshFacts,
  refreshFacts,
  sessionOfToken,
  succeedToken,
} from '../sessions/queries.ts';
import type { DirectoryIdentity } from '../users/directory-queries.ts';
import { record } from './audit.ts';
import { endForDirectory, standing } from './directory-refresh.ts';
import { refreshUser } from './directory-user.ts';
import {
  type AuthParts,
  applyHere,
  invalidCredential,
  makeJti,
  type Provenance,
  type TokenPair,
  tenantSuspended,
} from './parts.ts';

/** A refresh token and the way it came. */
export interface PresentedToken {
  readonly text: string;
  readonly via: 'body' | 'cookie';
}

/** For refreshing. */
export interface RefreshParts extends AuthParts {
  /** One for the process. */
  readonly claims: RefreshClaims;
}

/**
 * Claims under way in this process, by token. Uses of one token at once share a claim, so that a crowd of tabs takes one connection to
 * the database and not all.
 */
export type RefreshClaims = Map<string, Promise<Outcome>>;

type Claim =
  | Outcome
  /** Granted if the user's directory stands by it. */
  | { readonly kind: 'ask'; readonly facts: RefreshFacts; readonly identity: DirectoryIdentity };

type Outcome =
  | { readonly kind: 'granted'; readonly facts: RefreshFacts; readonly refreshToken: string }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'refused'; readonly audited?: boolean }
  /** The token was used by two; its session has ended now. */
  | { readonly kind: 'reused' };

const GRACE_MS = 10_000;

/**
 * @throws Refusal: `invalid_credential`; or `tenant_suspended`, or `unavailable` when too many ask the directory, which leave the token
 *   unused. So does a Fault of the directory.
 */
export async function refresh(parts: RefreshParts, presented: PresentedToken, from: Provenance): Promise<TokenPair> {
  if (!isRefreshToken(presented.text)) throw invalidCredential();
  const outcome = await sharedClaim(parts, presented, from);
  switch (outcome.kind) {
    case 'granted': {
      const { userId, sessionId, tenantId, cookie } = outcome.facts;
      const access = await parts.tokens.issue({
        userId,
        sessionId,
        tenantId,
        nowMs: from.nowMs,
        jti: makeJti(parts.random),
      });
      return { accessToken: access.token, expiresIn: access.expiresIn, refreshToken: outcome.refreshToken, cookie };
    }
    case 'suspended':
      throw tenantSuspended();
    case 'reused':
      parts.onRefreshReuse?.();
      await applyHere(parts);
      throw invalidCredential().asAudited();
    case 'refused':
      throw outcome.audited === true ? invalidCredential().asAudited() : invalidCredential();
    default:
      return outcome satisfies never;
  }
}

function sharedClaim(parts: RefreshParts, presented: PresentedToken, from: Provenance): Promise<Outcome> {
  const digest = opaqueDigest(presented.text);
  const name = `${presented.via} ${digest.toString('hex')}`;
  const underWay = parts.claims.get(name);
  if (underWay !== undefined) return underWay;
  const begun = claimAsking(parts, digest, presented, from).finally(() => parts.claims.delete(name));
  parts.claims.set(name, begun);
  return begun;
}

async function claimAsking(
  parts: AuthParts,
  digest: Uint8Array,
  presented: PresentedToken,
  from: Provenance,
): Promise<Outcome> {
  const session = await sessionOfToken(parts.db.knex, digest);
  if (session === undefined) return { kind: 'refused' };
  const first = await transaction(parts.db, (trx) => claim(trx, parts, digest, presented, from), session.tenant_id);
  if (first.kind !== 'ask') return first;
  const { facts, identity } = first;
  const found = await standing(parts, identity, facts);
  switch (found.kind) {
    case 'stands':
      return await claimVouched(parts, digest, presented, from, found.person);
    case 'gone': {
      const audited = await endForDirectory(parts, facts, identity, found.reason, from);
      await applyHere(parts);
      return { kind: 'refused', audited };
    }
    default:
      return found satisfies never;
  }
}

/** The user's row is held before the session's, as everywhere. */
async function claimVouched(
  parts: AuthParts,
  digest: Uint8Array,
  presented: PresentedToken,
  from: Provenance,
  person: DirectoryPerson,
): Promise<Outcome> {
  const { outcome, changed } = await transaction(
    parts.db,
    async (trx) => {
      const changed = await refreshUser(trx, person, from);
      const outcome =
        changed === undefined
          ? ({ kind: 'refused' } as const)
          : await claim(trx, parts, digest, presented, from, person);
      return { outcome, changed };
    },
    person.tenantId,
  );
  if (changed === true) await applyHere(parts);
  return outcome.kind === 'ask' ? { kind: 'refused' } : outcome;
}

/** @param person whom the directory vouches for */
async function claim(
  trx: Queryable,
  parts: AuthParts,
  digest: Uint8Array,
  presented: PresentedToken,
  from: Provenance,
  person?: DirectoryPerson,
): Promise<Claim> {
  if (!(await lockSessionOfToken(trx, digest))) return { kind: 'refused' };
  const facts = await refreshFacts(trx, digest, { idleMs: parts.login.refreshIdleMs, graceMs: GRACE_MS });
  if (facts === undefined || !cameItsWay(facts, presented)) return { kind: 'refused' };
  const alive = !facts.sessionEnded && facts.withinLifetimes && facts.userActive;
  if (facts.used && !(alive && facts.usedJustNow && facts.successorUnused)) {
    return await endForReuse(trx, facts, from);
  }
  if (!alive) return { kind: 'refused' };
  if (!facts.tenantActive) return { kind: 'suspended' };
  // Who comes for a successor that is there already comes seconds after the directory was asked.
  if (!facts.used && facts.identity !== null && !isOf(facts.identity, person)) {
    return { kind: 'ask', facts, identity: facts.identity };
  }
  const successor = successorOf(parts, presented.text, facts);
  if (!facts.used) {
    await succeedToken(trx, digest, {
      digest: successor.digest,
      sessionId: facts.sessionId,
      nonce: makeRefreshNonce(parts.random),
    });
  }
  return { kind: 'granted', facts, refreshToken: successor.text };
}

/** A used token has the successor that was stored, whichever key it was derived under. */
function successorOf({ secretKey, otherSecretKey }: AuthParts, text: string, facts: RefreshFacts): OpaqueToken {
  const successor = deriveSuccessor(secretKey, text, facts.nonce);
  if (otherSecretKey === undefined || facts.successorDigest === null) return successor;
  const former = deriveSuccessor(otherSecretKey, text, facts.nonce);
  return former.digest.equals(facts.successorDigest) ? former : successor;
}

/** A token born in a cookie that shows up elsewhere was taken out of the browser; it proves nobody there, and is not used up. */
function cameItsWay(facts: RefreshFacts, presented: PresentedToken): boolean {
  return facts.cookie === (presented.via === 'cookie');
}

function isOf({ directory, stableId }: DirectoryIdentity, person: DirectoryPerson | undefined): boolean {
  return person !== undefined && person.directory === directory && person.stableId === stableId;
}

async function endForReuse(trx: Queryable, facts: RefreshFacts, from: Provenance): Promise<Outcome> {
  if (!(await endSession(trx, facts.sessionId))) return { kind: 'refused' };
  await record(trx, from, {
    action: 'auth.refresh_reuse',
    actor: undefined,
    tenant: facts.tenantId,
    target: { type: 'session', id: facts.sessionId },
    result: 'refused',
    after: { user_id: facts.userId },
  });
  return { kind: 'reused' };
}
