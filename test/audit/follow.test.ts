/** Following the audit log by cursor: each row once per reader that keeps its cursor, in the order of the seals. */

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  FIRST_CURSOR,
  type FollowedRow,
  followAudit,
  formatCursor,
  newestCursor,
  parseCursor,
  UnknownCursorError,
} from '../../src/iam/audit/follow.ts';
import type { AuditCursor } from '../../src/iam/audit/queries.ts';
import { insertAudit } from '../../src/store/audit-rows.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { entry, ids, sealerOf, write } from './support.ts';

let database: FreshDatabase;
beforeEach(async () => {
  database = await freshDatabase();
});
afterEach(() => database.close());

/** Everything after a cursor, page by page. */
async function followed(
  from: AuditCursor,
): Promise<{ rows: FollowedRow[]; next: AuditCursor; lost: number; pages: number }> {
  const rows: FollowedRow[] = [];
  let [next, lost, pages] = [from, 0, 0];
  for (;;) {
    const page = await followAudit(database.db.knex, next);
    rows.push(...page.rows);
    lost += page.lost;
    pages++;
    next = page.next;
    if (!page.more) return { rows, next, lost, pages };
  }
}

const idsOf = (rows: readonly FollowedRow[]): number[] => rows.map(({ row }) => Number(row.id));

async function seal(): Promise<void> {
  const sealer = sealerOf(database.db);
  await sealer.seal();
  await sealer.stop();
}

describe('following the audit log', () => {
  it('gives every sealed row once, over many seals, and then nothing until another row is sealed', async () => {
    for (let i = 0; i < 45; i++) {
      await write(database.db, { requestId: `req_${i}` }, {});
      await seal();
    }
    const first = await followed(FIRST_CURSOR);
    expect(idsOf(first.rows)).toEqual(await ids(database.db));
    expect(first.rows[0]?.row).toMatchObject({ action: 'role.update', request_id: 'req_0', tenant_id: 'acme' });
    expect((await followed(first.next)).rows).toEqual([]);
    await write(database.db, {});
    expect((await followed(first.next)).rows).toEqual([]);
    await seal();
    const [last] = (await followed(first.next)).rows;
    expect(Number(last?.row.id)).toBe((await ids(database.db)).at(-1));
  });

  it('gives a row whose transaction was committed late, after rows that were written later', async () => {
    const { promise: mayCommit, resolve: commit } = Promise.withResolvers<void>();
    const { promise: written, resolve: wrote } = Promise.withResolvers<void>();
    const late = transaction(database.db, async (trx) => {
      await insertAudit(trx, entry({ action: 'late.row' }));
      wrote();
      await mayCommit;
    });
    await written;
    await write(database.db, { action: 'early.row' });
    await seal();
    const first = await followed(FIRST_CURSOR);
    expect(first.rows.map(({ row }) => row.action)).toEqual(['early.row']);
    commit();
    await late;
    await seal();
    const second = await followed(first.next);
    expect(second.rows.map(({ row }) => row.action)).toEqual(['late.row']);
    expect(Number(second.rows[0]?.row.id)).toBeLessThan(Number(first.rows[0]?.row.id));
  });

  it('continues after any row by the cursor of that row', async () => {
    for (let i = 0; i < 3; i++) {
      await write(database.db, {}, {}, {});
      await seal();
    }
    const { rows } = await followed(FIRST_CURSOR);
    for (const [i, { cursor }] of rows.entries()) {
      expect(idsOf((await followed(cursor)).rows)).toEqual(idsOf(rows.slice(i + 1)));
    }
  });

  it('gives large rows in pages of bounded size', async () => {
    const text = 'x'.repeat(200_000);
    for (let i = 0; i < 10; i++) await write(database.db, { after: { text } });
    await seal();
    const { rows, pages } = await followed(FIRST_CURSOR);
    expect(idsOf(rows)).toEqual(await ids(database.db));
    expect(pages).toBeGreaterThanOrEqual(3);
  });

  it('begins after everything that is sealed when it is to begin now', async () => {
    expect(await newestCursor(database.db.knex)).toEqual(FIRST_CURSOR);
    await write(database.db, {}, {});
    await seal();
    const now = await newestCursor(database.db.knex);
    expect((await followed(now)).rows).toEqual([]);
    await write(database.db, { action: 'after.now' });
    await seal();
    expect((await followed(now)).rows.map(({ row }) => row.action)).toEqual(['after.now']);
  });

  it('refuses a cursor of another database, or from before a backup was restored', async () => {
    await write(database.db, {});
    await seal();
    const { next } = await followed(FIRST_CURSOR);
    const other = { ...next, hash: next.hash.replace(/./g, '0') };
    await expect(followAudit(database.db.knex, other)).rejects.toThrow(UnknownCursorError);
    await expect(followAudit(database.db.knex, { ...next, seal: next.seal + 1 })).rejects.toThrow(/has no such seal/);
  });

  it('reports how many seals retention removed before their delivery', async () => {
    await write(database.db, {});
    await seal();
    const { next } = await followed(FIRST_CURSOR);
    for (let i = 0; i < 3; i++) {
      await write(database.db, {});
      await seal();
    }
    const remover = sealerOf(database.db, { keepMs: 1 });
    await remover.removeExpired();
    await remover.stop();
    await write(database.db, { action: 'after.removal' });
    await seal();
    const { rows, lost } = await followed(next);
    expect(lost).toBeGreaterThanOrEqual(3);
    expect(rows.map(({ row }) => row.action)).toContain('after.removal');
    expect((await followed(FIRST_CURSOR)).lost).toBe(0);
  });
});

describe('the text of a cursor', () => {
  const count = fc.integer({ min: 1, max: 999_999_999_999_999 });
  it('is read as what was written', () => {
    const hash = fc.stringMatching(/^[0-9a-f]{16}$/);
    fc.assert(
      fc.property(fc.record({ seal: count, row: count, hash }), (cursor) => {
        expect(parseCursor(formatCursor(cursor))).toEqual(cursor);
      }),
    );
    expect(parseCursor(formatCursor(FIRST_CURSOR))).toEqual(FIRST_CURSOR);
  });

  it('is nothing else', () => {
    for (const text of [
      '',
      '1',
      '1:2',
      '1:2:',
      '0:0:0123456789abcdef',
      '1:2:0123456789ABCDEF',
      ' 1:2:0123456789abcdef',
      '-1:2:0123456789abcdef',
    ]) {
      expect([text, parseCursor(text)]).toEqual([text, undefined]);
    }
  });
});
