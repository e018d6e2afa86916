/** `Prefer: wait=applied` (RFC 7240): the server answers a write after every live replica has applied it. */

import type { AppliedByReplicas } from '../store/replicas.ts';
import type { Answer, Endpoint } from './endpoint.ts';
import { headerList } from './headers.ts';

/** Waits for a bounded time until every live replica has applied everything committed before. Never rejects. */
export type AppliedEverywhere = () => Promise<AppliedByReplicas>;

const WAIT_APPLIED = /^wait\s*=\s*(?:applied|"applied")\s*(?:;|$)/i;

/**
 * Waits if the request prefers it and changed something. Headers of the response report the result, because RFC 7240
 * defines none for it.
 */
export async function withPreference(
  answer: Answer,
  endpoint: Pick<Endpoint, 'method'>,
  rawHeaders: readonly string[],
  appliedEverywhere: AppliedEverywhere | undefined,
): Promise<Answer> {
  const isWrite = endpoint.method !== 'GET' && answer.status < 300 && answer.isFutile !== true;
  if (
    !isWrite ||
    appliedEverywhere === undefined ||
    !headerList(rawHeaders, 'prefer').some((each) => WAIT_APPLIED.test(each))
  ) {
    return answer;
  }
  const applied = await appliedEverywhere();
  return { ...answer, headers: { ...answer.headers, ...headersOf(applied) } };
}

function headersOf(applied: AppliedByReplicas): Readonly<Record<string, string>> {
  switch (applied.kind) {
    case 'applied':
      return { 'preference-applied': 'wait=applied' };
    case 'partial':
      return {
        'preference-applied': 'wait=partial',
        ...(applied.replicas === undefined ? {} : { 'x-postern-pending-replicas': String(applied.replicas) }),
      };
    default:
      return applied satisfies never;
  }
}
