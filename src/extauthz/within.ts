/** Waits with a bound. */

import { Fault } from '../domain/errors.ts';
import type { UnaryCall } from './grpc/methods.ts';

/** The error of a wait whose call is over, so that no caller reads an answer. */
export const CANCELLED = new Error('the call is over');

/**
 * Returns the promise's value. Rejects with a `Fault` after `maxMs` milliseconds, and with `CANCELLED` if the call
 * ends.
 */
export function waitWithin<T>(pending: Promise<T>, maxMs: number, call: UnaryCall): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      call.onCancel(undefined);
      reject(new Fault(`a check was not answered within ${Math.round(maxMs)} ms`));
    }, maxMs);
    call.onCancel(() => {
      clearTimeout(timer);
      reject(CANCELLED);
    });
    const over = (): void => {
      clearTimeout(timer);
      call.onCancel(undefined);
    };
    pending.then(
      (value) => {
        over();
        resolve(value);
      },
      (error: unknown) => {
        over();
        reject(error);
      },
    );
  });
}
