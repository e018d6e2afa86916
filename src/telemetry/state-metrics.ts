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
      help: 'Times that the chain of the audit log did not continue as it was sealed.',
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
    { name: 'postern_signing_key_age_seconds', help: 'How long the current signing key has signed.', together: 'max' },
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
      help: 'When the certificate of the gRPC listener ends, in seconds since the epoch.',
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
  /** Of the monthly tokens, what is spent and held: 0 to 1, and above where the quota was lowered. */
  readonly ratio: number;
}

/** Tenants that are named, those nearest to their end first. */
const MAX_TENANTS = 100;

/** @param namesTenants false: one series, that of the tenant nearest to the end of its quota */
export function watchQuotas(metrics: Metrics, namesTenants: boolean, quotas: () => Iterable<QuotaUse>): void {
  const described = {
    name: 'postern_quota_used_ratio',
    help: 'Share of the monthly tokens that is spent or held, of the tenant nearest to its end.',
    together: 'max',
  } as const;
  const sorted = (): readonly QuotaUse[] => [...quotas()].sort((a, b) => b.ratio - a.ratio);
  metrics.gauges(described, namesTenants ? ['tenant'] : [], () =>
    namesTenants
      ? sorted()
          .slice(0, MAX_TENANTS)
          .map(({ tenant, ratio }) => ({ labels: { tenant }, value: ratio }))
      : sorted()
          .slice(0, 1)
          .map(({ ratio }) => ({ labels: {}, value: ratio })),
  );
}
