/** What the API process reports of the keys of issuers: in its log and its metrics. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import type { RefreshReport } from '../../src/iam/issuers/refresh-keys.ts';
import { type IssuerKeys, issuerKeyRefresh, startIssuerKeys } from '../../src/server/issuer-keys.ts';
import { seedTenant, tenantId } from '../store/seed.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';
import { openWiring, type TestWiring } from '../support/wiring.ts';

let database: FreshDatabase;
let provider: TestIssuer;
let stack: AsyncDisposableStack;
let wiring: TestWiring;
let keys: IssuerKeys;
const lines: unknown[] = [];

beforeAll(async () => {
  stack = new AsyncDisposableStack();
  database = await freshDatabase();
  stack.defer(() => database.close());
  await seedTenant(database.db, 'acme');
  provider = stack.use(await startIssuer());
  const opened = await openWiring(
    database.url,
    { POSTERN_ISSUERS_ALLOWED_HOSTS: JSON.stringify([provider.host]) },
    stack,
  );
  const note = (about: object, message: string) => void lines.push({ ...about, message });
  const log = Object.assign(Object.create(opened.telemetry.log), { info: note, warn: note });
  wiring = { ...opened, telemetry: { ...opened.telemetry, log } };
  keys = issuerKeyRefresh(wiring);
});
afterAll(() => stack.disposeAsync());

test('the log has the first failure, stale keys once, and the recovery', () => {
  const { onRefresh } = keys;
  const id = makeId('iss', 1, new Uint8Array(10));
  const report = (failures: number, isStale: boolean, isOk = false): RefreshReport => ({
    issuer: { id, tenantId: tenantId('acme'), failures },
    outcome: isOk ? { kind: 'ok', keys: [] } : { kind: 'failed', reason: 'refused' },
    isStale,
  });
  const about = { part: 'issuers', issuer: id, tenant: 'acme' };
  const failed = { ...about, reason: 'refused', message: 'the keys of the issuer could not be fetched' };
  const stale = {
    ...about,
    reason: 'refused',
    event: 'issuer.keys_stale',
    message: 'the issuer has no keys that are new enough to be used',
  };
  const recovered = { ...about, message: 'the keys of the issuer were fetched again' };
  lines.length = 0;
  for (const one of [report(0, false), report(1, false), report(2, true), report(3, true), report(4, false, true)])
    onRefresh?.(one);
  expect(lines).toEqual([failed, stale, recovered]);
  for (const one of [report(0, false, true), report(0, true)]) onRefresh?.(one);
  expect(lines.slice(3)).toEqual([failed, stale]);
});

test('the job of the API process fetches the keys of a new issuer, and metrics count fetches and issuers', async () => {
  const counted = async (outcome: string) => {
    const text = await wiring.telemetry.metrics.exposition();
    const [, count] =
      new RegExp(`^postern_issuer_key_fetches_total{outcome="${outcome}"} (\\d+)$`, 'm').exec(text) ?? [];
    return Number(count);
  };
  const before = [await counted('success'), await counted('failure')];
  const insert = (id: string, issuer: string) =>
    database.db.query({
      text: `insert into issuers (id, tenant_id, name, issuer, kind, audiences, algorithms) values ($1, 'acme', $1, $2, 'oidc', '{a}', '{ES256}')`,
      values: [id, issuer],
    });
  const good = makeId('iss', 2, new Uint8Array(10));
  await insert(good, provider.url);
  await insert('iss_bad', 'http://127.0.0.1:1');
  await database.db.query({ text: 'insert into issuer_keys (issuer_id) select id from issuers' });
  const stop = startIssuerKeys(wiring, keys);
  try {
    await expect
      .poll(() =>
        database.db.query({
          text: 'select error, keys is not null as has_keys from issuer_keys order by issuer_id desc',
        }),
      )
      .toEqual([
        { error: expect.stringMatching(/begin with https/), has_keys: false },
        { error: null, has_keys: true },
      ]);
  } finally {
    await stop();
  }
  keys.reports.counted({ current: 1, failing: 0, stale: 1 });
  expect([await counted('success'), await counted('failure')]).toEqual(before.map((count) => count + 1));
  const metrics = await wiring.telemetry.metrics.exposition();
  expect(metrics).toContain('postern_issuers{keys="current"} 1');
  expect(metrics).toContain('postern_issuers{keys="stale"} 1');
});
