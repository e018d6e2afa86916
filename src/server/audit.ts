/** Wires the sealer of the audit log with the process's log and metrics. */

import { macUnder } from '../identity/seal.ts';
import type { Mac } from '../store/audit-chain.ts';
import { AuditSealer } from '../store/audit-sealer.ts';
import { sealingReports } from '../telemetry/state-metrics.ts';
import type { Store } from './store.ts';
import type { WiringContext } from './wiring-context.ts';

/** Returns the MAC of the audit log's seals. */
export function auditMac(store: Pick<Store, 'secretKey'>): Mac {
  return macUnder(store.secretKey, 'audit-chain');
}

/** Returns the MAC that is also valid while the installation changes its `secret-key`. */
export function otherAuditMac({ otherSecretKey }: Pick<Store, 'otherSecretKey'>): Mac | undefined {
  return otherSecretKey === undefined ? undefined : macUnder(otherSecretKey, 'audit-chain');
}

export function auditSealer({ config, store, telemetry }: WiringContext): AuditSealer {
  const log = telemetry.log.child({ part: 'audit' });
  const sealing = sealingReports(telemetry.metrics);
  return new AuditSealer({
    db: store.db,
    mac: auditMac(store),
    otherMac: otherAuditMac(store),
    keepMs: config.audit.retentionMs,
    events: {
      onError: (err) => log.warn({ err }, 'the audit log could not be sealed'),
      onTurn: sealing.onTurn,
      onBroken: (what) => {
        sealing.onBroken();
        log.error({ what }, 'the chain of the audit log is broken. Run postern verify-audit');
      },
      onAnchor: (anchor) => log.info({ anchor }, 'the newest seal of the audit log'),
      onRemoved: (rows) => log.info({ rows }, 'audit rows older than audit.retention were removed'),
    },
  });
}
