/** The usage of one calendar month: sums, in total and by model, key, user or day. */

import { Fault } from '../../domain/errors.ts';
import { type Page, scopeBinding, scopeCondition, type TenantScope } from '../../store/paging.ts';
import type { Queryable } from '../../store/queryable.ts';
import type { UsageGroup, UsageSums } from './schemas.ts';

export interface UsageGroupRow extends UsageSums {
  /** A model, the id of a key or user, or a day; empty = none. */
  readonly member: string;
}

export interface UsageMonth {
  readonly year: number;
  /** 1 to 12 */
  readonly month: number;
}

const SUMS = ['requests', 'prompt_tokens', 'completion_tokens', 'cached_tokens', 'total_tokens', 'estimated_tokens']
  .map((column) => `cast(coalesce(sum(${column}), 0) as bigint) as ${column}`)
  .join(', ');

/** The source of each group: the few rows of each model and day, or, page by page, those of each key and user. */
const BY_DAY = 'usage_by_model where day >= :from and day < :to';
const BY_MONTH = 'usage_daily where usage_month(day) = :month';
const SOURCES: Readonly<Record<UsageGroup, { readonly rows: string; readonly member: string }>> = {
  model: { rows: BY_DAY, member: 'model collate "C"' },
  day: { rows: BY_DAY, member: `to_char(day, 'YYYY-MM-DD') collate "C"` },
  key: { rows: BY_MONTH, member: 'key_id collate "C"' },
  user: { rows: BY_MONTH, member: 'user_id collate "C"' },
};

export async function sumUsage(q: Queryable, scope: TenantScope, month: UsageMonth): Promise<UsageSums> {
  const { rows } = await q.raw<{ rows: UsageSums[] }>(
    `select ${SUMS} from ${BY_DAY} and ${scopeCondition(scope, 'tenant_id')}`,
    bindingsOf(scope, month),
  );
  const [sums] = rows;
  if (sums === undefined) throw new Fault('the database returned no row for a sum');
  return sums;
}

/** Returns the groups in the order of their members. */
export async function listUsage(
  q: Queryable,
  scope: TenantScope,
  month: UsageMonth,
  group: UsageGroup,
  page: Page,
): Promise<readonly UsageGroupRow[]> {
  const { rows: source, member } = SOURCES[group];
  const [after] = page.after ?? [];
  const following = after === undefined ? '' : `and ${member} > :after`;
  const { rows } = await q.raw<{ rows: UsageGroupRow[] }>(
    `select ${member} as member, ${SUMS} from ${source} and ${scopeCondition(scope, 'tenant_id')} ${following}
     group by ${member} order by ${member} limit :take`,
    { ...bindingsOf(scope, month), ...(after === undefined ? {} : { after }), take: page.take },
  );
  return rows;
}

function bindingsOf(scope: TenantScope, { year, month }: UsageMonth) {
  const next = month === 12 ? { year: year + 1, month: 1 } : { year, month: month + 1 };
  return {
    ...scopeBinding(scope),
    month: year * 12 + month,
    from: firstDay(year, month),
    to: firstDay(next.year, next.month),
  };
}

function firstDay(year: number, month: number): string {
  return `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-01`;
}
