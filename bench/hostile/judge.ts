/** Says of each answer that an innocent tenant got whether it is the right decision, a wrong one, or none. */

import { codeOf, type Outcome } from './connection.ts';
import type { Expected } from './innocents.ts';

export const VERDICTS = ['right', 'wrong', 'unavailable', 'empty', 'lost'] as const;

/**
 * - `right`: the expected decision;
 * - `wrong`: another decision;
 * - `unavailable`: a 503 in Postern's form;
 * - `empty`: every other answer of 500 and above, such as Envoy's own 503;
 * - `lost`: no complete answer.
 */
export type Verdict = (typeof VERDICTS)[number];

export function judge(expected: Expected, outcome: Outcome): Verdict {
  if (outcome.kind === 'lost') return 'lost';
  if (outcome.status >= 500) return codeOf(outcome.body) === 'unavailable' ? 'unavailable' : 'empty';
  switch (expected.kind) {
    case 'allow':
      // The upstream echoes the headers that it received.
      return outcome.status === 200 && outcome.body.includes(`"x-postern-tenant":"${expected.tenant}"`)
        ? 'right'
        : 'wrong';
    case 'deny':
      return outcome.status === expected.status && codeOf(outcome.body) === expected.code ? 'right' : 'wrong';
    default:
      return expected satisfies never;
  }
}
