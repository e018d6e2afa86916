/** Counted decisions, by the minute. */

import { scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { GroupInterval } from './schemas.ts';

/** Minutes from one instant until another, which is excluded. */
export interface TimeSpan {
  readonly from: Date;
  readonly to: Date;
}

export interface Grouping {
  /** Decisions in shadow mode, or enforced ones. */
  readonly shadow: boolean;
  readonly interval: GroupInterval;
  /** `code` sums the routes of each code, `outcome` the codes of each outcome. */
  readonly by: 'code_and_route' | 'code' | 'outcome';
}

export interface DecisionSum {
  readonly code: string;
  readonly count: number;
}

export interface DecisionRow extends DecisionSum {
  /** The start of the minute, hour or day. */
  readonly minute: Date;
  /**
   * Empty if no route matched, and in groups by code or outcome. The code of an outcome's group is one of its codes.
   */
  readonly route: string;
}

/** The row after which a page begins. */
export interface DecisionPosition {
  readonly minute: Date;
  /** Code and route. */
  readonly what: string;
}

/** Long enough for a chart of seven whole days in any time zone. */
export const KEPT_DAYS = 8;
/** Older rows are joined to rows of whole hours, which limits the rows of a busy week. */
export const MINUTES_KEPT_DAYS = 3;

const WHAT = `code || ' ' || route`;
/** One code for each outcome: `outcomeKind` reads the outcome from it. */
const CODE_OF_OUTCOME = `case when code in ('allow', 'public') then 'allow' when code = 'unavailable' then code else 'deny' end`;
const COLUMNS: Readonly<Record<Grouping['by'], string>> = {
  code_and_route: 'code, route',
  code: `code, '' as route`,
  outcome: `${CODE_OF_OUTCOME} as code, '' as route`,
};
const tableOf = (shadow: boolean): string => (shadow ? 'shadow_decision_counts' : 'decision_counts');
const COUNT = 'cast(sum(decisions) as bigint) as count';
const inSpan = (scope: TenantScope): string =>
  `minute >= :from and minute < :to and ${scopeCondition(scope, 'tenant_id')}`;

/** Lists groups in the order of time, then of code and route. */
export async function listDecisions(
  q: Queryable,
  scope: TenantScope,
  span: TimeSpan,
  { shadow, interval, by }: Grouping,
  page: { readonly after: DecisionPosition | undefined; readonly take: number },
): Promise<readonly DecisionRow[]> {
  const { after, take } = page;
  const following = after === undefined ? '' : `where (minute, ${WHAT}) > (:minute, :what)`;
  const start = interval === 'minute' ? 'minute' : `date_trunc('${interval}', minute, 'UTC')`;
  const what = COLUMNS[by];
  // Rows before the position's interval belong to earlier groups.
  const begun = after === undefined ? '' : 'and counts.minute >= :minute';
  const { rows } = await q.raw<{ rows: DecisionRow[] }>(
    `select minute, code, route, ${COUNT} from (
       select ${start} as minute, ${what}, decisions from ${tableOf(shadow)} as counts where ${inSpan(scope)} ${begun}) as started
     ${following} group by minute, code, route order by minute, ${WHAT} limit :take`,
    { ...scopeBinding(scope), ...span, ...after, take },
  );
  return rows;
}

export async function sumDecisions(
  q: Queryable,
  scope: TenantScope,
  span: TimeSpan,
  shadow: boolean,
): Promise<readonly DecisionSum[]> {
  const { rows } = await q.raw<{ rows: DecisionSum[] }>(
    `select code, ${COUNT} from ${tableOf(shadow)} where ${inSpan(scope)} group by code`,
    { ...scopeBinding(scope), ...span },
  );
  return rows;
}

/** @returns the number of deleted rows, at most `batch` */
export async function pruneDecisions(q: Queryable, shadow: boolean, batch: number): Promise<number> {
  const table = tableOf(shadow);
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from ${table} where ctid = any(array(
       select ctid from ${table} where minute < clock_timestamp() - interval '${KEPT_DAYS} days' order by minute limit :batch))`,
    { batch },
  );
  return rowCount;
}

/** Joins old rows to the row of their hour. Returns the number of joined rows, at most `batch`. */
export async function joinOldMinutes(q: Queryable, shadow: boolean, batch: number): Promise<number> {
  const table = tableOf(shadow);
  const { rows } = await q.raw<{ rows: { joined: number }[] }>(
    `with joined as (
       delete from ${table} where ctid = any(array(
         select ctid from ${table}
         where minute < clock_timestamp() - interval '${MINUTES_KEPT_DAYS} days' and minute <> date_trunc('hour', minute, 'UTC')
         order by minute limit :batch))
       returning tenant_id, date_trunc('hour', minute, 'UTC') as hour, code, route, decisions
     ), written as (
       insert into ${table} as counts (tenant_id, minute, code, route, decisions)
       select tenant_id, hour, code, route, sum(decisions) from joined
       group by tenant_id, hour, code, route order by tenant_id, hour, code, route
       on conflict (tenant_id, minute, code, route) do update set decisions = counts.decisions + excluded.decisions
     )
     select count(*)::int as joined from joined`,
    { batch },
  );
  return rows[0]?.joined ?? 0;
}
