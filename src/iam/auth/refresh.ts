/**
 * Refreshes: one refresh token becomes the next, with a new access token. The claim is one transaction under the lock
 * of the session's row, so of concurrent uses exactly one creates the successor, and the others find it.
 *
 * A second use within 10 s, while the successor is unused, is a lost response or a second tab. It gets the same
 * successor, derived again. Any other second use means that two parties hold the token. The server cannot
 * distinguish the owner from the thief, so the session ends.
 *
 * For a user of a directory, the claim runs twice. The first claim finds that a successor is needed, and creates none.
 * Then the server queries the directory, without a transaction. The second claim creates the successor, together with
 * the current roles of the directory. If the directory does not respond, or another use was faster, the token stays
 * unchanged.
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
import { tenantTransaction } from '../../store/transaction.ts';
import { invalidCredential } from '../caller/admission.ts';
import { applyHere } from '../change/change.ts';
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
import { type AuthParts, type IssuedTokens, makeJti, type Provenance, tenantSuspended } from './parts.ts';

/** A refresh token and the way in which it was sent. */
export interface PresentedToken {
  readonly text: string;
  readonly via: 'body' | 'cookie';
}

export interface RefreshParts extends AuthParts {
  /** One for each process. */
  readonly claims: RefreshClaims;
}

/**
 * Claims in progress in this process, by token. Concurrent uses of one token share a claim, so that many tabs need one
 * database connection.
 */
type RefreshClaims = Map<string, Promise<Outcome>>;

type Claim =
  | Outcome
  /** Granted if the user's directory confirms the user. */
  | { readonly kind: 'ask'; readonly facts: RefreshFacts; readonly identity: DirectoryIdentity };

type Outcome =
  | { readonly kind: 'granted'; readonly facts: RefreshFacts; readonly refreshToken: string }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'refused'; readonly audited?: boolean }
  /** The token was used twice, so the session has ended. */
  | { readonly kind: 'reused' };

const GRACE_MS = 10_000;

/**
 * @throws Refusal: `invalid_credential`; or `tenant_suspended`, or `unavailable` if too many requests to the directory
 * are in progress. The latter two, and a Fault of the directory, leave the token unused.
 */
export async function refresh(parts: RefreshParts, presented: PresentedToken, from: Provenance): Promise<IssuedTokens> {
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
  const first = await tenantTransaction(parts.db, session.tenant_id, (trx) =>
    claim(trx, parts, digest, presented, from),
  );
  if (first.kind !== 'ask') return first;
  const { facts, identity } = first;
  const askedMs = performance.now();
  const found = await standing(parts, identity, facts);
  switch (found.kind) {
    case 'stands':
      return await claimVouched(parts, digest, presented, from, { person: found.person, askedMs });
    case 'gone': {
      const audited = await endForDirectory(parts, facts, identity, found.reason, from);
      await applyHere(parts);
      return { kind: 'refused', audited };
    }
    default:
      return found satisfies never;
  }
}

/** The transaction holds the user's row before the session's, in the order of all transactions. */
async function claimVouched(
  parts: AuthParts,
  digest: Uint8Array,
  presented: PresentedToken,
  from: Provenance,
  { person, askedMs }: { readonly person: DirectoryPerson; readonly askedMs: number },
): Promise<Outcome> {
  const { outcome, changed } = await tenantTransaction(parts.db, person.tenantId, async (trx) => {
    const changed = await refreshUser(trx, person, from, askedMs);
    const outcome =
      changed === undefined ? ({ kind: 'refused' } as const) : await claim(trx, parts, digest, presented, from, person);
    return { outcome, changed };
  });
  if (changed === true) await applyHere(parts);
  return outcome.kind === 'ask' ? { kind: 'refused' } : outcome;
}

/** @param person the person that the directory confirms */
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
  // For an existing successor, the directory was queried less than 10 s ago.
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

/** A used token has the stored successor, from whichever key it was derived. */
function successorOf({ secretKey, otherSecretKey }: AuthParts, text: string, facts: RefreshFacts): OpaqueToken {
  const successor = deriveSuccessor(secretKey, text, facts.nonce);
  if (otherSecretKey === undefined || facts.successorDigest === null) return successor;
  const former = deriveSuccessor(otherSecretKey, text, facts.nonce);
  return former.digest.equals(facts.successorDigest) ? former : successor;
}

/**
 * A token from a cookie that is sent in another way was taken out of the browser. It proves no session, and is not used
 * up.
 */
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
    tenant: facts.tenantId,
    target: { type: 'session', id: facts.sessionId },
    result: 'refused',
    after: { user_id: facts.userId },
  });
  return { kind: 'reused' };
}
