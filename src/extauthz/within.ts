/** Waiting, with an end. */

import { Fault } from '../domain/errors.ts';

/** The promise's value, or a fault once `maxMs` milliseconds have passed. */
export function within<T>(pending: Promise<T>, maxMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Fault(`a look-up took longer than ${maxMs} ms`)), maxMs);
    pending.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
