/** GET /v1/iam/audit/chain: what the tables say of the chain, at a cost that does not grow with the log. */

import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Harness, outcome, startHarness } from '../http/harness.ts';
import { sealerOf, verify, write } from './support.ts';

let h: Harness;
beforeEach(async () => {
  h = await startHarness();
});
afterEach(() => h.close());

const CHAIN = '/v1/iam/audit/chain';
const state = async () => (await h.api('GET', CHAIN, { as: h.root.token })).json;

test('shows no seal and the rows that wait for one, before the first seal', async () => {
  const { unsealed: before } = await state();
  await write(h.db, {}, {});
  expect(await state()).toEqual({ rows: 0, seals: 0, unsealed: Number(before) + 2, newest_seal: null });
});

test('shows what verify-audit counts, through seals, changes and removals', async () => {
  const sealer = sealerOf(h.db);
  for (let round = 0; round < 3; round++) {
    await write(h.db, {}, {});
    await h.api('POST', '/v1/iam/roles', { as: h.root.token, body: { name: `role-${round}`, permissions: [] } });
    await sealer.seal();
    await write(h.db, {});
    const { rows, seals, unsealed, newest } = await verify(h.db);
    expect(await state()).toEqual({
      rows,
      seals,
      unsealed,
      newest_seal: { number: newest?.seq, hash: newest?.hash, time: expect.stringMatching(/^\d{4}-.*Z$/) },
    });
  }
  await sealer.stop();
  await h.db.query({ text: `delete from audit_seals where seq = 1` });
  const { rows } = await h.db.knex.raw<{ rows: { rows: number; seals: number }[] }>(
    'select coalesce(sum(cardinality(row_ids)), 0)::int as rows, count(*)::int as seals from audit_seals',
  );
  expect(await state()).toMatchObject({ rows: rows[0]?.rows, seals: rows[0]?.seals });
});

test('counts a removal seal, and no longer the seals and rows that it removed', async () => {
  await write(h.db, {}, {}, {});
  const sealer = sealerOf(h.db, { keepMs: 1 });
  await sealer.seal();
  await h.db.query({ text: `update audit_seals set sealed_at = sealed_at - interval '1 hour'` });
  expect(await sealer.removeExpired()).toBeGreaterThanOrEqual(3);
  await sealer.stop();
  const { rows } = await h.db.knex.raw<{ rows: { rows: number; seals: number }[] }>(
    'select coalesce(sum(cardinality(row_ids)), 0)::int as rows, count(*)::int as seals from audit_seals',
  );
  expect(await state()).toMatchObject({ rows: rows[0]?.rows, seals: rows[0]?.seals });
});

test('is for platform administrators: a tenant administrator, and any key, get 403', async () => {
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  const boss = await h.person('acme', ['tenant-admin']);
  const body = { description: 'k', scopes: ['*'], expires_in_days: 1, user_id: h.root.id };
  const key = await h.api('POST', '/v1/iam/api-keys', { as: h.root.token, body });
  for (const as of [boss.token, String(key.json['key'])]) {
    expect(outcome(await h.api('GET', CHAIN, { as }))).toBe('403 insufficient_permission');
  }
});
