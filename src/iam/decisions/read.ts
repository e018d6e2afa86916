/** What was decided lately, by the minute: how many requests came to each code on each route. */

import { Refusal } from '../../domain/errors.ts';
import { type OutcomeKind, outcomeKind } from '../../telemetry/check-outcome.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { type ListQuery, paged, scopeOf } from '../list/list.ts';
import {
  type DecisionPosition,
  type DecisionRow,
  type DecisionSum,
  type Grouping,
  type Interval,
  listDecisions,
  type Span,
  sumDecisions,
} from './count-queries.ts';
import { instantIn } from './instant.ts';

export interface DecisionsQuery extends ListQuery {
  /** RFC 3339: from the minute that it is in. Undefined = an hour before `to`. */
  readonly from?: string;
  /** RFC 3339: up to then, a minute that begins then left out. Undefined = now. */
  readonly to?: string;
  /** Default: minute. */
  readonly interval?: Interval;
  /** Default: code and route. */
  readonly group_by?: Exclude<Grouping['by'], 'code_and_route'>;
}

export interface DecisionsOfMinute {
  /** The start of the minute, hour or day. */
  readonly minute: string;
  readonly outcome: OutcomeKind;
  /** null in groups by outcome. */
  readonly code: string | null;
  /** Method and path of the route table; null if no route was matched or needed, and in groups by code or outcome. */
  readonly route: string | null;
  readonly count: number;
}

export interface DecisionsResource {
  readonly from: string;
  readonly to: string;
  /** `*` for all tenants together, and for those whom nobody knows. */
  readonly tenant_id: string;
  readonly interval: Interval;
  readonly total: Readonly<Record<OutcomeKind, number>>;
  readonly data: readonly DecisionsOfMinute[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** @throws Refusal `invalid_parameter` for an instant that does not exist, and a cursor that is none or another list's */
export async function readDecisions(
  parts: Pick<AdminParts, 'db'>,
  caller: Caller,
  query: DecisionsQuery,
): Promise<DecisionsResource> {
  const { knex } = parts.db;
  const scope = scopeOf(caller);
  const { interval = 'minute', group_by: by = 'code_and_route' } = query;
  const grouping: Grouping = { interval, by };
  const span = spanOf(query, caller.nowMs);
  const [list, sums] = await Promise.all([
    paged<DecisionRow, DecisionsOfMinute>(
      caller,
      'decisions',
      query,
      async ({ after, take }) =>
        listDecisions(knex, scope, span, grouping, { after: after && positionIn(after), take }),
      ({ minute, code, route }) => [minute.toISOString(), `${code} ${route}`],
      (row) => shown(row, grouping),
    ),
    sumDecisions(knex, scope, span),
  ]);
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    tenant_id: caller.everyTenant ? '*' : caller.tenant,
    interval,
    total: totalOf(sums),
    data: list.data,
    has_more: list.has_more,
    next_cursor: list.next_cursor,
  };
}

function spanOf({ from, to }: DecisionsQuery, nowMs: number): Span {
  const toMs = to === undefined ? nowMs : instantIn('to', to);
  const fromMs = from === undefined ? toMs - HOUR_MS : instantIn('from', from);
  return { from: new Date(Math.floor(fromMs / MINUTE_MS) * MINUTE_MS), to: new Date(toMs) };
}

const MINUTE = /^\d{4}-\d\d-\d\dT\d\d:\d\d:00\.000Z$/;

/** As a row's position is written: a cursor that somebody made up may say anything. */
function positionIn([minute = '', what]: readonly string[]): DecisionPosition {
  if (what === undefined || !MINUTE.test(minute) || Number.isNaN(Date.parse(minute))) {
    throw new Refusal(
      'invalid_parameter',
      'The cursor does not belong to this list. Use next_cursor of the previous page.',
      {
        param: 'cursor',
      },
    );
  }
  return { minute: new Date(minute), what };
}

function shown({ minute, code, route, count }: DecisionRow, { by }: Grouping): DecisionsOfMinute {
  return {
    minute: minute.toISOString(),
    outcome: outcomeKind(code),
    code: by === 'outcome' ? null : code,
    route: route === '' ? null : route,
    count,
  };
}

function totalOf(sums: readonly DecisionSum[]): DecisionsResource['total'] {
  const total = { allow: 0, deny: 0, fault: 0 };
  for (const { code, count } of sums) total[outcomeKind(code)] += count;
  return total;
}
