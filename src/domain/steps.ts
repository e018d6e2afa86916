/** Work in steps, so that other code can run between two of them. */

/** Each `next()` does far less than a millisecond of work; the last one returns the result. Any step may throw. */
export type Steps<T> = Generator<undefined, T>;

export function finish<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** Small work, as one step. */
export function* inOneStep<T>(work: () => T): Steps<T> {
  yield;
  return work();
}
