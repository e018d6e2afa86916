/**
 * Resolves at the first SIGTERM or SIGINT, or when the script that started this process was killed: the channel to it closes then.
 * The second signal ends the process at once.
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
