/**
 * Resolves at the first SIGTERM or SIGINT, or when the channel to the script that started this process closes, because
 * it was killed. The second signal ends the process at once.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (): void => {
      if (asked) process.exit(130);
      asked = true;
      resolve();
    };
    process.on('disconnect', () => resolve());
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
