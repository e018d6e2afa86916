/** A platform that was moved by `postern export | postern apply` decides as the one that it was moved from. */

import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { type Harness, startHarness } from '../http/harness.ts';
import { askCases, demanded, usersOfWorld } from '../support/explain-cases.ts';
import { storeKeys, storeWorld } from '../support/stored-world.ts';
import { loadCases } from '../support/world.ts';
import { postern } from './support.ts';

vi.setConfig({ testTimeout: 120_000 });

const file = loadCases();
const ENDS_AT = new Date('2027-01-01T00:00:00Z');

let one: Harness;
let other: Harness;
beforeAll(async () => {
  one = await startHarness();
  other = await startHarness();
});
afterAll(async () => {
  await one?.close();
  await other?.close();
});

async function urlOf({ db }: Harness): Promise<string> {
  const { rows } = await db.knex.raw<{ rows: { name: string }[] }>('select current_database() as name');
  return inject('databaseUrl').replace('/postern?', `/${rows[0]?.name}?`);
}

const caller = (h: Harness) => ({ url: h.url, token: h.root.token });

test('export | apply on a fresh database gives the same decisions for all decision cases, and a running server follows', async () => {
  await storeWorld(one.db.knex, file.world, ENDS_AT);
  const exported = await postern(await urlOf(one), ['export']);
  expect([exported.code, exported.stderr]).toEqual([0, '']);

  // Until then the other server has decided without any of it, and remembers that.
  expect((await other.api('GET', '/v1/iam/tenants/acme', { as: other.root.token })).status).toBe(404);
  const applied = await postern(await urlOf(other), ['apply', '-'], exported.stdout);
  expect([applied.code, applied.stderr]).toEqual([0, '']);

  // An export has no keys, because they are secrets, so the test creates them again.
  await storeKeys(other.db.knex, file.world, await usersOfWorld(caller(other), file.world), ENDS_AT);
  expect(Object.keys(demanded(file)).length).toBeGreaterThan(100);
  expect(await askCases(caller(one), file)).toEqual(demanded(file));
  expect(await askCases(caller(other), file)).toEqual(demanded(file));
});
