/** Metrics for alerts: the audit chain, the signing key, the certificate, and token quotas. */

import { counter, gauge } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const STATE_METRICS = {
  postern_signing_key_age_seconds: gauge([], 'Time since the current signing key started to sign.', {
    together: 'max',
    explanation: 'The key is replaced after 30 days.',
  }),
  postern_grpc_certificate_expiry_timestamp_seconds: gauge(
    [],
    'Expiry of the certificate of the gRPC listener, in seconds since the epoch.',
    { together: 'min', explanation: 'Absent without TLS.' },
  ),
  postern_audit_seal_age_seconds: gauge([], 'Time since the audit log was last sealed or found sealed.', {
    together: 'max',
  }),
  postern_audit_chain_breaks_total: counter(
    [],
    'Number of times that the chain of the audit log did not continue from its newest seal.',
  ),
  postern_quota_used_ratio: gauge(
    ['tenant'],
    'Fraction of the monthly tokens that is spent or held, for the tenant with the smallest fraction left.',
    {
      together: 'max',
      explanation:
        "Without the tenant's name. With `metrics.tenant-label`: the fractions of the 100 tenants nearest to their quota. They are at most a second old with up to 20,000 tenants in use.",
    },
  ),
} as const;

/** Reports of the process that seals the audit log. */
export interface SealingReports {
  /** Called after each successful turn, and when another server seals. */
  readonly onTurn: () => void;
  /** Called when the chain does not continue from its newest seal. */
  readonly onBroken: () => void;
}

export function sealingReports(metrics: Metrics): SealingReports {
  let turnMs = performance.now();
  let broken = 0;
  metrics.show('postern_audit_seal_age_seconds', () => (performance.now() - turnMs) / 1000);
  metrics.show('postern_audit_chain_breaks_total', () => broken);
  return {
    onTurn: () => {
      turnMs = performance.now();
    },
    onBroken: () => {
      broken += 1;
    },
  };
}

/** @param ageMs the age of the current signing key; undefined before the first one */
export function watchSigningKey(metrics: Metrics, ageMs: () => number | undefined): void {
  metrics.show('postern_signing_key_age_seconds', () => secondsOf(ageMs()));
}

/** Returns the function that sets the expiry of the certificate in use, in milliseconds since the epoch. */
export function certificateEnd(metrics: Metrics): (endMs: number) => void {
  let endMs: number | undefined;
  metrics.show('postern_grpc_certificate_expiry_timestamp_seconds', () => secondsOf(endMs));
  return (newEndMs) => {
    endMs = newEndMs;
  };
}

function secondsOf(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

export interface QuotaUse {
  readonly tenant: string;
  /** The share of the monthly tokens that is spent or held: 0 to 1, and above if the quota was lowered. */
  readonly ratio: number;
}

const MAX_TENANTS = 100;

/**
 * @param namesTenants false: one series, of the tenant nearest to the end of its quota
 * @param quotas the tenants nearest to the end of their quotas, the nearest first
 */
export function watchQuotas(metrics: Metrics, namesTenants: boolean, quotas: () => readonly QuotaUse[]): void {
  metrics.show('postern_quota_used_ratio', () =>
    quotas()
      .slice(0, namesTenants ? MAX_TENANTS : 1)
      .map(({ tenant, ratio }) => [namesTenants ? tenant : undefined, ratio]),
  );
}
