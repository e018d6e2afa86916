/** Leases of rate limits: one statement for a batch of windows. */

import type { RateLeaseRequest, RateLeaseResult } from '../../metering/ports.ts';
import { firstRow, numberIn, type Queries, rowsIn } from './statement.ts';

const LEASE = {
  name: 'metering_lease_rates',
  text: `
    with granted as materialized (
      select * from metering_lease_rates($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
    ), told as materialized (
      select coalesce(json_agg(json_build_object('given', given, 'total', total) order by ask), '[]'::json) as grants from granted
    )
    select told.grants, extract(epoch from clock_timestamp())::float8 * 1000 as now_ms, metering_live_holders() as holders,
      metering_beat($1) as beat
    from told`,
};

export async function leaseRates(
  db: Queries,
  processId: string,
  requests: readonly RateLeaseRequest[],
): Promise<RateLeaseResult> {
  const row = await firstRow(db, {
    ...LEASE,
    values: [
      processId,
      requests.map(({ subject }) => subject),
      requests.map(({ window }) => window),
      requests.map(({ limit }) => limit),
      requests.map(({ requested }) => requested),
      requests.map(({ report }) => report),
    ],
  });
  const grants = rowsIn(row, 'grants').map((grant) => ({
    granted: numberIn(grant, 'given'),
    total: numberIn(grant, 'total'),
  }));
  return { grants, nowMs: numberIn(row, 'now_ms'), processes: numberIn(row, 'holders') };
}
