/** The limits over their part of the store. */

import { randomBytes } from 'node:crypto';
import type { MeteringSettings } from '../admin/usage/parts.ts';
import type { Config } from '../config/config.ts';
import { deriveKey } from '../identity/seal.ts';
import { Limits } from '../metering/limits.ts';
import { holderName, RESERVATION_KEY_BYTES } from '../metering/reservation-ids.ts';
import { openMetering, postgresMetering } from '../store/metering/metering.ts';
import type { LiveRooms } from './live-rooms.ts';
import type { Wiring } from './wiring.ts';

/** Stopped with the stack: after the doors, so that what the last requests spent is booked too. */
export async function startLimits(
  { config, store, telemetry }: Wiring,
  { clock, onStoreReplaced }: Pick<LiveRooms, 'clock' | 'onStoreReplaced'>,
  stack: AsyncDisposableStack,
): Promise<Limits> {
  const log = telemetry.log.child({ part: 'limits' });
  const db = openMetering(store.db);
  stack.defer(() => db.close());
  const limits = new Limits({
    ...config.limits,
    store: postgresMetering(db),
    holder: holderName(randomBytes(8)),
    reservationKey: deriveKey(store.secretKey, 'reservation-ids').subarray(0, RESERVATION_KEY_BYTES),
    clock,
    now: Date.now,
    monotonicMs: () => performance.now(),
    metersItself: metersItself(config),
    onFault: (err) => log.warn({ err }, 'what limits and usage asked of the database failed'),
  });
  onStoreReplaced(() => limits.storeReplaced());
  stack.defer(() => limits.stop());
  await limits.start();
  return limits;
}

/** Whether a tenant's usage comes by events: what Envoy reports of it is not booked then. */
export function metersItself({ usage }: Pick<Config, 'usage'>): (tenant: string) => boolean {
  const tenants = new Set(usage.eventsTenants);
  return usage.source === 'events' ? () => true : (tenant) => tenants.has(tenant);
}

/** What the API's use cases read of the limits' configuration. */
export function meteringSettings(config: Pick<Config, 'limits' | 'usage'>): MeteringSettings {
  const { windowMs, tokenEstimate } = config.limits;
  return { windowMs, tokenEstimate, metersItself: metersItself(config) };
}
