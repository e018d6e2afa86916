/** Wires the limits with their store. */

import { randomBytes } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { MeteringSettings } from '../iam/usage/parts.ts';
import { deriveKey } from '../identity/seal.ts';
import { LimitReadings } from '../metering/limit-readings.ts';
import { Limits } from '../metering/limits.ts';
import { processIdOf, RESERVATION_KEY_BYTES } from '../metering/reservation-ids.ts';
import { openMetering, postgresMetering } from '../store/metering/metering.ts';
import { readingStore } from '../store/metering/readings.ts';
import type { CredentialServices } from './credential-cache.ts';
import type { WiringContext } from './wiring-context.ts';

const UNREPORTED =
  'no proxy reports the end of the requests that this process allows, so usage is not booked and reservations expire. Configure the access log of the proxy as docs/envoy.md describes';

const OFFLINE =
  'the database does not answer, so rate limits continue with the fair share of each process, and checks that need more of a budget or quota than the process holds get 503';

/** Returns warnings about the limits for /readyz. */
export function limitWarnings({ unreported, isOffline }: Pick<Limits, 'unreported' | 'isOffline'>): readonly string[] {
  return [
    ...(isOffline ? [`metering: ${OFFLINE}`] : []),
    ...(unreported === 0 ? [] : [`metering: ${UNREPORTED} (${unreported} requests)`]),
  ];
}

/**
 * Starts the limits, which stop with the stack, after the listener, so that they also book the usage of the last
 * requests.
 */
export async function startLimits(
  { config, store, telemetry }: WiringContext,
  { clock, onStoreReplaced, prices }: Pick<CredentialServices, 'clock' | 'onStoreReplaced' | 'prices'>,
  stack: AsyncDisposableStack,
): Promise<Limits> {
  const log = telemetry.log.child({ part: 'limits' });
  const db = openMetering(store.db);
  stack.defer(() => db.close());
  const limits = new Limits({
    ...config.limits,
    store: postgresMetering(db),
    processId: processIdOf(randomBytes(8)),
    reportsBudget: config.limits.budgetHeader,
    reservationKey: reservationKey(store.secretKey),
    otherReservationKey: store.otherSecretKey === undefined ? undefined : reservationKey(store.otherSecretKey),
    clock,
    now: Date.now,
    monotonicMs: () => performance.now(),
    prices: () => prices.table,
    metersItself: metersItself(config),
    onUnreported: (requests) => {
      if (requests === 0) log.info('proxies report the end of requests again');
      else log.warn({ requests }, UNREPORTED);
    },
    onFault: (err) => log.warn({ err }, 'a database statement of limits or usage failed'),
  });
  onStoreReplaced(() => limits.storeReplaced());
  stack.defer(() => limits.stop());
  await limits.start();
  return limits;
}

/** Reads the limits for checks in shadow mode. */
export function limitReadings(
  { config, store }: WiringContext,
  { now, prices }: Pick<CredentialServices, 'now' | 'prices'>,
): LimitReadings {
  return new LimitReadings({
    ...config.limits,
    store: readingStore(store.db),
    prices: () => prices.table,
    monotonicMs: () => performance.now(),
    nowMs: now,
  });
}

function reservationKey(secretKey: string): Uint8Array {
  return deriveKey(secretKey, 'reservation-ids').subarray(0, RESERVATION_KEY_BYTES);
}

/** Returns the test for tenants whose usage comes from events. The server does not book what Envoy reports of them. */
export function metersItself({ usage }: Pick<Config, 'usage'>): (tenant: string) => boolean {
  const tenants = new Set<string>(usage.eventsTenants);
  return usage.source === 'events' ? () => true : (tenant) => tenants.has(tenant);
}

/** Returns the settings of limits that the API's use cases read. */
export function meteringSettings(config: Pick<Config, 'limits' | 'usage'>): MeteringSettings {
  const { windowMs, tokenEstimate, fileEstimate } = config.limits;
  return { windowMs, tokenEstimate, fileEstimate, metersItself: metersItself(config) };
}
