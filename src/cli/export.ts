/** `postern export`: writes the contents of the database as a file for `postern apply`. */

import { exportSetup } from '../iam/setup/export.ts';
import { MAX_FILE_BYTES } from './apply-file.ts';
import { type Arguments, tenantOption, UsageError } from './arguments.ts';
import { setupWriter } from './export-file.ts';
import { withLongTimeout, withStore } from './with-store.ts';

const MIB = 1_048_576;

/** Writes after it has read everything: a truncated export looks complete, and pruning by it would delete the rest. */
export async function exportCommand(args: Arguments): Promise<number> {
  if (args.words.length > 0) throw new UsageError('export accepts no file name. It writes to standard output.');
  const options = { tenant: tenantOption(args), users: !args.flag('without-users') };
  const parts = await withStore(args, async ({ db }) => {
    const texts: Buffer[] = [];
    const write = setupWriter();
    await withLongTimeout(db, 1, (longTimeoutDb) =>
      exportSetup(longTimeoutDb, options, (part) => void texts.push(Buffer.from(write(part)))),
    );
    return texts;
  });
  for (const part of parts) await put(part);
  const size = parts.reduce((sum, { length }) => sum + length, 0);
  if (size > MAX_FILE_BYTES) {
    const [has, takes] = [Math.ceil(size / MIB), MAX_FILE_BYTES / MIB];
    process.stderr.write(
      `warning: the export has ${has} MiB, and postern apply accepts at most ${takes} MiB. Export each tenant by itself with --tenant.\n`,
    );
  }
  return 0;
}

/** Resolves when standard output has taken the bytes, so that a slow reader does not fill the memory. */
function put(bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
