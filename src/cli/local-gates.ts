/** In the API process: asks the supervisor to have every gate of this server apply a change. */

import type { LocalGates } from '../server/applied.ts';
import type { Applied, ApplyRequest } from './process-messages.ts';

/** A write is answered without a gate that takes longer. */
const MAX_WAIT_MS = 1_000;

export interface SupervisedGates extends LocalGates {
  /** Takes the supervisor's answer. */
  answered(answer: Applied): void;
  /** Writes answered before every gate had applied them. */
  readonly timeouts: number;
}

export function supervisedGates(send: (request: ApplyRequest) => void): SupervisedGates {
  const waiting = new Map<number, () => void>();
  let requests = 0;
  let timeouts = 0;
  return {
    applied(through) {
      const request = requests++;
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          waiting.delete(request);
          resolve();
        };
        const timer = setTimeout(() => {
          timeouts++;
          end();
        }, MAX_WAIT_MS);
        waiting.set(request, end);
        send({ kind: 'apply', request, through: through ?? null });
      });
    },
    answered: ({ request }) => waiting.get(request)?.(),
    get timeouts() {
      return timeouts;
    },
  };
}
