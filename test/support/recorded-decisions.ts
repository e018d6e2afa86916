/** Decisions in the database, written as a gate writes them. */

import { randomBytes } from 'node:crypto';
import { makeId } from '../../src/domain/ids.ts';
import type { Database } from '../../src/store/database.ts';
import { RecentDecisionWriter } from '../../src/store/recent-decisions.ts';
import type { RecentDecisionRow, RecordedFacts } from '../../src/telemetry/recent-decision.ts';

export interface DecisionSpec extends Partial<Omit<RecentDecisionRow, 'facts' | 'time' | 'request_id'>> {
  /** Milliseconds since the epoch; default: now. */
  readonly atMs?: number;
  readonly facts?: Partial<RecordedFacts>;
}

/** A denied `GET /v1/nothing` of the tenant `default` without a principal. */
export function decisionRow({ atMs = Date.now(), facts, ...more }: DecisionSpec = {}): RecentDecisionRow {
  return {
    request_id: makeId('req', atMs, randomBytes(10)),
    time: new Date(atMs).toISOString(),
    tenant_id: 'default',
    outcome: 'deny',
    code: 'no_route',
    sampled: false,
    principal_type: null,
    principal_id: null,
    method: 'GET',
    path: '/v1/nothing',
    route: null,
    permission: null,
    resources: [],
    client_ip: '192.0.2.7',
    policy: null,
    detail: 'Denied in a test.',
    facts: { tenant: null, upgrade: false, reason: null, asked_tokens: null, altered: false, ...facts },
    first_of: null,
    shadow: false,
    client_request_id: null,
    would_deny: null,
    would_allow: null,
    ...more,
  };
}

export async function storeDecisions(db: Pick<Database, 'query'>, rows: readonly RecentDecisionRow[]): Promise<void> {
  const waiting = [rows];
  const failures: Error[] = [];
  const writer = new RecentDecisionWriter({
    db,
    source: { take: () => waiting.shift() ?? [], lost: () => undefined },
    flushIntervalMs: 3_600_000,
    onError: (error) => failures.push(error),
  });
  await writer.stop();
  if (failures[0] !== undefined) throw failures[0];
}

/** Stores one decision. Returns its request id. */
export async function storeDecision(db: Pick<Database, 'query'>, spec: DecisionSpec = {}): Promise<string> {
  const row = decisionRow(spec);
  await storeDecisions(db, [row]);
  return row.request_id;
}
