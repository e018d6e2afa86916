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

/** What is known of recent decisions. */
export type Recent = { readonly kind: 'read'; readonly samples: readonly Sample[] } | { readonly kind: 'refused' };

/** Of each outcome. */
const MAX_RECENT = 25;

/** Reads the newest denials and allows with their requests. Decisions without a principal, or without an exact record, are left out. */
export async function recentSamples(tenant: Tenant): Promise<Recent> {
  try {
    const lists = await Promise.all(
      (['deny', 'allow'] as const).map((outcome) =>
        tenant.client.request('GET', '/v1/iam/decisions/recent', { query: { outcome, limit: MAX_RECENT } }),
      ),
    );
    const ids = lists.flatMap(({ data }) => data.map((row) => row.request_id));
    const samples = await inTurns(ids, (id) => sampleOf(tenant, id));
    return { kind: 'read', samples: samples.filter((sample) => sample !== undefined) };
  } catch (error) {
    if (error instanceof ProblemError && error.status === 403) return { kind: 'refused' };
    throw error;
  }
}

/** @returns undefined if the decision is no longer kept, or cannot be asked about again */
async function sampleOf({ client }: Tenant, id: string): Promise<Sample | undefined> {
  try {
    const path = { request_id: id };
    const { outcome, principal, request } = await client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path });
    return principal === null || request === null ? undefined : { id, source: outcome, principal, request };
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined;
    throw error;
  }
}
