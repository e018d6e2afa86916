/** Metrics that alerts read: what is down, what grows old, and what runs out. */

import type { Metrics } from './metrics.ts';

/** The sealing of the audit log, from the process that does it. */
export interface SealingReports {
  /** Called after each turn that succeeded, of this server or because another one is at it. */
  readonly onTurn: () => void;
  /** Called when the chain does not continue what was sealed before. */
  readonly onBroken: () => void;
}

/** @param monotonicMs `performance.now()` */
export function sealingReports(metrics: Metrics, monotonicMs: () => number): SealingReports {
  let turnMs = monotonicMs();
  let broken = 0;
  metrics.gauge(
    {
      name: 'postern_audit_seal_age_seconds',
      help: 'Time since the audit log was last sealed or found sealed.',
      together: 'max',
    },
    () => (monotonicMs() - turnMs) / 1000,
  );
  metrics.counter(
    {
      name: 'postern_audit_chain_breaks_total',
      help: 'Number of times that the chain of the audit log did not continue from its newest seal.',
    },
    () => broken,
  );
  return {
    onTurn: () => {
      turnMs = monotonicMs();
    },
    onBroken: () => {
      broken += 1;
    },
  };
}

/** @param ageMs of the key that signs now; undefined before there is one */
export function watchSigningKey(metrics: Metrics, ageMs: () => number | undefined): void {
  metrics.gauges(
    {
      name: 'postern_signing_key_age_seconds',
      help: 'Time since the current signing key started to sign.',
      together: 'max',
    },
    [],
    () => {
      const age = ageMs();
      return age === undefined ? [] : [{ labels: {}, value: age / 1000 }];
    },
  );
}

/** Returns what is told of the end of the certificate in use, in milliseconds since the epoch. Before, no series is shown. */
export function certificateEnd(metrics: Metrics): (endMs: number) => void {
  let endMs: number | undefined;
  metrics.gauges(
    {
      name: 'postern_grpc_certificate_expiry_timestamp_seconds',
      help: 'Expiry of the certificate of the gRPC listener, in seconds since the epoch.',
      together: 'min',
    },
    [],
    () => (endMs === undefined ? [] : [{ labels: {}, value: endMs / 1000 }]),
  );
  return (newEndMs) => {
    endMs = newEndMs;
  };
}

export interface QuotaUse {
  readonly tenant: string;
  /** The share of the monthly tokens that is spent or held: 0 to 1, and above if the quota was lowered. */
  readonly ratio: number;
}

/** Tenants that are named at most. */
const MAX_TENANTS = 100;

/**
 * @param namesTenants false: one series, of the tenant nearest to the end of its quota
 * @param quotas the tenants nearest to the end of their quotas, the nearest first
 */
export function watchQuotas(metrics: Metrics, namesTenants: boolean, quotas: () => readonly QuotaUse[]): void {
  const described = {
    name: 'postern_quota_used_ratio',
    help: 'Fraction of the monthly tokens that is spent or held, for the tenant with the smallest fraction left.',
    together: 'max',
  } as const;
  metrics.gauges(described, namesTenants ? ['tenant'] : [], () =>
    quotas()
      .slice(0, namesTenants ? MAX_TENANTS : 1)
      .map(({ tenant, ratio }) => ({ labels: namesTenants ? { tenant } : {}, value: ratio })),
  );
}
