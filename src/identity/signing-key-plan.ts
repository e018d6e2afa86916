/**
 * Plans the lifetimes of signing keys. Pure. A key is published a day before it signs, so that clients that cache the
 * key set have it in time. It stays published after it stops signing, until the last token that it signed has expired.
 */

import type { SigningKeyChange, StoredSigningKey } from './ports.ts';

export interface RotationTimes {
  readonly periodMs: number;
  /** The time between the publication of a key and its first signature. */
  readonly publishAheadMs: number;
  /** The time during which a retired key stays published. */
  readonly keepRetiredMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** @param accessTtlMs the lifetime of access tokens; after it is lowered, older tokens must still find their keys */
export function rotationTimes(accessTtlMs: number): RotationTimes {
  return { periodMs: 30 * DAY_MS, publishAheadMs: DAY_MS, keepRetiredMs: Math.max(accessTtlMs, DAY_MS) + HOUR_MS };
}

/**
 * Returns the key that signs now: the newest one whose time has come. If this server's clock is behind that of the
 * server that created the first key, the earliest key signs.
 */
export function currentKey<K extends { readonly signsFromMs: number }>(
  keys: readonly K[],
  nowMs: number,
): K | undefined {
  const newestFirst = keys.toSorted((left, right) => right.signsFromMs - left.signsFromMs);
  return newestFirst.find((key) => key.signsFromMs <= nowMs) ?? newestFirst.at(-1);
}

/**
 * Returns the changes that are due now: a first key, the next one ahead of need, and the removal of keys without
 * tokens.
 */
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
  const takeoverMs = current.signsFromMs + times.periodMs;
  const remove = keys
    .filter((key) => key.retiredAtMs !== undefined && key.retiredAtMs + times.keepRetiredMs <= nowMs)
    .map((key) => key.kid);
  const hasNext = keys.some((key) => key.signsFromMs > nowMs);
  if (hasNext || nowMs < takeoverMs - times.publishAheadMs) {
    return { insert: [], retire: [], remove };
  }
  const nextFromMs = Math.max(takeoverMs, nowMs + times.publishAheadMs);
  const retire = keys
    .filter((key) => key.retiredAtMs === undefined)
    .map(({ kid }) => ({ kid, retiredAtMs: nextFromMs }));
  return { insert: [makeKey(nextFromMs)], retire, remove };
}

/** Plans a manual rotation, as if the period were over: a next key now, unless one is already waiting. */
export function planRotation(
  keys: readonly StoredSigningKey[],
  nowMs: number,
  times: RotationTimes,
  makeKey: (signsFromMs: number) => StoredSigningKey,
): SigningKeyChange {
  return planUpkeep(keys, nowMs, { ...times, periodMs: 0 }, makeKey);
}
