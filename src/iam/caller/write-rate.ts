/**
 * Bounds the bytes that one caller writes to the audit log, and so the growth of the database. An audit row has the
 * state before and after a change, so a small request can write as many bytes as the largest resource has.
 *
 * Each API process counts for itself. The rate does not apply to platform administrators, to changes that end rights,
 * or to reports of usage.
 */

import { ByteRates } from '../../domain/byte-rates.ts';
import { Refusal } from '../../domain/errors.ts';
import type { AuditRow } from '../../store/audit-rows.ts';
import type { Caller } from './caller.ts';

/** 1.4 GB per day. */
const BYTES_PER_SECOND = 16 * 1024;
/** More than a second import of a large tenant's export needs. */
const BURST_BYTES = 256 * 1024 * 1024;

/** Verbs of actions to which the rate does not apply. */
const ALWAYS: ReadonlySet<string> = new Set([
  'revoke',
  'revoke_before',
  'disable',
  'deactivate',
  'suspend',
  'delete',
  'detach',
  'end_session',
  'end_sessions',
  'record',
]);

type Payer = Pick<Caller, 'principal'>;

export class WriteRate {
  readonly #rates: ByteRates;
  readonly #monotonicMs: () => number;

  constructor(monotonicMs: () => number, bytesPerSecond = BYTES_PER_SECOND, burstBytes = BURST_BYTES) {
    this.#monotonicMs = monotonicMs;
    this.#rates = new ByteRates({ bytesPerSecond, burstMs: (burstBytes / bytesPerSecond) * 1000 });
  }

  /** @throws Refusal `rate_limit_exceeded` while the caller has written more than its rate */
  admit(caller: Payer, action: string): void {
    const payer = payerOf(caller);
    const waitMs = payer === undefined || isAlways(action) ? 0 : this.#rates.waitMs(payer, this.#monotonicMs());
    if (waitMs <= 0) return;
    throw new Refusal(
      'rate_limit_exceeded',
      'The caller has written more in its changes than one caller may. Try again later.',
      {
        retryAfter: waitMs / 1000,
      },
    );
  }

  wrote(caller: Payer, rows: readonly AuditRow[]): void {
    const payer = payerOf(caller);
    if (payer !== undefined) this.#rates.take(payer, JSON.stringify(rows).length, this.#monotonicMs());
  }
}

/** @param action `<type>.<verb>` */
function isAlways(action: string): boolean {
  return ALWAYS.has(action.slice(action.indexOf('.') + 1));
}

/**
 * Returns the id that the bytes count for. The keys of a user count for the user, and the keys of a tenant together.
 */
function payerOf({ principal }: Payer): string | undefined {
  switch (principal.kind) {
    case 'user':
      return principal.platformAdmin ? undefined : principal.id;
    case 'api_key':
      return principal.owner?.id ?? principal.tenantId;
    default:
      return principal satisfies never;
  }
}
