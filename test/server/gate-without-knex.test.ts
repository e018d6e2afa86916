import { expect, it, onTestFinished } from 'vitest';
import { startGate } from '../../src/server/gate.ts';
import type { Database } from '../../src/store/database.ts';
import { pruneChanges } from '../../src/store/feed-prune.ts';
import { storeIssuer } from '../http/stored-issuers.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { openWiring } from '../support/wiring.ts';

async function emptyDatabase(): Promise<FreshDatabase> {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  return fresh;
}

/** Starts a gate whose database reports when knex is loaded. */
async function startedGate({ url }: FreshDatabase, onKnex: () => void): Promise<Database> {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const wiring = await openWiring(url, {}, stack);
  const { store } = wiring;
  const db: Database = Object.create(store.db, {
    knex: {
      get() {
        onKnex();
        return store.db.knex;
      },
    },
    loadKnex: { value: onKnex },
  });
  const gate = await startGate({ ...wiring, store: { ...store, db }, sharesAddress: false });
  stack.defer(() => gate.close());
  expect(await gate.ready()).toEqual([]);
  return db;
}

it('a gate creates its signing keys, is ready and prunes the change feed without knex', async () => {
  let loads = 0;
  const db = await startedGate(await emptyDatabase(), () => loads++);
  await pruneChanges(db, 0);
  expect(loads).toBe(0);
});

it('a gate loads knex before it is ready if there is an issuer, whose users it may create', async () => {
  const fresh = await emptyDatabase();
  await fresh.db.knex('tenants').insert({ id: 'acme', name: 'Acme' });
  await storeIssuer(fresh.db, 'acme', 'corp', {});
  let loads = 0;
  await startedGate(fresh, () => loads++);
  expect(loads).toBe(1);
});
