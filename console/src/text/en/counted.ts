/** `1 request`, `2 requests`: a number as it is shown, and a noun with a regular plural. */
export function counted(shown: string, noun: string): string {
  return `${shown} ${noun}${shown === '1' ? '' : 's'}`;
}
