/** Work cut into steps, so that the code that runs it can do something else between two of them. */

/** Each `next()` does a small part, far below a millisecond of work; the last one returns the result. May throw at any step. */
export type Steps<T> = Generator<undefined, T>;

/** Runs all steps at once and returns their result. */
export function finish<T>(steps: Steps<T>): T {
  for (let step = steps.next(); ; step = steps.next()) if (step.done === true) return step.value;
}

/** Small work, as one step. */
export function* inOneStep<T>(work: () => T): Steps<T> {
  yield;
  return work();
}
