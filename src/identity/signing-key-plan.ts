/**
 * When signing keys come and go, as a pure plan. A key is published a day before it signs, so that whoever caches the key set has it by
 * then, and stays published after it stopped, until the last token that it signed is past its expiry.
 */

import type { SigningKeyChange, StoredSigningKey } from './ports.ts';

export interface RotationTimes {
  /** How long one key signs. */
  readonly periodMs: number;
  /** How long a key is published before it signs. */
  readonly publishAheadMs: number;
  /** How long a retired key stays published. */
  readonly keepRetiredMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** @param accessTtlMs how long an access token lives; a lower setting than yesterday's must not orphan yesterday's tokens */
export function rotationTimes(accessTtlMs: number): RotationTimes {
  return { periodMs: 30 * DAY_MS, publishAheadMs: DAY_MS, keepRetiredMs: Math.max(accessTtlMs, DAY_MS) + HOUR_MS };
}

/**
 * The key that signs now: the newest whose time has come. On a server whose clock lags behind the one that made the first key there is
 * none, and the earliest is taken.
 */
export function currentKey<K extends { readonly signsFromMs: number }>(
  keys: readonly K[],
  nowMs: number,
): K | undefined {
  let newest: K | undefined;
  let earliest: K | undefined;
  for (const key of keys) {
    if (key.signsFromMs <= nowMs && (newest === undefined || key.signsFromMs > newest.signsFromMs)) {
      newest = key;
    }
    if (earliest === undefined || key.signsFromMs < earliest.signsFromMs) {
      earliest = key;
    }
  }
  return newest ?? earliest;
}

/** What is due now: a first key, the next one ahead of need, and the removal of those whose tokens are gone. */
export function planUpkeep(
  keys: readonly StoredSigningKey[],
  nowMs: number,
  times: RotationTimes,
  makeKey: (signsFromMs: number) => StoredSigningKey,
): SigningKeyChange {
  const current = currentKey(keys, nowMs);
  if (current === undefined) {
    return { insert: [makeKey(nowMs)], retire: [], remove: [] };
  }
  const remove = expired(keys, nowMs, times);
  const takeoverMs = current.signsFromMs + times.periodMs;
  if (hasNext(keys, nowMs) || nowMs < takeoverMs - times.publishAheadMs) {
    return { insert: [], retire: [], remove };
  }
  return { ...succession(keys, Math.max(takeoverMs, nowMs + times.publishAheadMs), makeKey), remove };
}

/** A rotation by hand: a next key now, unless one is already waiting. */
export function planRotation(
  keys: readonly StoredSigningKey[],
  nowMs: number,
  times: RotationTimes,
  makeKey: (signsFromMs: number) => StoredSigningKey,
): SigningKeyChange {
  if (keys.length === 0 || hasNext(keys, nowMs)) {
    return planUpkeep(keys, nowMs, times, makeKey);
  }
  return { ...succession(keys, nowMs + times.publishAheadMs, makeKey), remove: expired(keys, nowMs, times) };
}

/** Keys of which no token is left. */
function expired(keys: readonly StoredSigningKey[], nowMs: number, times: RotationTimes): readonly string[] {
  return keys
    .filter((key) => key.retiredAtMs !== undefined && key.retiredAtMs + times.keepRetiredMs <= nowMs)
    .map((key) => key.kid);
}

function hasNext(keys: readonly StoredSigningKey[], nowMs: number): boolean {
  return keys.some((key) => key.signsFromMs > nowMs);
}

function succession(
  keys: readonly StoredSigningKey[],
  takeoverMs: number,
  makeKey: (signsFromMs: number) => StoredSigningKey,
): SigningKeyChange {
  const retire = keys
    .filter((key) => key.retiredAtMs === undefined)
    .map(({ kid }) => ({ kid, retiredAtMs: takeoverMs }));
  return { insert: [makeKey(takeoverMs)], retire, remove: [] };
}
