import { expect, test } from 'vitest';
import { issuerKeyRequests } from '../../src/store/issuer-key-requests.ts';
import { issuerId, tenantId } from '../credential-cache/support/ids.ts';
import { freshDatabase } from '../support/database.ts';

test('unknown kids at any rate, in several processes, make the keys of an issuer due at most once in 5 s', async () => {
  const { db, close } = await freshDatabase();
  try {
    const id = issuerId(1);
    await db.knex('tenants').insert({ id: tenantId('home'), name: 'Home' });
    const issuer = { id, tenant_id: 'home', name: 'cluster', kind: 'oidc', issuer: 'https://cluster.example' };
    await db.knex('issuers').insert({ ...issuer, audiences: ['postern'], algorithms: ['RS256'] });
    await db.knex.raw(`insert into issuer_keys (issuer_id, attempted_at, next_fetch_at)
      values ('${id}', now() - interval '1 minute', now() + interval '10 minutes')`);
    const clock = { nowMs: 0 };
    let statements = 0;
    const query: typeof db.query = (statement) => {
      statements++;
      return db.query(statement);
    };
    const faults: unknown[] = [];
    const parts = {
      db: { ...db, query },
      monotonicMs: () => clock.nowMs,
      onFault: (error: unknown) => void faults.push(error),
    };
    const processes = [issuerKeyRequests(parts), issuerKeyRequests(parts)];
    const flood = (): void => {
      for (let i = 0; i < 1000; i++) for (const one of processes) one.request(id);
    };
    const secondsUntilDue = async (since: string): Promise<number> => {
      const { rows } = await db.knex.raw<{ rows: { s: number }[] }>(
        `select extract(epoch from next_fetch_at - ${since})::float8 as s from issuer_keys`,
      );
      return rows[0]?.s ?? Number.NaN;
    };
    flood();
    expect(statements).toBe(2);
    await expect.poll(() => secondsUntilDue('clock_timestamp()')).toBeLessThan(1);
    // An attempt has just begun: the next one is due 5 s after it, or at once if the machine takes longer.
    await db.knex.raw(
      `update issuer_keys set attempted_at = clock_timestamp(), next_fetch_at = clock_timestamp() + interval '10 minutes'`,
    );
    flood();
    expect(statements).toBe(2);
    clock.nowMs = 5000;
    flood();
    expect(statements).toBe(4);
    const soonest = "greatest(attempted_at + interval '5 seconds', clock_timestamp())";
    await expect.poll(() => secondsUntilDue(soonest)).toBeLessThanOrEqual(0);
    expect(await secondsUntilDue('attempted_at')).toBeGreaterThanOrEqual(5);
    expect(faults).toEqual([]);
  } finally {
    await close();
  }
});
