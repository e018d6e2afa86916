/** Requests that a change is tried against: those that somebody gives, and those that were decided lately. */

import { ProblemError, type SimulateRequest } from '../../../../client/index.ts';
import type { Tenant } from '../../api/session.ts';
import { inTurns } from './in-turns.ts';

export type SampledRequest = Omit<SimulateRequest, 'policies' | 'roles' | 'credential'>;

export interface Sample {
  readonly id: string;
  readonly source: 'given' | 'deny' | 'allow';
  readonly principal: { readonly type: 'user' | 'api_key'; readonly id: string };
  readonly request: SampledRequest;
}

/** What is known of recent decisions. absent: the server records none. */
export type Recent =
  | { readonly kind: 'read'; readonly samples: readonly Sample[] }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused' };

/** Of each outcome. */
const MAX_RECENT = 25;

/** Reads the newest denials and allows with their requests. Decisions without a principal, or without an exact record, are left out. */
export async function recentSamples({ client }: Tenant, signal: AbortSignal): Promise<Recent> {
  try {
    const lists = await Promise.all(
      (['deny', 'allow'] as const).map((outcome) =>
        client.request('GET', '/v1/iam/decisions/recent', { query: { outcome, limit: MAX_RECENT }, signal }),
      ),
    );
    const ids = lists.flatMap(({ data }) => data.map((row) => row.request_id));
    const read = await inTurns(ids, (id) =>
      client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path: { request_id: id }, signal }),
    );
    const samples = read.flatMap(({ outcome, principal, request }, index) =>
      principal === null || request === null ? [] : [{ id: ids[index] ?? '', source: outcome, principal, request }],
    );
    return { kind: 'read', samples };
  } catch (error) {
    if (error instanceof ProblemError && (error.status === 404 || error.status === 405)) return { kind: 'absent' };
    if (error instanceof ProblemError && error.status === 403) return { kind: 'refused' };
    throw error;
  }
}
