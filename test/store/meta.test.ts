import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkSecretKey, installationIssuer, metaValue, SecretKeyError } from '../../src/store/meta.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh.close());

test('servers that start together agree on one value', async () => {
  const values = await Promise.all(Array.from({ length: 8 }, (_, n) => metaValue(fresh.db, 'x', () => `value ${n}`)));
  expect(new Set(values).size).toBe(1);
});

test('the issuer of an installation never changes', async () => {
  const issuer = await installationIssuer(fresh.db);
  expect(issuer).toMatch(/^urn:uuid:[0-9a-f-]{36}$/);
  expect(await installationIssuer(fresh.db)).toBe(issuer);
});

test('a server with another secret-key is rejected, and the key itself is not stored', async () => {
  const key = 'k'.repeat(48);
  await checkSecretKey(fresh.db, key);
  await checkSecretKey(fresh.db, key);
  await expect(checkSecretKey(fresh.db, 'another'.repeat(8))).rejects.toBeInstanceOf(SecretKeyError);
  const kept = await fresh.db.query({ text: 'select value from meta' });
  expect(JSON.stringify(kept)).not.toContain(key);
});
