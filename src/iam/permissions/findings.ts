/**
 * The rules of a tenant that do nothing (`decision/difference/findings.ts`), as notices. They are computed once for
 * each version of the tenant's rules that this process has in its cache, between other requests.
 */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { onEventLoop, Slices } from '../../credential-cache/slices.ts';
import { findingsInSteps, type RuleFinding } from '../../decision/difference/findings.ts';
import { MANAGEMENT_PERMISSIONS } from '../../decision/management.ts';
import type { TenantView } from '../../decision/model.ts';
import type { PolicySet } from '../../decision/policies.ts';
import type { TenantId } from '../../domain/ids.ts';
import { isAuthorized } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import type { CatalogParts } from './catalog.ts';

/** The findings about the rules of one tenant and the global ones. */
export interface TenantFindings {
  /** @param owner the tenant of the rule; null for a global policy */
  about(kind: 'policy' | 'role', owner: string | null, name: string): readonly RuleFinding[];
}

export const NO_FINDINGS: TenantFindings = { about: () => [] };

const MANAGEMENT = MANAGEMENT_PERMISSIONS.map((permission) => ({ permission, self: false }));
/**
 * The largest numbers of versions of rules that are compared at once, and that wait. A tenant has at most half of each.
 */
const turns = new Semaphore({ permits: 4, maxWaiting: 16 });
const slices = new Slices({ monotonicMs: () => performance.now(), later: onEventLoop });

interface Known {
  readonly global: PolicySet;
  readonly findings: Promise<TenantFindings>;
}

/** Rules are frozen, and a change makes a new view of the tenant. */
const known = new WeakMap<TenantView, Known>();

/**
 * Returns the findings about the rules of the caller's effective tenant. A finding names policies, so a caller without
 * `admin:policies` gets none. A tenant whose rules change faster than they are compared gets none for a while, so that
 * it does not keep the others waiting.
 */
export function tenantFindings({ routes }: CatalogParts, caller: Caller): Promise<TenantFindings> {
  const { effective, global, builtinRoles } = caller.snapshot;
  if (effective === undefined || !isAuthorized(caller, 'admin:policies')) return Promise.resolve(NO_FINDINGS);
  const last = known.get(effective);
  if (last?.global === global) return last.findings;
  const snapshot = { own: effective, effective, global, builtinRoles };
  const findings = turns.run(async () => {
    const steps = findingsInSteps({ snapshot, routes, management: MANAGEMENT });
    const { value } = await slices.run(steps, () => true);
    return indexed(effective.id, value?.findings ?? []);
  }, effective.id);
  if (findings === undefined) return Promise.resolve(NO_FINDINGS);
  known.set(effective, { global, findings });
  return findings;
}

function indexed(tenant: TenantId, findings: readonly RuleFinding[]): TenantFindings {
  const byRule = Map.groupBy(findings, ({ rule }) => `${rule.kind} ${rule.name}`);
  return {
    about: (kind, owner, name) => (owner === null || owner === tenant ? (byRule.get(`${kind} ${name}`) ?? []) : []),
  };
}
