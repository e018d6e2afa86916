/**
 * Finds what the token of another issuer proves: a key without a secret, or a user. An exact subject of a key beats a
 * glob, and a key beats a user.
 */

import type { InvalidReason } from '../decision/model.ts';
import { Fault } from '../domain/errors.ts';
import type { IssuerId, KeyDigest } from '../domain/ids.ts';
import { stateAt } from '../domain/issuer-token-times.ts';
import type { IssuerRecord, IssuerUsers, LinkRecord, ProofRecord } from '../domain/records.ts';
import { userInvalidReason } from './credential-status.ts';
import type { IssuerTokenEntry, MatchedProofs } from './issuer-tokens.ts';
import { byValueSince } from './issuer-values.ts';
import type { Load, LookupAt, Maps, Missing, Subject } from './lookup.ts';
import type { AdmittedIssuerUser, IssuerToken } from './ports.ts';
import { ABSENT, type CacheEntry } from './read-through-cache.ts';
import { EXPIRED, INVALID, type Resolution } from './resolution.ts';
import type { CachedUser } from './values.ts';

type TokenSubject = Extract<Subject, { kind: 'token' }>;

/** The principal that a token proves. */
export type ProvedByIssuer =
  | { readonly kind: 'key'; readonly digest: KeyDigest }
  | {
      readonly kind: 'user';
      readonly user: CacheEntry<CachedUser>;
      readonly issuerId: IssuerId;
      readonly memo: IssuerTokenEntry['memo'];
    };

/** How long matched keys are used without a lookup of their entries. The lookups mark the entries as used. */
const MAX_MATCH_AGE_MS = 60_000;
/** How often an issuer whose keys seem too old is loaded: a refresh that brings the same keys is not in the feed. */
const RELOAD_AFTER_MS = 10_000;

/** The parts of a token, for the lookups of one request. */
const readings = new WeakMap<TokenSubject, IssuerToken>();

function readingOf({ reader }: Maps, subject: TokenSubject): IssuerToken | undefined {
  const known = readings.get(subject);
  if (known !== undefined) return known;
  const reading = reader.read(subject.token);
  if (reading !== undefined) readings.set(subject, reading);
  return reading;
}

/**
 * Finds the principal of a token that no signing key of this installation signed.
 * @param entry of the token, if it was verified
 * @throws Fault if the keys of the issuer are missing or too old
 */
export function proveByIssuer(
  at: LookupAt,
  subject: TokenSubject,
  entry: IssuerTokenEntry | undefined,
): ProvedByIssuer | Resolution | Missing {
  if (entry === undefined) return verifyFirst(at, subject);
  const { checked, issuer } = entry;
  if (checked.kind === 'invalid') {
    const { reason, validUntilMs = Number.POSITIVE_INFINITY } = checked;
    return at.nowMs >= validUntilMs ? EXPIRED : INVALID[reason];
  }
  const state = stateAt(checked.times, at.nowMs);
  if (state !== 'valid') return state === 'expired' ? EXPIRED : INVALID[state];
  return reloadIfStale(at, issuer) ?? keyOf(at, subject, entry) ?? userOf(at, subject, entry, checked.times.iatMs);
}

function verifyFirst(at: LookupAt, subject: TokenSubject): Resolution | Missing {
  const { maps } = at;
  const reading = readingOf(maps, subject);
  if (reading === undefined) return INVALID.malformed;
  const { digest } = subject;
  const unseen = !maps.issuerTokens.isKnown(digest);
  const enabled: CacheEntry<IssuerRecord>[] = [];
  let refused = INVALID.unknown_issuer;
  for (const value of reading.issuers) {
    const issuer = maps.issuers.find(value, at.monotonicMs);
    if (issuer === undefined) return { missing: [(patience) => maps.issuers.fill(value, patience)], unseen };
    if (issuer === ABSENT) continue;
    if (issuer.value.enabled) enabled.push(issuer);
    else refused = INVALID.issuer_disabled;
  }
  enabled.sort((one, other) => byValueSince(one.value, other.value));
  const [first] = enabled;
  if (first === undefined) return refused;
  const verify: Load = (patience) => maps.issuerTokens.fill(digest, reading, enabled, patience);
  // Old keys of one issuer are no fault of a token that another one signed. The caller compares their age as well.
  const stale = enabled.every((issuer) => isStale(at, issuer)) ? reloadIfStale(at, first) : undefined;
  return stale ?? { missing: [verify], unseen };
}

function isStale({ maps, nowMs }: LookupAt, { value }: CacheEntry<IssuerRecord>): boolean {
  return value.keysFetchedAtMs !== undefined && nowMs - value.keysFetchedAtMs > maps.maxKeyAgeMs;
}

/** @throws Fault if the keys are missing or too old, and the issuer was just loaded */
function reloadIfStale(at: LookupAt, issuer: CacheEntry<IssuerRecord>): Missing | undefined {
  if (!isStale(at, issuer)) return undefined;
  const { maps, monotonicMs } = at;
  if (monotonicMs - issuer.loadedAtMs >= RELOAD_AFTER_MS)
    return { missing: [(patience) => maps.issuers.fill(issuer.value.issuer, patience)] };
  throw new Fault('the keys of an issuer were never fetched, or not within issuers.max-staleness');
}

/** Returns undefined if no key matches. */
function keyOf(
  at: LookupAt,
  subject: TokenSubject,
  entry: IssuerTokenEntry,
): ProvedByIssuer | Resolution | Missing | undefined {
  const matched = holdsMatch(at, entry.proofs) ?? match(at, subject, entry);
  if ('missing' in matched) return matched;
  const { exact, globs } = matched;
  if (exact.length === 0 && globs.length === 0) return undefined;
  const proved = chooseProof(exact, globs, at.nowMs);
  return typeof proved === 'string' ? INVALID[proved] : { kind: 'key', digest: proved.digest };
}

/** Returns the proof of the key that a token proves, of those that it matches, at least one. */
export function chooseProof(
  exact: readonly ProofRecord[],
  globs: readonly ProofRecord[],
  nowMs: number,
): ProofRecord | Extract<InvalidReason, 'ambiguous' | 'key_expired'> {
  const isOn = ({ expiresAtMs }: ProofRecord): boolean => expiresAtMs === undefined || nowMs < expiresAtMs;
  // Nearly every token has one key, and this runs at every check.
  const [only] = exact;
  if (only !== undefined && exact.length === 1 && isOn(only)) return only;
  for (const proofs of [exact, globs]) {
    const [first, ...others] = proofs.filter(isOn);
    if (first !== undefined) return others.length === 0 ? first : 'ambiguous';
  }
  return 'key_expired';
}

function holdsMatch({ maps, monotonicMs }: LookupAt, proofs: MatchedProofs | undefined): MatchedProofs | undefined {
  if (proofs === undefined || monotonicMs >= proofs.untilMs) return undefined;
  return proofs.link === undefined || maps.links.holds(proofs.link, monotonicMs) ? proofs : undefined;
}

function match(
  { maps, monotonicMs }: LookupAt,
  subject: TokenSubject,
  entry: IssuerTokenEntry,
): MatchedProofs | Missing {
  const { keyLink, issuer } = entry;
  const link = keyLink === undefined ? undefined : maps.links.find(keyLink, monotonicMs);
  if (keyLink !== undefined && (link === undefined || link === ABSENT))
    return { missing: [(patience) => maps.links.fill(keyLink, patience)] };
  const { globProofs, issuer: value } = issuer.value;
  maps.issuers.find(value, monotonicMs);
  const found = link === ABSENT ? undefined : link;
  const exact = found?.value.proofs ?? [];
  const reading = exact.length + globProofs.length === 0 || found === undefined ? undefined : readingOf(maps, subject);
  entry.proofs = {
    link: found,
    exact: reading?.matching(exact) ?? [],
    globs: reading?.matching(globProofs) ?? [],
    untilMs: Math.floor(monotonicMs) + MAX_MATCH_AGE_MS,
  };
  return entry.proofs;
}

function userOf(
  at: LookupAt,
  subject: TokenSubject,
  entry: IssuerTokenEntry,
  iatMs: number,
): ProvedByIssuer | Resolution | Missing {
  const { maps, monotonicMs } = at;
  const { userLink, memo } = entry;
  const { users, id: issuerId, usersSinceMs = Number.NEGATIVE_INFINITY } = entry.issuer.value;
  if (users === undefined) return INVALID.no_principal;
  if (typeof userLink === 'object') return INVALID[userLink.reason];
  const link = holdsLink(at, entry) ?? maps.links.find(userLink, monotonicMs);
  if (link === undefined || link === ABSENT) return { missing: [(patience) => maps.links.fill(userLink, patience)] };
  entry.user = link;
  // A token from before a wider mapping creates no user and gives no roles.
  const admits = iatMs >= usersSinceMs && subject.examines !== true;
  const linked = link.value.user;
  if (linked === undefined) {
    return users.create && admits ? admit(at, subject, entry, link, iatMs) : INVALID.no_principal;
  }
  const user = maps.users.find(linked.id, monotonicMs);
  if (user === undefined) return { missing: [(patience) => maps.users.fill(linked.id, patience)] };
  if (user === ABSENT) return INVALID.user_missing;
  const invalid = userInvalidReason(user.value);
  if (invalid !== undefined) return INVALID[invalid];
  if (admits && givesRoles(users, linked.rolesAsOfMs, iatMs)) return admit(at, subject, entry, link, iatMs);
  return { kind: 'user', user, issuerId, memo };
}

function holdsLink(
  { maps, monotonicMs }: LookupAt,
  { user, proofs }: IssuerTokenEntry,
): CacheEntry<LinkRecord> | undefined {
  // `match` looks its entries up once a minute; a link that differs from that of the keys is looked up as often.
  if (user === undefined || proofs === undefined) return undefined;
  return proofs.link === user || maps.links.holds(user, monotonicMs) ? user : undefined;
}

/** Reports whether the roles of the user follow this token. Without a mapping, nothing does, unless there was one. */
function givesRoles({ roles, default_roles }: IssuerUsers, asOfMs: number | undefined, iatMs: number): boolean {
  if (asOfMs !== undefined) return iatMs > asOfMs;
  return roles.length > 0 || default_roles.length > 0;
}

function admit(
  { maps, monotonicMs }: LookupAt,
  subject: TokenSubject,
  entry: IssuerTokenEntry,
  link: CacheEntry<LinkRecord>,
  iatMs: number,
): Resolution | Missing {
  const past = entry.admission;
  if (past !== undefined && past.link === link && monotonicMs < past.untilMs) {
    if (past.refused !== undefined) return INVALID[past.refused];
    throw new Fault('the user of an issuer was admitted, and its link did not change');
  }
  const { users, id, tenantId, name } = entry.issuer.value;
  const described = users === undefined ? undefined : readingOf(maps, subject)?.user(users);
  if (described?.kind !== 'user') return INVALID.no_principal;
  const { kind: _kind, ...user } = described;
  const admitted: AdmittedIssuerUser = { ...user, issuer: { id, tenantId, name }, iatMs };
  return { missing: [(patience) => maps.admissions.admit(subject.digest, entry, link, admitted, patience)] };
}
