/** Decides requests twice, as things are and with a proposed policy, and says whose outcome differs. */

import { type NewPolicy, ProblemError } from '../../../../client/index.ts';
import type { Tenant } from '../../api/session.ts';
import { inTurns } from './in-turns.ts';
import type { Sample } from './samples.ts';

export type Change = 'newly_denied' | 'newly_allowed' | 'as_before';

export interface Simulated {
  readonly sample: Sample;
  readonly change: Change;
  readonly outcome: 'allow' | 'deny';
  /** The policy that denies with the proposal; null: none does. */
  readonly policy: string | null;
}

export interface SimulationResult {
  readonly simulated: readonly Simulated[];
  /** Requests that could not be simulated, such as those of a user who is gone. */
  readonly failed: number;
}

/** @throws ProblemError if the proposal itself is refused */
export async function simulate(
  { client }: Tenant,
  policy: NewPolicy,
  samples: readonly Sample[],
): Promise<SimulationResult> {
  const results = await inTurns(samples, async (sample): Promise<Simulated | undefined> => {
    try {
      const body = { ...sample.request, policies: [policy] };
      const { decision, policy: by, current } = await client.request('POST', '/v1/iam/explain/simulate', { body });
      return { sample, change: changeOf(current.decision, decision), outcome: decision, policy: by };
    } catch (error) {
      if (error instanceof ProblemError && isOfSample(error)) return undefined;
      throw error;
    }
  });
  const simulated = results.filter((result) => result !== undefined);
  return { simulated, failed: results.length - simulated.length };
}

/**
 * Reports whether the error is about the sample: its subject was deleted, or its request cannot be simulated. Other
 * errors are about the proposal.
 */
function isOfSample(error: ProblemError): boolean {
  if (error.status === 404) return true;
  return error.status === 422 && error.errors.every(({ path }) => !path.startsWith('/policies'));
}

function changeOf(before: 'allow' | 'deny', after: 'allow' | 'deny'): Change {
  if (before === after) return 'as_before';
  return after === 'deny' ? 'newly_denied' : 'newly_allowed';
}

/** The requests of one user or key that change in one way. */
export interface Group {
  readonly principal: Sample['principal'];
  readonly change: Change;
  /** At least one, in the order of the samples. */
  readonly results: readonly Simulated[];
}

const ORDER: readonly Change[] = ['newly_denied', 'newly_allowed', 'as_before'];

/** Groups by user and key, newly denied ones first. */
export function groupsOf(simulated: readonly Simulated[]): readonly Group[] {
  const groups = new Map<string, { principal: Sample['principal']; change: Change; results: Simulated[] }>();
  for (const result of simulated) {
    const { sample, change } = result;
    const key = `${change} ${sample.principal.id}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { principal: sample.principal, change, results: [result] });
    else group.results.push(result);
  }
  return [...groups.values()].sort((left, right) => ORDER.indexOf(left.change) - ORDER.indexOf(right.change));
}
