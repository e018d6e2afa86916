/** Every change of sealed rows or of seals in the database is detected. */

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { insertAudit } from '../../src/store/audit-rows.ts';
import { verifyWithin } from '../../src/store/audit-verify.ts';
import type { Queryable } from '../../src/store/queryable.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { entry, ids, mac, sealerOf, verdict, verify, write } from './support.ts';

/** Rows 1 to 12 in four seals; the same three kinds of row in each. */
const ROWS = 12;
const SEALS = 4;

async function sealedLog(): Promise<FreshDatabase> {
  const made = await freshDatabase();
  const sealer = sealerOf(made.db);
  for (let batch = 0; batch < SEALS; batch++) {
    await write(
      made.db,
      { after: { batch, big: 12_345_678_901, deep: [{ on: true, note: null, text: 'ü"\\\n' }] } },
      { actorType: 'anonymous', actorId: undefined, tenantId: undefined, before: undefined, result: 'failure' },
      {
        actorType: 'system',
        actorId: undefined,
        address: undefined,
        targetType: undefined,
        targetId: undefined,
        after: 7,
      },
    );
    await sealer.seal();
  }
  await sealer.stop();
  return made;
}

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await sealedLog();
});
afterAll(() => fresh?.close());

/** In a transaction that is undone. @returns what is found; undefined when the tampering changed no row */
async function found(...statements: readonly string[]): Promise<string | undefined> {
  return foundAfter(async (trx) => {
    let changed = 0;
    for (const statement of statements)
      changed += (await trx.raw<{ rowCount: number | null }>(statement)).rowCount ?? 0;
    return changed > 0;
  });
}

async function foundAfter(tampering: (trx: Queryable) => Promise<boolean>): Promise<string | undefined> {
  const trx = await fresh.db.knex.transaction();
  try {
    if (!(await tampering(trx))) return undefined;
    const { broken } = await verifyWithin(trx, mac);
    return broken === undefined ? 'whole' : `${broken.row ?? '?'}: ${broken.what}`;
  } finally {
    await trx.rollback();
  }
}

test('untouched, everything is whole', async () => {
  expect(await ids(fresh.db)).toEqual(Array.from({ length: ROWS }, (_, i) => i + 1));
  expect(await verify(fresh.db)).toMatchObject({
    broken: undefined,
    rows: ROWS,
    seals: SEALS,
    unsealed: 0,
    removed: 0,
  });
});

const anyRow = fc.integer({ min: 1, max: ROWS });
const anySeal = fc.integer({ min: 1, max: SEALS });

function storable(value: string): string {
  return value.replaceAll('\0', '').replaceAll('\\u0000', '').toWellFormed();
}

const text = fc.oneof(
  fc.constantFrom('', 'null', 'acme', '7'),
  fc.string({ unit: 'grapheme', maxLength: 5 }).map(storable),
);
const json = fc.oneof(fc.json({ maxDepth: 2 }).map(storable), fc.integer().map(String));
const instant = fc
  .date({ noInvalidDate: true, min: new Date(0), max: new Date('2100-01-01') })
  .map((date) => date.toISOString());

interface Edit {
  readonly column: string;
  readonly type: string;
  readonly value: string | null;
}
const edits = (column: string, type: string, values: fc.Arbitrary<string | null>): fc.Arbitrary<Edit> =>
  values.map((value) => ({ column, type, value }));

const anyEdit = fc.oneof(
  edits('time', 'timestamptz', instant),
  edits('actor_type', 'text', fc.constantFrom('user', 'api_key', 'system', 'anonymous')),
  edits('action', 'text', text),
  edits('result', 'text', fc.constantFrom('success', 'failure', 'refused')),
  ...['actor_id', 'tenant_id', 'address', 'target_type', 'target_id', 'request_id'].map((column) =>
    edits(column, 'text', fc.option(text)),
  ),
  edits('before', 'jsonb', fc.option(json)),
  edits('after', 'jsonb', fc.option(json)),
);

/** All columns except the id. */
const CONTENT =
  'time, actor_type, actor_id, tenant_id, address, action, target_type, target_id, result, before, after, request_id';
/** So that ids can be given by hand. */
const FREE_IDS = 'alter table audit_log alter column id drop identity';

describe('a sealed row', () => {
  test('that is edited in any column is found by its id', async () => {
    await fc.assert(
      fc.asyncProperty(anyRow, anyEdit, async (id, { column, type, value }) => {
        const seen = await foundAfter(async (trx) => {
          const { rowCount } = await trx.raw<{ rowCount: number }>(
            `update audit_log set ${column} = cast(:value as ${type})
             where id = :id and ${column} is distinct from cast(:value as ${type})`,
            { id, value },
          );
          return rowCount === 1;
        });
        fc.pre(seen !== undefined);
        expect(seen).toMatch(new RegExp(`^${id}: it was changed after it was sealed`));
      }),
      { numRuns: runs(150) },
    );
  });

  test.each([
    ['a microsecond', `update audit_log set time = time + interval '1 microsecond' where id = 5`],
    ['thousands of years, to the same date', `update audit_log set time = time - interval '4051 years' where id = 5`],
    ['to a time that never comes', `update audit_log set time = 'infinity' where id = 5`],
    ['a number for its text', `update audit_log set after = '"7"' where id = 6`],
    ['JSON null for nothing', `update audit_log set before = 'null' where id = 5`],
    ['one deep member', `update audit_log set after = jsonb_set(after, '{deep,0,on}', 'false') where id = 4`],
    ['the name of a member', `update audit_log set after = after - 'big' || '{"bog":12345678901}' where id = 4`],
    ['an empty text for none', `update audit_log set tenant_id = '' where id = 5`],
  ])('that is changed as little as by %s is found', async (_what, statement) => {
    expect(await found(statement)).toMatch(/^[456]: it was changed after it was sealed/);
  });

  test('that is removed is found by its id', async () => {
    for (let id = 1; id <= ROWS; id++) {
      expect(await found(`delete from audit_log where id = ${id}`)).toMatch(
        new RegExp(`^${id}: it was removed after it was sealed`),
      );
    }
  });

  test('is found beside others: all of them are counted', async () => {
    const trx = await fresh.db.knex.transaction();
    await trx.raw(`update audit_log set address = 'elsewhere' where id in (2, 3, 11)`);
    await trx.raw('delete from audit_log where id = 7');
    expect(await verifyWithin(trx, mac)).toMatchObject({
      broken: { row: 2 },
      damaged: 4,
      rows: ROWS - 4,
      seals: SEALS,
    });
    await trx.rollback();
  });

  test('that changes places with another is found', async () => {
    await fc.assert(
      fc.asyncProperty(anyRow, anyRow, async (one, two) => {
        fc.pre(one !== two);
        const seen = await found(
          FREE_IDS,
          `update audit_log set id = case id when ${one} then -1 else -2 end where id in (${one}, ${two})`,
          `update audit_log set id = case id when -1 then ${two} else ${one} end where id < 0`,
        );
        expect(seen).toMatch(new RegExp(`^${Math.min(one, two)}: it was changed after it was sealed`));
      }),
      { numRuns: runs(40) },
    );
  });

  test('that is moved to another id is found', async () => {
    expect(await found(FREE_IDS, 'update audit_log set id = 1000 where id = 3')).toMatch(
      /^3: it was removed after it was sealed/,
    );
  });
});

describe('a row that Postern did not write', () => {
  test.each([0, -5, 13, 100, 70_000_000, 5_000_000_000])(
    'is found under the id %i, even as the copy of another',
    async (id) => {
      const forged = `insert into audit_log (id, ${CONTENT}) overriding system value select ${id}, ${CONTENT} from audit_log where id = 3`;
      expect(await found(forged)).toMatch(new RegExp(`^${id}: no seal names it`));
    },
  );

  test('is found in the place of one that was taken away before it could be sealed', async () => {
    const seen = await foundAfter(async (trx) => {
      await insertAudit(trx, entry());
      await trx.raw('create temporary table taken on commit drop as select * from audit_log where id > 12');
      await trx.raw('delete from audit_log where id > 12');
      return true;
    });
    expect(seen).toMatch(/^\d+: it was removed before it could be sealed/);
  });
});

describe('the seals', () => {
  test.each([
    ['sealed_at', `sealed_at + interval '1 microsecond'`],
    ['row_ids', 'row_ids[2:3]'],
    ['row_digests', `row_digests || decode(repeat('00', 32), 'hex')`],
    ['previous_hash', 'sha256(previous_hash)'],
    ['hash', 'sha256(hash)'],
    [
      'kind',
      `'removal', row_ids = '{}', row_digests = '', removed_through = 0, removed_hash = sha256(''), removed_rows = 0`,
    ],
  ])('cannot be changed in %s', async (column, value) => {
    for (let seq = 1; seq <= SEALS; seq++) {
      const seen = await found(`update audit_seals set ${column} = ${value} where seq = ${seq}`);
      expect(seen).toMatch(/seal \d+, which (names it|records a removal), was changed|seals? .* missing/);
    }
  });

  test('cannot be talked away by a removal that never was', async () => {
    const forged = `update audit_seals s set kind = 'removal', row_ids = '{}', row_digests = '', removed_through = c.seq,
      removed_hash = c.hash, removed_rows = 12 from audit_chain c where s.seq = 2`;
    expect(await found(forged)).toMatch(/seal 2, which records a removal, was changed/);
  });

  test('cannot be joined by one before the first', async () => {
    const seen = await found(
      `insert into audit_log (id, ${CONTENT}) overriding system value select 500, ${CONTENT} from audit_log where id = 3`,
      `insert into audit_seals select 0, kind, sealed_at, '{500}', row_digests, null, null, null, previous_hash, hash from audit_seals where seq = 1`,
    );
    expect(seen).toMatch(/^500: no seal names it/);
  });

  test('cannot be removed, with the rows that they name or without, in the middle or at the end', async () => {
    await fc.assert(
      fc.asyncProperty(anySeal, anySeal, fc.boolean(), async (one, two, withRows) => {
        const range = `between ${Math.min(one, two)} and ${Math.max(one, two)}`;
        const rows = `delete from audit_log where id in (select unnest(row_ids) from audit_seals where seq ${range})`;
        const seen = await found(...(withRows ? [rows] : []), `delete from audit_seals where seq ${range}`);
        expect(seen).toMatch(/seals? .* missing/);
      }),
      { numRuns: runs(30) },
    );
  });

  test('cannot change places', async () => {
    const seen = await found(
      'update audit_seals set seq = -seq where seq in (2, 4)',
      'update audit_seals set seq = 6 + seq where seq < 0',
    );
    expect(seen).toMatch(/seal 2, which names it, was changed/);
  });

  test.each([
    ['removed', 'delete from audit_chain'],
    [
      'set back to an older seal',
      'update audit_chain set seq = s.seq, hash = s.hash from audit_seals s where s.seq = 3',
    ],
    ['with the signature of another key', `update audit_chain set mac = sha256('')`],
  ])('end where the signed record says: %s, it is found', async (_what, statement) => {
    expect(await found(statement)).toMatch(/the record of the newest seal/);
  });
});

describe('while the sealer works on', () => {
  test('a row that Postern did not write is still not sealed', async () => {
    const own = await sealedLog();
    const { db } = own;
    const forged = `insert into audit_log (id, ${CONTENT}) overriding system value select 500, ${CONTENT} from audit_log where id = 3`;
    await db.query({ text: forged });
    await write(db, {});
    const sealer = sealerOf(db);
    expect(await sealer.seal()).toBe(1);
    expect(await verdict(db)).toMatch(/^500: no seal names it/);
    await sealer.stop();
    await own.close();
  });

  test.each([
    ['removed', 'delete from audit_chain', 1],
    ['set back', 'update audit_chain set seq = s.seq, hash = s.hash from audit_seals s where s.seq = 3', 1],
    ['left as it is', 'select', 0],
  ])(
    'seals that were cut off the end are missed; the record of the newest was %s',
    async (_what, statement, complaints) => {
      const own = await sealedLog();
      const { db } = own;
      await db.query({
        text: 'delete from audit_log where id in (select unnest(row_ids) from audit_seals where seq > 3)',
      });
      await db.query({ text: 'delete from audit_seals where seq > 3' });
      await db.query({ text: statement });
      await write(db, {}, {});
      const broken: string[] = [];
      const sealer = sealerOf(db, { events: { onBroken: (what) => broken.push(what) } });
      expect(await sealer.seal()).toBe(2);
      expect(broken).toHaveLength(complaints);
      expect(await verdict(db)).toMatch(
        /^13: (seal 4, which names it, does not follow|before seal 5, which names it, seal 4 is missing)/,
      );
      await sealer.stop();
      await own.close();
    },
  );

  test('seals under another key prove nothing', async () => {
    const own = await sealedLog();
    await write(own.db, {});
    const sealer = sealerOf(own.db, { mac: (content) => mac(`${content} `) });
    await sealer.seal();
    expect(await verdict(own.db)).toMatch(/^13: seal 5, which names it, was changed or was created without secret-key/);
    await sealer.stop();
    await own.close();
  });

  test('a chain that was replaced from its first row is detected by a seal noted earlier, and by a server that sealed earlier', async () => {
    const own = await sealedLog();
    const { db } = own;
    const noted = (await verify(db)).newest;
    const broken: string[] = [];
    const sealer = sealerOf(db, { events: { onBroken: (what) => broken.push(what) } });
    await write(db, {});
    await sealer.seal();
    await db.query({ text: 'delete from audit_log where id = 4' });
    await db.query({ text: 'truncate audit_seals, audit_chain' });
    await db.query({ text: 'insert into audit_unsealed select id from audit_log' });
    await sealer.seal();
    expect(broken).toEqual(['the newest seal is 1, but it was 5 before']);
    expect(await verdict(db)).toBe('whole');
    expect(noted?.seq).toBe(SEALS);
    expect((await verify(db, noted)).broken?.what).toBe('the chain does not pass through the seal 4 that was given');
    await sealer.stop();
    await own.close();
  });

  test('a seal noted before is still met when more were made after it', async () => {
    const own = await sealedLog();
    const noted = (await verify(own.db)).newest;
    const sealer = sealerOf(own.db);
    await write(own.db, {});
    await sealer.seal();
    expect((await verify(own.db, noted)).broken).toBeUndefined();
    await sealer.stop();
    await own.close();
  });
});
