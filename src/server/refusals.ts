/** Writes rejected requests to the audit log after their responses, so no request waits for its row. */

import { startPeriodicFlush } from '../concurrency/single-flight.ts';
import { parseAddress } from '../decision/address.ts';
import { REPEATED } from '../decision/model.ts';
import { Fault } from '../domain/errors.ts';
import { parseTenantId } from '../domain/ids.ts';
import { RefusalWindows, type RefusedRequest } from '../iam/change/refusal-windows.ts';
import { type AuditRow, insertAudits } from '../store/audit-rows.ts';
import type { CheckOutcome } from '../telemetry/check-outcome.ts';
import type { WiringContext } from './wiring-context.ts';

const EVERY_MS = 1_000;
const MAX_ROWS = 500;

interface RefusalAudit {
  /** Takes a rejected request of the API. */
  readonly note: (refused: RefusedRequest) => void;
  /** Takes a check, and keeps it if its credential is invalid. */
  readonly observe: (outcome: CheckOutcome) => void;
  /** Writes every row, including those of windows that have not ended. */
  readonly stop: () => Promise<void>;
}

export function startRefusalAudit({ store, telemetry }: Pick<WiringContext, 'store' | 'telemetry'>): RefusalAudit {
  const log = telemetry.log.child({ part: 'audit' });
  const windows = new RefusalWindows();
  /** Rows whose write the store has not confirmed. They may be written twice. */
  let rows: readonly AuditRow[] = [];
  const write = async (): Promise<boolean> => {
    try {
      await insertAudits(store.db.knex, rows);
    } catch (err) {
      log.warn({ err, rows: rows.length }, 'refused requests could not be written to the audit log');
      if (err instanceof Fault) return false;
    }
    rows = [];
    return true;
  };
  const flushing = startPeriodicFlush(async () => {
    do {
      if (rows.length === 0) rows = windows.take(performance.now(), MAX_ROWS);
    } while (rows.length > 0 && (await write()));
  }, EVERY_MS);
  return {
    note: ({ refusal, ...facts }) => {
      telemetry.httpRefusal(refusal.code);
      if (!refusal.audited) windows.note({ refusal, ...facts }, performance.now());
    },
    observe: (outcome) => {
      const refused = refusedCheck(outcome);
      if (refused !== undefined) windows.note(refused, performance.now());
    },
    stop: async () => {
      await flushing.stop();
      rows = [...rows, ...windows.takeAll()];
      if (rows.length > 0) await write();
    },
  };
}

/** Only a credential's reason has a place in the audit log: the other denials are recent decisions. */
function refusedCheck({ decision, input, requestId, shadow }: CheckOutcome): RefusedRequest | undefined {
  if (decision?.kind !== 'deny' || decision.code !== 'invalid_credential' || shadow === true) return undefined;
  const { detail, principal, reason, route } = decision;
  if (input === undefined || route === undefined) return undefined;
  const { clientAddress = '', method, tenant } = input;
  const address = parseAddress(clientAddress) === undefined ? undefined : clientAddress;
  return {
    refusal: { code: decision.code, message: detail, extras: { reason }, audited: false },
    principal,
    address,
    throttledAs: address,
    method,
    route: route.template,
    target: undefined,
    tenant: tenant === undefined || tenant === REPEATED ? undefined : parseTenantId(tenant),
    requestId,
  };
}
