/** What the gate decided, by the minute. */

import type { Queryable } from '../queryable.ts';
import { scopeBinding, scopeCondition, type TenantScope } from './rows.ts';

/** Minutes from one instant to another, the second left out. */
export interface Span {
  readonly from: Date;
  readonly to: Date;
}

export interface DecisionSum {
  readonly code: string;
  readonly count: number;
}

export interface DecisionRow extends DecisionSum {
  readonly minute: Date;
  /** Empty where none was matched. */
  readonly route: string;
}

/** Where a page begins: behind this row. */
export interface DecisionPosition {
  readonly minute: Date;
  /** Code and route. */
  readonly what: string;
}

/** Long enough to look back over a weekend. */
export const KEPT_DAYS = 3;

const WHAT = `code || ' ' || route`;
const COUNT = 'cast(sum(decisions) as bigint) as count';
const inSpan = (scope: TenantScope): string => `minute >= :from and minute < :to and ${scopeCondition(scope, 'tenant_id')}`;

/** In the order of minutes, then of code and route. */
export async function listDecisions(
  q: Queryable,
  scope: TenantScope,
  span: Span,
  page: { readonly after: DecisionPosition | undefined; readonly take: number },
): Promise<readonly DecisionRow[]> {
  const { after, take } = page;
  const following = after === undefined ? '' : `and (minute, ${WHAT}) > (:minute, :what)`;
  const { rows } = await q.raw<{ rows: DecisionRow[] }>(
    `select minute, code, route, ${COUNT} from decision_counts where ${inSpan(scope)} ${following}
     group by minute, code, route order by minute, ${WHAT} limit :take`,
    { ...scopeBinding(scope), ...span, ...after, take },
  );
  return rows;
}

export async function sumDecisions(q: Queryable, scope: TenantScope, span: Span): Promise<readonly DecisionSum[]> {
  const { rows } = await q.raw<{ rows: DecisionSum[] }>(
    `select code, ${COUNT} from decision_counts where ${inSpan(scope)} group by code`,
    { ...scopeBinding(scope), ...span },
  );
  return rows;
}

/** @returns how many rows are gone, at most `batch` */
export async function pruneDecisions(q: Queryable, batch: number): Promise<number> {
  const { rowCount } = await q.raw<{ rowCount: number }>(
    `delete from decision_counts where ctid = any(array(
       select ctid from decision_counts where minute < clock_timestamp() - interval '${KEPT_DAYS} days' order by minute limit :batch))`,
    { batch },
  );
  return rowCount;
}
