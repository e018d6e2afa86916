/** The expected decision of every case, as a running server explains it from a real database. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { askCases, demanded, usersOfWorld } from '../support/explain-cases.ts';
import { storeKeys, storeWorld } from '../support/stored-world.ts';
import { loadCases } from '../support/world.ts';
import { type Harness, startHarness } from './harness.ts';

const file = loadCases();
const ENDS_AT = new Date('2027-01-01T00:00:00Z');

// The cases have tenants with fixed ids.
let h: Harness;
beforeAll(async () => {
  h = await startHarness();
});
afterAll(() => h?.close());

test('a server explains all decision cases as required, also after all keys were deleted and created again', async () => {
  const caller = { url: h.url, token: h.root.token };
  await storeWorld(h.db.knex, file.world, ENDS_AT);
  expect(Object.keys(demanded(file)).length).toBeGreaterThan(100);
  expect(await askCases(caller, file)).toEqual(demanded(file));
  await h.db.knex.raw('delete from api_keys');
  await storeKeys(h.db.knex, file.world, await usersOfWorld(caller, file.world), ENDS_AT);
  expect(await askCases(caller, file)).toEqual(demanded(file));
});
