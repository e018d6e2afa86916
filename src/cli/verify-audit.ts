/** `postern verify-audit`: checks that the audit log was not changed. Servers may run at the same time. */

import { retiredAuditMacs } from '../iam/auth/retired-audit-keys.ts';
import { auditMac, otherAuditMac } from '../server/audit.ts';
import { type Anchor, type Verification, verifyAudit } from '../store/audit-verify.ts';
import { checkSecretKey } from '../store/meta.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { withStore } from './with-store.ts';

/** The exit code is 0 if the chain is intact, otherwise 1. */
export async function verifyAuditCommand(args: Arguments): Promise<number> {
  const anchor = anchorOf(args.value('anchor'));
  const found = await withStore(args, async (store) => {
    await checkSecretKey(store.db, store.secretKey, false);
    return await verifyAudit(store.db, auditMac(store), anchor, {
      other: otherAuditMac(store),
      retired: await retiredAuditMacs(store.db.knex, store.secretKey),
    });
  });
  process.stdout.write(`${linesOf(found).join('\n')}\n`);
  return found.broken === undefined ? 0 : 1;
}

function anchorOf(text: string | undefined): Anchor | undefined {
  if (text === undefined) return undefined;
  const [, seq, hash] = /^([1-9]\d{0,14}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (seq === undefined || hash === undefined) {
    throw new UsageError(
      `--anchor ${text} is not a seal. Give the number of the seal, a colon and its 64 hexadecimal digits.`,
    );
  }
  return { seq: Number(seq), hash };
}

function linesOf({ broken, damaged, rows, seals, removed, unsealed, late, newest }: Verification): readonly string[] {
  const where = broken?.row === undefined ? '' : ` at row ${broken.row}`;
  return [
    `Rows checked: ${rows + damaged}, in ${seals} seals.`,
    `Not sealed yet: ${unsealed}.`,
    ...(removed === 0
      ? []
      : [`Removed because of their age (audit.retention): ${removed} rows. The chain records the removal.`]),
    ...(late.rows === 0
      ? []
      : [
          `Sealed more than an hour after they were written: ${late.rows} rows, starting with row ${late.first}. Check that a server was running at that time.`,
        ]),
    ...(newest === undefined ? [] : [`Newest seal checked: ${newest.seq}:${newest.hash}`]),
    ...(damaged === 0 ? [] : [`Rows that were changed or removed after they were sealed: ${damaged}.`]),
    broken === undefined ? 'The chain is intact.' : `The chain is broken${where}: ${broken.what}.`,
  ];
}
