import { readFileSync, statSync } from 'node:fs';

const MAX_SECRET_BYTES = 65_536;

export const SECRET_FILE_EXPECTED = 'expected a readable file of at most 64 KiB';

/** Without the line end that editors add; undefined when it cannot be read. */
export function readSecret(file: string): string | undefined {
  try {
    return statSync(file).size > MAX_SECRET_BYTES ? undefined : readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch {
    return undefined;
  }
}
