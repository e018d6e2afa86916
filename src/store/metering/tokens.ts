/** Holds on token budgets, with the reservations that other processes settled or renewed: one statement for a batch. */

import type { HoldBatch, HoldResult } from '../../metering/ports.ts';
import { firstRow, numberIn, numbersIn, type Queries, rowsIn } from './statement.ts';

/** The largest number of rows of settlements, and of renewals, in one answer. */
const MAX_ROWS = 200;

const HOLD = {
  name: 'metering_hold_tokens',
  text: `
    with granted as materialized (
      select * from metering_hold_tokens($1, $2, $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
    ), told as materialized (
      select coalesce(json_agg(json_build_object('given', given, 'own', own, 'used', least(used, ${Number.MAX_SAFE_INTEGER}), 'settled', settled) order by ask),
        '[]'::json) as grants
      from granted
    ), forgotten as (
      delete from settlement_news where holder = $1 and id = any ($9::bigint[])
    ), news as (
      select id, counters, totals, costs from settlement_news where holder = $1 and id <> all ($9::bigint[]) order by id limit ${MAX_ROWS}
    ), renewals as (
      delete from reservation_renewals where id = any (array(
        select id from reservation_renewals where holder = $1 order by id limit ${MAX_ROWS} for update skip locked))
      returning counters, greatest(0, extract(epoch from clock_timestamp() - heard_at))::float8 * 1000 as age_ms
    )
    select told.grants, metering_live_holders() as holders,
      (select coalesce(json_agg(json_build_object('id', id, 'counters', counters, 'totals', totals,
        'costs', coalesce(costs, array_fill(0, array[cardinality(totals)]))) order by id), '[]'::json)
       from news) as news,
      (select coalesce(json_agg(json_build_object('counters', counters, 'age_ms', age_ms)), '[]'::json) from renewals) as renewals
    from told`,
};

export async function holdTokens(
  db: Queries,
  { processId, sequence, requests, acked }: HoldBatch,
): Promise<HoldResult> {
  const row = await firstRow(db, {
    ...HOLD,
    values: [
      processId,
      sequence,
      requests.map(({ tenant }) => tenant),
      requests.map(({ period }) => period),
      requests.map(({ quota }) => quota),
      requests.map(({ requested }) => requested),
      requests.map(({ changes }) => changes),
      requests.map(({ confirmed }) => confirmed),
      acked,
    ],
  });
  return {
    grants: rowsIn(row, 'grants').map((grant) => ({
      granted: numberIn(grant, 'given'),
      held: numberIn(grant, 'own'),
      used: numberIn(grant, 'used'),
      spent: numberIn(grant, 'settled'),
    })),
    settlements: rowsIn(row, 'news').map((news) => ({
      id: numberIn(news, 'id'),
      counters: numbersIn(news, 'counters'),
      totals: numbersIn(news, 'totals'),
      costs: numbersIn(news, 'costs'),
    })),
    renewals: rowsIn(row, 'renewals').map((renewal) => ({
      counters: numbersIn(renewal, 'counters'),
      ageMs: numberIn(renewal, 'age_ms'),
    })),
    processes: numberIn(row, 'holders'),
  };
}
