/** The requests that a change is tried against: given ones and recent decisions. */

import { ProblemError, type RecentDecision, type SimulateRequest } from '../../../../client/index.ts';
import type { Tenant } from '../../api/session.ts';
import { inTurns } from './in-turns.ts';

export type SampledRequest = Omit<SimulateRequest, 'policies' | 'roles' | 'credential'>;

export interface Sample {
  readonly id: string;
  readonly source: 'given' | 'deny' | 'allow';
  readonly principal: { readonly type: 'user' | 'api_key'; readonly id: string };
  readonly request: SampledRequest;
}

export type Outcome = 'deny' | 'allow';

/** The recent decisions that are tried, and how many of each outcome the server has recorded. */
export interface ReadRecent {
  readonly kind: 'read';
  readonly samples: readonly Sample[];
  readonly recorded: Readonly<Record<Outcome, number>>;
}

export type Recent = ReadRecent | { readonly kind: 'refused' };

const OUTCOMES: readonly Outcome[] = ['deny', 'allow'];
/** The maximum for each outcome. Each sample takes two requests: one reads the recorded decision, one simulates it. */
export const MAX_TRIED = 12;
/** The number of the newest decisions of each outcome, among which the samples are chosen. */
const LOOKED_THROUGH = 100;

/**
 * Reads recent denials and allows with their requests. Decisions without a principal, or without an exact record, are
 * left out.
 */
export async function recentSamples(tenant: Tenant): Promise<Recent> {
  try {
    const [deny, allow] = await Promise.all(
      OUTCOMES.map((outcome) =>
        tenant.client.request('GET', '/v1/iam/decisions/recent', {
          query: { outcome, limit: LOOKED_THROUGH, count: true },
        }),
      ),
    );
    const ids = [...chosen(deny?.data ?? []), ...chosen(allow?.data ?? [])].map((row) => row.request_id);
    const samples = await inTurns(ids, (id) => sampleOf(tenant, id));
    return {
      kind: 'read',
      samples: samples.filter((sample) => sample !== undefined),
      recorded: { deny: totalOf(deny), allow: totalOf(allow) },
    };
  } catch (error) {
    if (error instanceof ProblemError && error.status === 403) return { kind: 'refused' };
    throw error;
  }
}

interface Page {
  readonly data: readonly unknown[];
  readonly total?: number;
}

function totalOf(page: Page | undefined): number {
  return page?.total ?? page?.data.length ?? 0;
}

type Row = Pick<RecentDecision, 'request_id' | 'principal' | 'method' | 'path' | 'resources' | 'client_ip'>;

/**
 * Returns at most 12 decisions: the newest of each different request first, then others, the newest first. Requests
 * differ in principal, method, path, resources or address. Decisions without a principal or a method are never chosen,
 * because they cannot be simulated.
 */
export function chosen<R extends Row>(rows: readonly R[]): readonly R[] {
  const known = new Set<string>();
  const first: R[] = [];
  const again: R[] = [];
  for (const row of rows) {
    const { principal, method, path, resources, client_ip } = row;
    if (principal === null || method === null) continue;
    const request = JSON.stringify([principal.id, method, path, resources, client_ip]);
    (known.has(request) ? again : first).push(row);
    known.add(request);
  }
  return [...first, ...again].slice(0, MAX_TRIED);
}

/** @returns undefined if the server no longer has the decision, or if it cannot be simulated */
async function sampleOf({ client }: Tenant, id: string): Promise<Sample | undefined> {
  try {
    const path = { request_id: id };
    const { outcome, principal, request } = await client.request('GET', '/v1/iam/decisions/recent/{request_id}', {
      path,
    });
    return principal === null || request === null ? undefined : { id, source: outcome, principal, request };
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined;
    throw error;
  }
}
