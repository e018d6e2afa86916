/** Writes the result of a command to standard output. Returns the exit code of success. */
export function printed(text: string): 0 {
  process.stdout.write(text);
  return 0;
}
