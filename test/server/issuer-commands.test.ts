/** `postern issuer`: the operator sees and tests issuers, and ends their tokens, without a login. */

import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { postern } from '../setup/support.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';

vi.setConfig({ testTimeout: 120_000 });

let fresh: FreshDatabase;
let issuer: TestIssuer;
beforeAll(async () => {
  issuer = await startIssuer();
  fresh = await freshDatabase();
  await fresh.db.knex.raw(`insert into tenants (id, name) values ('acme', 'Acme'), ('globex', 'Globex')`);
  const jwks = JSON.stringify(issuer.jwks());
  await fresh.db.knex.raw(
    `insert into issuers (id, tenant_id, name, kind, issuer, audiences, algorithms, jwks, jwks_set_at, enabled)
     values ('iss_' || repeat('0', 25) || '1', 'acme', 'pasted', 'oidc', :url, '{postern}', '{ES256}', :jwks, now(), true),
       ('iss_' || repeat('0', 25) || '2', 'acme', 'fetched', 'oidc', 'https://127.0.0.1:1', '{postern}', '{ES256}', null, null, true),
       ('iss_' || repeat('0', 25) || '3', 'globex', 'pasted', 'oidc', :url, '{postern}', '{ES256}', :jwks, now(), false)`,
    { url: issuer.url, jwks },
  );
  await fresh.db.knex.raw(
    `insert into issuer_keys (issuer_id, next_fetch_at) select id, now() + interval '1 day' from issuers where jwks is null`,
  );
});
afterAll(async () => {
  await fresh?.close();
  await issuer?.close();
});

it('list, test, refresh and revoke-before work on issuers by name, and by tenant where a name is not unique', async () => {
  const [listed, ambiguous, tested, refused, refreshed, revoked] = await Promise.all([
    postern(fresh.url, ['issuer', 'list']),
    postern(fresh.url, ['issuer', 'test', 'pasted'], `${issuer.sign()}\n`),
    postern(fresh.url, ['issuer', 'test', 'pasted', '--tenant', 'acme'], `${issuer.sign()}\n`),
    postern(fresh.url, ['issuer', 'test', 'pasted', '--tenant', 'acme'], 'hello\n'),
    postern(fresh.url, ['issuer', 'refresh', 'fetched']),
    postern(fresh.url, ['issuer', 'revoke-before', 'pasted', '--tenant', 'globex', '--time', '2026-11-01T00:00:00Z']),
  ]);
  expect(listed.stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([
    'acme/fetched',
    'acme/pasted',
    'globex/pasted',
    '',
  ]);
  expect([ambiguous.code, ambiguous.stderr]).toEqual([1, expect.stringContaining('2 tenants have an issuer pasted')]);
  expect([tested.code, tested.stdout]).toEqual([1, expect.stringMatching(/^passed\s+signature/m)]);
  expect(tested.stdout).toMatch(/^failed\s+principal/m);
  expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/^failed\s+parsed/)]);
  expect([refreshed.code, refreshed.stdout, refreshed.stderr]).toEqual([1, '', expect.stringMatching(/\.\n$/)]);
  expect([revoked.code, revoked.stdout]).toEqual([0, expect.stringContaining('2026-11-01T00:00:00.000Z')]);
  const { rows: audit } = await fresh.db.knex.raw<{ rows: object[] }>(
    `select actor_type, tenant_id, action, result from audit_log where target_type = 'issuer' order by action`,
  );
  expect(audit).toEqual([
    { actor_type: 'system', tenant_id: 'acme', action: 'issuer.refresh', result: 'failure' },
    { actor_type: 'system', tenant_id: 'globex', action: 'issuer.revoke_before', result: 'success' },
  ]);
});
