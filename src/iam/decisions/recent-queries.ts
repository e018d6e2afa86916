/** Recorded decisions: pages, one by its request id, and the bounds of the record. */

import { makeId, type RequestId } from '../../domain/ids.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import { countUpTo, type NamedQuery } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { RecentDecisionRow } from '../../telemetry/recent-decision.ts';
import { type FilterConditions, filterConditions } from '../list/filters.ts';

export interface StoredDecision extends Omit<RecentDecisionRow, 'time' | 'code'> {
  readonly time: Date;
  readonly code: string;
  /** The other gate's outcome for a request in shadow mode. Null: not known. */
  readonly other: 'allow' | 'deny' | null;
}

export interface RecentFilter {
  /** Decisions in shadow mode, or enforced ones. */
  readonly shadow: boolean;
  readonly other?: 'allow' | 'deny';
  /** Whether the other gate's outcome is known and differs. */
  readonly differs?: boolean;
  readonly outcome?: 'allow' | 'deny';
  readonly code?: string;
  /** The id of a user or a key. */
  readonly principal?: string;
  /** Method and template of an entry of the route table. */
  readonly route?: string;
  /** Decisions that a report-only policy would have changed, by the effect of the policy. */
  readonly would?: 'allow' | 'deny' | 'any';
  /** The report-only policy that would have changed the decision. */
  readonly report?: string;
  /** The first instant, milliseconds since the epoch. */
  readonly fromMs?: number;
  /** The instant after the last. */
  readonly toMs?: number;
}

interface RecentBounds {
  /** The largest number of rows of one tenant and outcome. */
  readonly perGroup: number;
  readonly total: number;
}

export const RECENT_HOURS = 24;
export const RECENT_BOUNDS: Readonly<Record<RecentKind, RecentBounds>> = {
  sampled: { perGroup: 1000, total: 100_000 },
  first_allows: { perGroup: 10_000, total: 100_000 },
  reported: { perGroup: 1000, total: 100_000 },
  shadow: { perGroup: 10_000, total: 100_000 },
};

const KEPT_MS = RECENT_HOURS * 3_600_000;
const ZEROS = new Uint8Array(10);

/** Returns the lowest request id of a millisecond. Request ids have the order of time. */
function firstIdOf(ms: number): RequestId {
  return makeId('req', Math.min(Math.max(Math.ceil(ms), 0), MAX_ID_MS), ZEROS);
}

/** The time of an id has 48 bits. */
const MAX_ID_MS = 2 ** 48 - 1;

/**
 * The other gate denied a request if Envoy's access log reports it. Otherwise it allowed the request, or its answer has
 * not been reported yet. Its answer cannot be found for a request without an id, nor for one whose id another recorded
 * request has: a client may choose the id, and the report of a denial names nothing else.
 */
const OTHER = `case
  when client_request_id is null then null
  when exists (
    select from recent_decisions twin
    where twin.client_request_id = recent.client_request_id and twin.request_id <> recent.request_id) then null
  when exists (select from other_gate_denials denied where denied.client_request_id = recent.client_request_id) then 'deny'
  else 'allow' end`;
/** Null if the other gate's outcome is not known. */
const DIFFERS = `(${OTHER}) <> outcome`;
const ROWS = `recent.*, ${OTHER} as other`;

const CONDITIONS: FilterConditions<Omit<RecentFilter, 'shadow'>> = {
  other: `(${OTHER}) = :other`,
  differs: `coalesce(${DIFFERS}, false) = :differs`,
  outcome: 'outcome = :outcome',
  code: 'code = :code',
  principal: 'principal_id = :principal',
  route: 'route = :route',
  would: `case :would when 'deny' then would_deny is not null when 'allow' then would_allow is not null
    else would_deny is not null or would_allow is not null end`,
  report: ':report in (would_deny, would_allow)',
  fromMs: 'request_id >= :from',
  toMs: 'request_id < :to',
};

/**
 * Lists recorded decisions, newest first.
 * @param page its position is the request id of the previous row
 */
export async function listRecent(
  q: Queryable,
  scope: TenantScope,
  filter: RecentFilter,
  page: Page,
  nowMs: number,
): Promise<readonly StoredDecision[]> {
  const { sql, bindings } = matching(scope, filter, nowMs);
  const after = page.after?.[0];
  const { rows } = await q.raw<{ rows: StoredDecision[] }>(
    `select ${ROWS} ${sql} ${after === undefined ? '' : 'and request_id < :after'} order by request_id desc limit :take`,
    { ...bindings, ...(after === undefined ? {} : { after }), take: page.take },
  );
  return rows;
}

export async function countRecent(
  q: Queryable,
  scope: TenantScope,
  filter: RecentFilter,
  nowMs: number,
  most: number,
): Promise<number> {
  const { sql, bindings } = matching(scope, filter, nowMs);
  return countUpTo(q, { sql: `select ${sql}`, bindings }, most);
}

/** Returns the conditions of a list, for all of its pages: a statement without its beginning. */
function matching(scope: TenantScope, filter: RecentFilter, nowMs: number): NamedQuery {
  const { shadow, ...others } = filter;
  const { fromMs, toMs, ...values } = others;
  const conditions = [
    scopeCondition(scope, 'tenant_id'),
    'request_id >= :oldest',
    ofMode(shadow),
    ...filterConditions(CONDITIONS, others),
  ];
  return {
    sql: `from recent_decisions as recent where ${conditions.join(' and ')}`,
    bindings: {
      ...scopeBinding(scope),
      ...values,
      ...(fromMs === undefined ? {} : { from: firstIdOf(fromMs) }),
      ...(toMs === undefined ? {} : { to: firstIdOf(toMs) }),
      oldest: firstIdOf(nowMs - KEPT_MS),
    },
  };
}

/** A literal condition, because the index of decisions in shadow mode is partial. */
function ofMode(shadow: boolean): string {
  return shadow ? 'shadow' : 'not shadow';
}

/** Returns the decision of a request; undefined if it is not recorded, too old, or outside the scope. */
export async function findRecent(
  q: Queryable,
  scope: TenantScope,
  requestId: RequestId,
  nowMs: number,
): Promise<StoredDecision | undefined> {
  const { rows } = await q.raw<{ rows: StoredDecision[] }>(
    `select ${ROWS} from recent_decisions as recent where request_id = :requestId and request_id >= :oldest and ${scopeCondition(scope, 'tenant_id')}`,
    { ...scopeBinding(scope), requestId, oldest: firstIdOf(nowMs - KEPT_MS) },
  );
  return rows[0];
}

/** A number of groups of one tenant and outcome, each with the same number of rows. */
export interface GroupSize {
  readonly rows: number;
  readonly groups: number;
}

/**
 * Returns the number of rows that each group may keep: the largest number within the bounds. Large groups shrink first,
 * so a group smaller than the result loses nothing.
 */
export function fairCap(sizes: readonly GroupSize[], { perGroup, total }: RecentBounds): number {
  const ascending = sizes.toSorted((left, right) => left.rows - right.rows);
  let groups = ascending.reduce((sum, size) => sum + size.groups, 0);
  let left = total;
  for (const size of ascending) {
    // All groups from this one on have at least `size.rows`.
    if (size.rows >= perGroup || size.rows * groups > left) break;
    left -= size.rows * size.groups;
    groups -= size.groups;
  }
  return groups === 0 ? perGroup : Math.min(perGroup, Math.floor(left / groups));
}

/**
 * Removes decisions of more than 24 hours before `nowMs`, by the database's clock. Returns the number of removed rows,
 * at most `batch`.
 */
export async function pruneOldRecent(q: Queryable, nowMs: number, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from recent_decisions where request_id = any(array(
       select request_id from recent_decisions where request_id < :oldest order by request_id limit :batch))`,
    { oldest: firstIdOf(nowMs - KEPT_MS), batch },
  );
  return rowCount;
}

/** Decisions with bounds of their own. */
type RecentKind = 'sampled' | 'first_allows' | 'reported' | 'shadow';

const REPORTED = '(would_deny is not null or would_allow is not null)';

const OF_KIND: Readonly<Record<RecentKind, string>> = {
  sampled: `first_of is null and not shadow and not ${REPORTED}`,
  first_allows: 'first_of is not null',
  reported: `first_of is null and not shadow and ${REPORTED}`,
  shadow: 'shadow',
};

/**
 * Removes the oldest decisions of groups that exceed the bounds of their kind. Returns the number of removed rows, at
 * most `batch`.
 */
export async function pruneExcessRecent(
  q: Queryable,
  kind: RecentKind,
  bounds: RecentBounds,
  batch: number,
): Promise<number> {
  const ofKind = OF_KIND[kind];
  const { rows: sizes } = await q.raw<{ rows: GroupSize[] }>(
    `select rows, count(*)::int as groups from (
       select count(*)::int as rows from recent_decisions where ${ofKind} group by tenant_id, outcome) as sized group by rows`,
    {},
  );
  const cap = fairCap(sizes, bounds);
  if (sizes.every(({ rows }) => rows <= cap)) return 0;
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from recent_decisions where request_id = any(array(
       select excess.request_id
       from (select tenant_id, outcome, count(*) as rows from recent_decisions where ${ofKind}
         group by tenant_id, outcome having count(*) > :cap) as large
       cross join lateral (
         select request_id from recent_decisions of_group
         where of_group.tenant_id = large.tenant_id and of_group.outcome = large.outcome and ${ofKind}
         order by request_id limit large.rows - :cap) as excess
       limit :batch))`,
    { cap, batch },
  );
  return rowCount;
}

/** As many as the decisions in shadow mode of all tenants, and of another gate that denies most requests. */
const MAX_OTHER_DENIALS = 200_000;

/**
 * Removes the other gate's denials of more than 24 hours ago, and those beyond the newest `most` that belong to no
 * recorded decision. So a flood of denied requests takes no outcome from the decisions of other tenants.
 * @returns the number of removed rows, at most `batch`
 */
export async function pruneOtherDenials(q: Queryable, batch: number, most = MAX_OTHER_DENIALS): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from other_gate_denials where client_request_id = any(array(
       select client_request_id from other_gate_denials denied
       where time < clock_timestamp() - interval '${RECENT_HOURS} hours'
         or (time < (select time from other_gate_denials order by time desc offset :most limit 1)
           and not exists (select from recent_decisions kept where kept.client_request_id = denied.client_request_id))
       order by time limit :batch))`,
    { batch, most },
  );
  return rowCount;
}

/** Recorded decisions in shadow mode with the same outcome and reason. */
export interface TrialGroup {
  readonly outcome: 'allow' | 'deny';
  readonly code: string;
  readonly policy: string | null;
  readonly count: number;
  /** The decisions that differ from those of the other gate. */
  readonly differing: number;
}

/** Recorded denials in shadow mode of one principal. */
export interface DeniedPrincipal {
  readonly type: 'user' | 'api_key' | null;
  readonly id: string | null;
  readonly count: number;
  readonly differing: number;
}

export interface TrialGroups {
  /** The largest first. */
  readonly reasons: readonly TrialGroup[];
  /** The largest first, at most `most`. */
  readonly principals: readonly DeniedPrincipal[];
}

/** Groups the recorded decisions in shadow mode of a time span. */
export async function readTrial(
  q: Queryable,
  scope: TenantScope,
  filter: Pick<RecentFilter, 'fromMs' | 'toMs'>,
  nowMs: number,
  most: number,
): Promise<TrialGroups> {
  const { sql, bindings } = matching(scope, { ...filter, shadow: true }, nowMs);
  const counts = `count(*)::int as count, (count(*) filter (where ${DIFFERS}))::int as differing`;
  const [reasons, principals] = await Promise.all([
    q.raw<{ rows: TrialGroup[] }>(
      `select outcome, code, policy, ${counts} ${sql} group by outcome, code, policy order by count desc, code, policy`,
      bindings,
    ),
    q.raw<{ rows: DeniedPrincipal[] }>(
      `select principal_type as type, principal_id as id, ${counts} ${sql} and outcome = 'deny'
       group by principal_type, principal_id order by count desc, principal_id limit :most`,
      { ...bindings, most },
    ),
  ]);
  return { reasons: reasons.rows, principals: principals.rows };
}
