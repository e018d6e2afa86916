/**
 * The state of an account, from its entry. At a login, the bind decides, and this adds states that some servers ignore.
 * A refresh has no bind, so that only this decides.
 */

import { firstText, integerOf, isTrue, type LdapEntry } from './entry.ts';

export type AccountState = 'usable' | 'disabled' | 'expired' | 'locked' | 'password_expired';

export const STATE_ATTRIBUTES: readonly string[] = [
  // Active Directory
  'userAccountControl',
  'msDS-User-Account-Control-Computed',
  'accountExpires',
  'lockoutTime',
  'pwdLastSet',
  // 389 Directory Server and FreeIPA
  'nsAccountLock',
  'accountUnlockTime',
  'passwordExpirationTime',
  'krbPrincipalExpiration',
  'krbPasswordExpiration',
  // OpenLDAP
  'pwdAccountLockedTime',
  'pwdPolicySubentry',
  'pwdReset',
  'pwdStartTime',
  'pwdEndTime',
];

/** The times of a password policy, in seconds; undefined = without end. */
export interface PolicyTimes {
  readonly lockoutSeconds: number | undefined;
}

/** userAccountControl (MS-ADTS, 2.2.16). */
const DISABLED = 0x2n;
const LOCKED = 0x10n;
const DOES_NOT_EXPIRE = 0x1_0000n;
const PASSWORD_EXPIRED = 0x80_0000n;
/** Both values of accountExpires mean never. */
const NEVER = [0n, 0x7fff_ffff_ffff_ffffn];
/** Milliseconds from 1601, the beginning of Active Directory's clock, to 1970. */
const FILETIME_EPOCH_MS = 11_644_473_600_000n;

/** @param policy OpenLDAP's, if the entry names one that can be read */
export function accountState(entry: LdapEntry, nowMs: number, policy?: PolicyTimes): AccountState {
  return (
    statePerBind(entry, nowMs) ??
    activeDirectoryState(entry, nowMs) ??
    openLdapState(entry, nowMs, policy) ??
    dsState(entry, nowMs) ??
    'usable'
  );
}

/** Returns the states that a server may ignore at a bind: FreeIPA's expiries, and locks that the entry shows. */
export function statePerBind(entry: LdapEntry, nowMs: number): AccountState | undefined {
  if (isTrue(entry, 'nsAccountLock')) return 'disabled';
  if (((integerOf(entry, 'userAccountControl') ?? 0n) & DISABLED) !== 0n) return 'disabled';
  if (isPast(timeOf(entry, 'krbPrincipalExpiration'), nowMs)) return 'expired';
  return isPast(timeOf(entry, 'krbPasswordExpiration'), nowMs) ? 'password_expired' : undefined;
}

/** Returns the state for which OpenLDAP rejects a bind without reporting it. */
export function unreportedState(entry: LdapEntry, nowMs: number): 'locked' | 'disabled' | 'expired' | undefined {
  const state = openLdapState(entry, nowMs, undefined);
  return state === 'locked' || state === 'disabled' || state === 'expired' ? state : undefined;
}

function activeDirectoryState(entry: LdapEntry, nowMs: number): AccountState | undefined {
  const control = integerOf(entry, 'userAccountControl') ?? 0n;
  const computed = integerOf(entry, 'msDS-User-Account-Control-Computed');
  const expires = integerOf(entry, 'accountExpires') ?? 0n;
  if (!NEVER.includes(expires) && expires / 10_000n - FILETIME_EPOCH_MS <= BigInt(nowMs)) return 'expired';
  // If the server computes the lock, it considers the lock's duration. The time of the lock alone does not show that.
  const locked = computed === undefined ? (integerOf(entry, 'lockoutTime') ?? 0n) !== 0n : (computed & LOCKED) !== 0n;
  if (locked) return 'locked';
  if (((computed ?? 0n) & PASSWORD_EXPIRED) !== 0n) return 'password_expired';
  return integerOf(entry, 'pwdLastSet') === 0n && (control & DOES_NOT_EXPIRE) === 0n ? 'password_expired' : undefined;
}

/** slapo-ppolicy(5). */
function openLdapState(entry: LdapEntry, nowMs: number, policy: PolicyTimes | undefined): AccountState | undefined {
  const lockedAt = firstText(entry, 'pwdAccountLockedTime');
  // A lock after failed logins has a time. A lock by an administrator has none, which is OpenLDAP's way to disable an
  // account.
  if (lockedAt?.startsWith('0000')) return 'disabled';
  if (lockedAt !== undefined && isLockInForce(lockedAt, nowMs, policy)) return 'locked';
  const startsAt = timeOf(entry, 'pwdStartTime');
  if (startsAt !== undefined && startsAt > nowMs) return 'disabled';
  if (isPast(timeOf(entry, 'pwdEndTime'), nowMs)) return 'expired';
  return isTrue(entry, 'pwdReset') ? 'password_expired' : undefined;
}

/** A lock without a known end is in force. */
function isLockInForce(lockedAt: string, nowMs: number, policy: PolicyTimes | undefined): boolean {
  const since = generalisedTime(lockedAt);
  if (since === undefined || policy?.lockoutSeconds === undefined) return true;
  return since + policy.lockoutSeconds * 1000 > nowMs;
}

/** In 389 Directory Server, 1970 means forever in a lock, and a required change in an expiry. */
function dsState(entry: LdapEntry, nowMs: number): AccountState | undefined {
  const unlocksAt = timeOf(entry, 'accountUnlockTime');
  if (unlocksAt !== undefined && (unlocksAt === 0 || unlocksAt > nowMs)) return 'locked';
  return isPast(timeOf(entry, 'passwordExpirationTime'), nowMs) ? 'password_expired' : undefined;
}

function isPast(timeMs: number | undefined, nowMs: number): boolean {
  return timeMs !== undefined && timeMs <= nowMs;
}

function timeOf(entry: LdapEntry, attribute: string): number | undefined {
  const text = firstText(entry, attribute);
  return text === undefined ? undefined : generalisedTime(text);
}

/** RFC 4517, section 3.3.13, in UTC or with an offset; undefined for anything else. */
export function generalisedTime(text: string): number | undefined {
  const match = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)?(\d\d)?(?:[.,]\d+)?(Z|[+-]\d\d(?:\d\d)?)$/.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute = '00', second = '00', zone = 'Z'] = match;
  const offset = zone === 'Z' ? 'Z' : `${zone.slice(0, 3)}:${zone.slice(3) || '00'}`;
  const ms = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}${offset}`);
  return Number.isNaN(ms) ? undefined : ms;
}
