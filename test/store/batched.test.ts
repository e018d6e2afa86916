/** Rows that many ask for one at a time and that are read together. */

import fc from 'fast-check';
import { knex } from 'knex';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Fault } from '../../src/domain/errors.ts';
import { makeId, type UserId } from '../../src/domain/ids.ts';
import { findUser } from '../../src/iam/users/queries.ts';
import { ASKED, readsPairs } from '../../src/store/batched.ts';
import { transaction } from '../../src/store/transaction.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { seedTenant, tenantId } from './seed.ts';

const TENANTS = ['acme', 'globex'].map(tenantId);
const PEOPLE = 40;
const idOf = (n: number): UserId => makeId('usr', 1_750_000_000_000 + n, new Uint8Array(10));

let fresh: FreshDatabase;

beforeAll(async () => {
  fresh = await freshDatabase();
  for (const tenant of TENANTS) await seedTenant(fresh.db, tenant);
  for (let n = 0; n < PEOPLE; n++) {
    await fresh.db.knex('users').insert({ id: idOf(n), tenant_id: TENANTS[n % 2], name: `Person ${n}` });
  }
});
afterAll(() => fresh.close());

test('however many ask at once, each gets the row of its own tenant and id, or nothing', async () => {
  const question = fc.record({
    tenant: fc.integer({ min: 0, max: 1 }),
    person: fc.integer({ min: 0, max: PEOPLE + 5 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(question, { minLength: 1, maxLength: 250 }), async (questions) => {
      const found = await Promise.all(
        questions.map(({ tenant, person }) =>
          findUser(fresh.db.knex, TENANTS[tenant] ?? tenantId('acme'), idOf(person)),
        ),
      );
      expect(found.map((user) => user?.name)).toEqual(
        questions.map(({ tenant, person }) =>
          person < PEOPLE && person % 2 === tenant ? `Person ${person}` : undefined,
        ),
      );
    }),
    { numRuns: runs(40) },
  );
});

test('who asks after a change sees it, also while others are being answered', async () => {
  const ask = () => findUser(fresh.db.knex, TENANTS[0] ?? tenantId('acme'), idOf(0));
  for (let n = 0; n < 20; n++) {
    const others = Array.from({ length: 5 }, ask);
    await fresh.db
      .knex('users')
      .where({ id: idOf(0) })
      .update({ name: `Renamed ${n}` });
    expect((await ask())?.name).toBe(`Renamed ${n}`);
    await Promise.all(others);
  }
  await fresh.db
    .knex('users')
    .where({ id: idOf(0) })
    .update({ name: 'Person 0' });
});

test('in a transaction a look-up sees what the transaction did, and nobody else does', async () => {
  const [home = tenantId('acme')] = TENANTS;
  await transaction(fresh.db, async (trx) => {
    const rename = (name: string) => trx.raw('update users set name = ? where id = ?', [name, idOf(2)]);
    await rename('Not yet');
    expect((await findUser(trx, home, idOf(2)))?.name).toBe('Not yet');
    expect((await findUser(fresh.db.knex, home, idOf(2)))?.name).toBe('Person 2');
    await rename('Person 2');
  });
});

/** A database that answers when the test says so. */
function aSlowDatabase() {
  const statements: { asked: number; answer: PromiseWithResolvers<readonly never[]> }[] = [];
  const connection = {
    query(
      { values: [first] }: { readonly values: readonly unknown[] },
      done: (error: unknown, result?: object) => void,
    ) {
      const answer = Promise.withResolvers<readonly never[]>();
      statements.push({ asked: Array.isArray(first) ? first.length : 1, answer });
      answer.promise.then((rows) => done(null, { rows }), done);
    },
  };
  const connectionPool = {
    ...{
      acquire: () => ({ promise: Promise.resolve(connection) }),
      release: () => true,
      destroy: async () => undefined,
    },
    ...{ numFree: () => 0, numUsed: () => 0, numPendingAcquires: () => 0 },
  };
  const q = knex({ client: 'pg', connectionPool, log: { warn: () => undefined } });
  return { q, statements };
}

const turn = () => new Promise<void>((done) => setImmediate(done));

test('one who asks alone does not wait for others; a crowd shares few statements, of at most a hundred rows', async () => {
  const { q, statements } = aSlowDatabase();
  const read = readsPairs({
    one: { name: 'one', text: 'select' },
    many: { name: 'many', text: `select from ${ASKED}` },
  });
  const answers = [read(q, 'a', '0')];
  await turn();
  expect(statements.map(({ asked }) => asked)).toEqual([1]);
  for (let n = 0; n < 250; n++) answers.push(read(q, 'a', String(n)));
  await turn();
  expect(statements.map(({ asked }) => asked)).toEqual([1, 100]);
  for (let i = 0; i < 4; i++) {
    statements[i]?.answer.resolve([]);
    await turn();
  }
  expect(statements.map(({ asked }) => asked)).toEqual([1, 100, 100, 50]);
  expect(await Promise.all(answers)).toEqual(answers.map(() => undefined));
});

test('a failure is told to all whose rows were asked for with it, and to nobody after', async () => {
  const { q, statements } = aSlowDatabase();
  const read = readsPairs({
    one: { name: 'one', text: 'select' },
    many: { name: 'many', text: `select from ${ASKED}` },
  });
  const failing = Promise.allSettled([read(q, 'a', '0'), read(q, 'a', '1')]);
  await turn();
  statements[0]?.answer.reject(new Fault('the database is gone'));
  expect((await failing).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const next = read(q, 'a', '2');
  await turn();
  statements[1]?.answer.resolve([]);
  expect(await next).toBeUndefined();
});

test('a crowd that the database keeps waiting is bounded', async () => {
  const { q, statements } = aSlowDatabase();
  const read = readsPairs({
    one: { name: 'one', text: 'select' },
    many: { name: 'many', text: `select from ${ASKED}` },
  });
  const all = Promise.allSettled(Array.from({ length: 10_500 }, (_, n) => read(q, 'a', String(n))));
  await turn();
  for (let i = 0; i < statements.length; i++) {
    statements[i]?.answer.resolve([]);
    await turn();
  }
  const refused = (await all).filter(({ status }) => status === 'rejected');
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.every((outcome) => outcome.status === 'rejected' && outcome.reason instanceof Fault)).toBe(true);
});
