/**
 * Recorded decisions of the last 24 hours in pages, newest first: of the effective tenant, or of all tenants and of
 * none with `tenant_id=*`. For a trial beside another gate, it sums those in shadow mode, and how the two gates differ.
 */

import { parseId } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
import { readMeta } from '../../store/meta.ts';
import { OTHER_GATE_REPORTED_AT } from '../../store/other-gate.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { badCursor, type List, paged, scopeOf } from '../list/list.ts';
import { type NamedId, readNames } from '../list/names.ts';
import { sumDecisions } from './count-queries.ts';
import { decisionTotals, spanOf } from './read.ts';
import {
  countRecent,
  listRecent,
  RECENT_HOURS,
  type RecentFilter,
  readTrial,
  type StoredDecision,
  type TrialGroup,
} from './recent-queries.ts';
import {
  MAX_TRIAL_PRINCIPALS,
  type RecentQuery,
  type RecentResource,
  type TrialQuery,
  type TrialReport,
} from './schemas.ts';

interface RecentList extends List<RecentResource> {
  /** Whether a decision of this page is sampled. */
  readonly sampled: boolean;
}

/** @throws Refusal `invalid_parameter` */
export async function listRecentPage(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: RecentQuery,
): Promise<RecentList> {
  const { knex } = parts.db;
  const filter = filterOf(query);
  const list = await paged(
    caller,
    'recent decisions',
    query,
    (page) => {
      if (page.after !== undefined && !isPosition(page.after)) throw badCursor();
      return listRecent(knex, scopeOf(caller), filter, page, caller.nowMs);
    },
    (row) => [row.request_id],
    recentResource,
    (most) => countRecent(knex, scopeOf(caller), filter, caller.nowMs, most),
  );
  const data = query.include === 'names' ? await withNames(parts, caller, list.data) : list.data;
  return { ...list, data, sampled: list.data.some(({ sampled }) => sampled) };
}

async function withNames(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  rows: readonly RecentResource[],
): Promise<readonly RecentResource[]> {
  const named = rows.flatMap(({ principal }) => (principal === null ? [] : [namedIn(principal)]));
  const nameOf = await readNames(parts, caller, named);
  return rows.map((row) => {
    const { principal } = row;
    return principal === null ? row : { ...row, principal: { ...principal, name: nameOf(namedIn(principal)) } };
  });
}

function namedIn({ type, id }: NonNullable<RecentResource['principal']>): NamedId {
  return { kind: type, id };
}

/** Validates a cursor's position, because a client can compute the check of any cursor. */
function isPosition(after: readonly string[]): boolean {
  const [id, ...more] = after;
  return id !== undefined && more.length === 0 && parseId('req', id) !== undefined;
}

function filterOf(query: RecentQuery): RecentFilter {
  const { shadow = false, other, differs, outcome, code, principal, route, would, report, from, to } = query;
  const msOf = (time: string | undefined): number | undefined => (time === undefined ? undefined : Date.parse(time));
  const named = { other, differs, outcome, code, principal, route, would, report, fromMs: msOf(from), toMs: msOf(to) };
  return { shadow, ...present(named) };
}

export function recentResource(row: StoredDecision): RecentResource {
  const { principal_type: type, principal_id: id } = row;
  return {
    request_id: row.request_id,
    time: row.time.toISOString(),
    tenant_id: row.tenant_id === '' ? null : row.tenant_id,
    outcome: row.outcome,
    code: row.code,
    detail: row.detail,
    principal: type === null || id === null ? null : { type, id },
    method: row.method,
    path: row.path,
    route: row.route,
    permission: row.permission,
    resources: row.resources,
    client_ip: row.client_ip,
    policy: row.policy,
    would_deny: row.would_deny,
    would_allow: row.would_allow,
    budget: row.facts.budget ?? null,
    sampled: row.sampled,
    shadow: row.shadow,
    client_request_id: row.client_request_id,
    other: row.other,
  };
}

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
    readMeta(knex, OTHER_GATE_REPORTED_AT),
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
