/** A log to seal and to tamper with: a key, rows as use cases write them, and the sealer without its clock. */

import { createHmac } from 'node:crypto';
import type { Mac } from '../../src/store/audit-chain.ts';
import { type AuditRow, insertAudit } from '../../src/store/audit-rows.ts';
import { AuditSealer, type SealerOptions } from '../../src/store/audit-sealer.ts';
import { type Anchor, type Verification, verifyAudit } from '../../src/store/audit-verify.ts';
import type { Database } from '../../src/store/database.ts';
import { transaction } from '../../src/store/transaction.ts';

export const mac: Mac = (text) => createHmac('sha256', 'a key of tests').update(text).digest();

export function entry(changes: Partial<AuditRow> = {}): AuditRow {
  return {
    actorType: 'user',
    actorId: 'usr_00000000000000000000000001',
    tenantId: 'acme',
    address: '192.0.2.7',
    action: 'role.update',
    targetType: 'role',
    targetId: 'auditor',
    result: 'success',
    before: { permissions: ['rag:read'], resource_constraints: {} },
    after: { permissions: ['rag:read', 'chat:*'], resource_constraints: { models: ['llama-*'] }, limit: 10.5 },
    requestId: 'req_00000000000000000000000001',
    ...changes,
  };
}

export async function write(db: Database, ...rows: readonly Partial<AuditRow>[]): Promise<void> {
  for (const row of rows) await transaction(db, (trx) => insertAudit(trx, entry(row)));
}

export async function ids(db: Database): Promise<readonly number[]> {
  const rows = await db.query({ text: 'select id from audit_log order by id' });
  return rows.map((row) => Number(row['id']));
}

/** A sealer that runs when the test calls it. */
export function sealerOf(db: Database, options: Partial<SealerOptions> = {}): AuditSealer {
  return new AuditSealer({ db, mac, ...options });
}

export function verify(db: Database, anchor?: Anchor): Promise<Verification> {
  return verifyAudit(db, mac, anchor);
}

/** Where the chain is broken, in a word; `whole` when it is not. */
export async function verdict(db: Database): Promise<string> {
  const { broken } = await verify(db);
  return broken === undefined ? 'whole' : `${broken.row ?? '?'}: ${broken.what}`;
}
