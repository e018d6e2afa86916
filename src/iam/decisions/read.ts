/** Decisions of the last days, counted by the minute: the requests of each code on each route. */

import { outcomeKind } from '../../telemetry/check-outcome.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { badCursor, paged, scopeOf } from '../list/list.ts';
import {
  type DecisionPosition,
  type DecisionRow,
  type DecisionSum,
  type Grouping,
  listDecisions,
  sumDecisions,
  type TimeSpan,
} from './count-queries.ts';
import type { CountQuery, DecisionsOfMinute, DecisionsReport } from './schemas.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** @throws Refusal `invalid_parameter` for an invalid cursor or the cursor of another list */
export async function readDecisions(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: CountQuery,
): Promise<DecisionsReport> {
  const { knex } = parts.db;
  const scope = scopeOf(caller);
  const { interval = 'minute', group_by: by = 'code_and_route', shadow = false } = query;
  const grouping: Grouping = { shadow, interval, by };
  const span = spanOf(query, caller.nowMs, HOUR_MS);
  const [{ data, has_more, next_cursor }, sums] = await Promise.all([
    paged<DecisionRow, DecisionsOfMinute>(
      caller,
      'decisions',
      query,
      async ({ after, take }) =>
        listDecisions(knex, scope, span, grouping, { after: after && positionIn(after), take }),
      ({ minute, code, route }) => [minute.toISOString(), `${code} ${route}`],
      (row) => rowOf(row, grouping),
    ),
    sumDecisions(knex, scope, span, shadow),
  ]);
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    tenant_id: caller.everyTenant ? '*' : caller.tenant,
    interval,
    total: decisionTotals(sums),
    data: [...data],
    has_more,
    next_cursor,
  };
}

/** Returns the whole minutes from `from`, by default `defaultMs` before `to`, until `to`, by default now. */
export function spanOf({ from, to }: Pick<CountQuery, 'from' | 'to'>, nowMs: number, defaultMs: number): TimeSpan {
  const toMs = to === undefined ? nowMs : Date.parse(to);
  const fromMs = from === undefined ? toMs - defaultMs : Date.parse(from);
  return { from: new Date(Math.floor(fromMs / MINUTE_MS) * MINUTE_MS), to: new Date(toMs) };
}

const MINUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/;

/** Validates a cursor's position, because a client can make a cursor with any content. */
function positionIn([minute = '', what]: readonly string[]): DecisionPosition {
  if (what === undefined || !MINUTE.test(minute) || Number.isNaN(Date.parse(minute))) throw badCursor();
  return { minute: new Date(minute), what };
}

function rowOf({ minute, code, route, count }: DecisionRow, { by }: Grouping): DecisionsOfMinute {
  return {
    minute: minute.toISOString(),
    outcome: outcomeKind(code),
    code: by === 'outcome' ? null : code,
    route: route === '' ? null : route,
    count,
  };
}

export function decisionTotals(sums: readonly DecisionSum[]): DecisionsReport['total'] {
  const total = { allow: 0, deny: 0, fault: 0 };
  for (const { code, count } of sums) total[outcomeKind(code)] += count;
  return total;
}
