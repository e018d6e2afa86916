/** The time after which other work runs. */
const SLICE_MS = 5;

/**
 * Returns a function for long work, to await between its pieces. It lets other work run if 5 ms have passed since it
 * last did.
 */
export function pauses(): () => Promise<void> {
  let sliceEndsMs = performance.now() + SLICE_MS;
  return async () => {
    if (performance.now() <= sliceEndsMs) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
    sliceEndsMs = performance.now() + SLICE_MS;
  };
}
