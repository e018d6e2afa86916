/** The rooms that prove a credential and keep the world hot. */

import { rotationTimes } from '../identity/signing-key-plan.ts';
import { SigningKeys } from '../identity/signing-keys.ts';
import { AccessTokens } from '../identity/tokens.ts';
import { Live } from '../live/live.ts';
import type { ChangeListener } from '../live/ports.ts';
import { ChangeFeed } from '../store/feed.ts';
import { PostgresLiveSource } from '../store/live-source.ts';
import { installationIssuer } from '../store/meta.ts';
import { signingKeyStore } from '../store/signing-keys.ts';
import type { Wiring } from './wiring.ts';

export interface LiveRooms {
  readonly keys: SigningKeys;
  readonly tokens: AccessTokens;
  readonly feed: ChangeFeed;
  readonly live: Live;
}

/** What can prove a credential and keep the world hot, without any door. Stopped with the stack. */
export async function joinLive({ config, store, telemetry }: Wiring, stack: AsyncDisposableStack): Promise<LiveRooms> {
  const monotonicMs = (): number => performance.now();
  const keys = new SigningKeys({
    store: signingKeyStore(store.db),
    secretKey: store.secretKey,
    times: rotationTimes(config.token.accessTtlMs),
    clock: Date.now,
    monotonicMs,
    onFault: (error) => telemetry.log.warn({ part: 'signing keys', err: error }, 'the signing keys could not be looked after'),
  });
  stack.defer(() => keys.close());
  const tokens = new AccessTokens({
    keys,
    issuer: config.issuer ?? (await installationIssuer(store.db)),
    audience: config.audience,
    ttlSeconds: Math.floor(config.token.accessTtlMs / 1000),
    clock: Date.now,
  });
  const listeners: ChangeListener[] = [];
  const feed = new ChangeFeed({
    db: store.db,
    listeners,
    notifications: config.database.notifications,
    events: telemetry.feedEvents,
  });
  stack.defer(() => feed.stop());
  const live = new Live({
    source: new PostgresLiveSource(store.db),
    verifier: tokens,
    feed,
    maxCredentials: config.cache.credentials,
    maxStalenessMs: config.cache.maxStalenessMs,
    monotonicMs,
  });
  listeners.push(live, keys);
  telemetry.watch({ live: () => live.stats(), feedAgeMs: () => monotonicMs() - feed.polledAtMs });
  await feed.start();
  await keys.start();
  return { keys, tokens, feed, live };
}
