/** `postern export`: writes what is in the database as a file that `postern apply` takes. */

import { exportSetup } from '../iam/setup/export.ts';
import { MAX_FILE_BYTES } from './apply-file.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { setupWriter } from './export-file.ts';
import { tenantOption } from './tenant-option.ts';
import { withStore } from './with-store.ts';

/** Reading a whole tenant's users takes longer than a request may. */
const STATEMENT_TIMEOUT_MS = 60_000;
const MIB = 1_048_576;

/** Nothing is written before everything is read: half an export looks like a whole one, and pruning by it would delete the other half. */
export async function exportCommand(args: Arguments): Promise<number> {
  if (args.words.length > 0) throw new UsageError('export accepts no file name. It writes to standard output.');
  const options = { tenant: tenantOption(args), users: !args.flag('without-users') };
  const parts = await withStore(args, async ({ db }) => {
    const patient = db.reopen({ queryTimeoutMs: STATEMENT_TIMEOUT_MS, poolMax: 1 });
    const texts: Buffer[] = [];
    const write = setupWriter();
    try {
      await exportSetup(patient, options, (part) => void texts.push(Buffer.from(write(part))));
    } finally {
      await patient.close();
    }
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

/** Resolves when it is out of our hands, so that a reader may be slow. */
function put(bytes: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => (error ? reject(error) : resolve()));
  });
}
