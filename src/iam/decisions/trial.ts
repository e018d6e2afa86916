/** A trial beside another gate: the decisions in shadow mode of a time span, and how the two gates differ. */

import { readMeta } from '../../store/meta.ts';
import { OTHER_GATE_REPORTED_AT } from '../../store/other-gate.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { scopeOf } from '../list/list.ts';
import { readNames } from '../list/names.ts';
import { sumDecisions } from './count-queries.ts';
import { decisionTotals, spanOf } from './read.ts';
import { RECENT_HOURS, readTrial, type TrialGroup } from './recent-queries.ts';
import { MAX_TRIAL_PRINCIPALS, type TrialQuery, type TrialReport } from './schemas.ts';

const HOUR_MS = 3_600_000;

export async function reportTrial(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: TrialQuery,
): Promise<TrialReport> {
  const { knex } = parts.db;
  const scope = scopeOf(caller);
  const span = spanOf(query, caller.nowMs, RECENT_HOURS * HOUR_MS);
  const filter = { fromMs: span.from.getTime(), toMs: span.to.getTime() };
  const [sums, { reasons, principals }, reportedAt] = await Promise.all([
    sumDecisions(knex, scope, span, true),
    readTrial(knex, scope, filter, caller.nowMs, MAX_TRIAL_PRINCIPALS),
    readMeta(parts.db.query, OTHER_GATE_REPORTED_AT),
  ]);
  const named = principals.map(({ type, id }) => (type === null || id === null ? null : { kind: type, id }));
  const nameOf = await readNames(
    parts,
    caller,
    named.flatMap((one) => one ?? []),
  );
  const total = decisionTotals(sums);
  const recorded = { allow: sumOf(reasons, 'allow', 'count'), deny: sumOf(reasons, 'deny', 'count') };
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    tenant_id: caller.everyTenant ? '*' : caller.tenant,
    total,
    recorded,
    not_recorded: Math.max(0, total.allow + total.deny - recorded.allow - recorded.deny),
    differences: {
      denied_here: sumOf(reasons, 'deny', 'differing'),
      denied_there: sumOf(reasons, 'allow', 'differing'),
    },
    other_gate_reported_at: reportedAt ?? null,
    denied_by_code: reasons.flatMap(({ outcome, ...reason }) => (outcome === 'deny' ? [reason] : [])),
    denied_by_principal: principals.map(({ count, differing }, index) => {
      const one = named[index] ?? null;
      return { principal: one && { type: one.kind, id: one.id, name: nameOf(one) }, count, differing };
    }),
  };
}

function sumOf(reasons: readonly TrialGroup[], outcome: 'allow' | 'deny', member: 'count' | 'differing'): number {
  return reasons.reduce((sum, reason) => sum + (reason.outcome === outcome ? reason[member] : 0), 0);
}
