/** Any setup: applied, exported, applied to an empty database and exported again. */

import fc from 'fast-check';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { setupWriter } from '../../src/cli/export-file.ts';
import type {
  BudgetDocument,
  PolicyDocument,
  RoleDocument,
  TenantDocument,
  UserDocument,
  WebhookDocument,
} from '../../src/iam/setup/document.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { meaning, setup, sorted, words } from './any-setup.ts';
import { apply, exported, planLines } from './support.ts';

vi.setConfig({ testTimeout: 120_000 });

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh?.close());

/** A database takes too long for looking for the smallest counterexample. */
const DATABASE_RUNS = { numRuns: runs(15), endOnFailure: true };

async function emptied(): Promise<void> {
  await fresh.db.knex.raw('truncate tenants, users, user_roles, roles, policies, policy_roles, audit_log cascade');
}

it('any text is read from an export as it was', () => {
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 3 }), (texts) => {
      const write = setupWriter();
      const written = write({
        kind: 'users',
        users: texts.map((text) => ({ email: 'a@b.test', name: text, department: text, roles: [] })),
      });
      expect(parse(written).users.map((one: UserDocument) => [one.name, one.department])).toEqual(
        texts.map((text) => [text, text]),
      );
    }),
    { numRuns: runs(1000) },
  );
});

it.each(['no', 'on', 'Y', '22:00', '190:20:30.15', '1_000', '010', '0b101', '2026-01-31', '<<', '='])(
  'the text %s of an export is a text for a reader of YAML 1.1 as well',
  (text) => {
    const written = setupWriter()({ kind: 'tenant', tenant: { id: 'a', name: text, metadata: { [text]: text } } });
    const tenant = { id: 'a', name: text, metadata: { [text]: text } };
    expect(parse(written, { version: '1.1', merge: true }).tenants).toEqual([tenant]);
    expect(written).toContain(`name: ${JSON.stringify(text)}\n`);
  },
);

it('an export says what was applied; applied to an empty database it is the same again, and a second run has nothing to do', async () => {
  const forced = { force: true };
  const exact = { prune: true, pruneTenants: true };
  await fc.assert(
    fc.asyncProperty(setup, async (document) => {
      await emptied();
      await apply(fresh.db, document, forced);
      expect(await planLines(fresh.db, document, exact)).toEqual([]);
      const text = await exported(fresh.db);
      expect(meaning(parse(text))).toEqual(meaning(document));
      await emptied();
      await apply(fresh.db, text, forced);
      expect(await exported(fresh.db)).toBe(text);
      expect(await planLines(fresh.db, text, exact)).toEqual([]);
    }),
    DATABASE_RUNS,
  );
});

it('from any setup to any other: with --prune the lists are as in the file, independent of the earlier state', async () => {
  const options = { prune: true, force: true };
  // At least one user remains an administrator.
  const root: UserDocument = { email: 'root@root.test', name: 'Root', roles: ['admin'], status: 'active' };
  const kept: TenantDocument = { id: 'root', name: 'Root', status: 'active', users: [root] };
  await fc.assert(
    fc.asyncProperty(setup, setup, async (first, second) => {
      await emptied();
      await apply(fresh.db, { ...first, tenants: [kept, ...(first.tenants ?? [])] }, options);
      // A policy of a tenant outside the second file may have the name of a global one.
      const spoken = { ...second, global_policies: [], tenants: [kept, ...(second.tenants ?? [])] };
      await apply(fresh.db, spoken, options);
      expect(await planLines(fresh.db, spoken, options)).toEqual([]);
      const text = await exported(fresh.db);
      for (const { id, roles, policies, webhooks, budgets, users } of second.tenants ?? []) {
        const now = parse(text).tenants.find((one: TenantDocument) => one.id === id);
        expect(now.roles.map((one: RoleDocument) => one.name)).toEqual(sorted(roles?.map((one) => one.name)));
        expect(now.policies.map((one: PolicyDocument) => one.name)).toEqual(sorted(policies?.map((one) => one.name)));
        expect((now.webhooks ?? []).map((one: WebhookDocument) => one.url)).toEqual(
          sorted(webhooks?.map((one) => one.url)),
        );
        expect((now.budgets ?? []).map((one: BudgetDocument) => one.name)).toEqual(
          sorted(budgets?.map((one) => one.name)),
        );
        expect(now.users.map((one: UserDocument) => one.email)).toEqual(
          sorted(users?.map((one) => one.email.toLowerCase())),
        );
      }
    }),
    DATABASE_RUNS,
  );
});

it('an export writes what this version cannot read of a policy, and apply refuses the file instead of leaving it out', async () => {
  const odd = await freshDatabase();
  try {
    const conditions = { ip_address: { in: ['10.0.0.0/8'] }, moon_phase: { in: ['full'] } };
    const policy = {
      tenant_id: 'acme',
      name: 'odd',
      effect: 'allow',
      actions: ['chat:*'],
      resources: ['*'],
      applies_to: 'roles',
    };
    await odd.db.knex('tenants').insert({ id: 'acme', name: 'Acme' });
    await odd.db.knex('policies').insert({ ...policy, conditions });
    const text = await exported(odd.db);
    expect(parse(text).tenants[0].policies[0].conditions).toEqual(conditions);
    await expect(apply(fresh.db, text)).rejects.toThrow('moon_phase');
  } finally {
    await odd.close();
  }
});

const MANY = 1500;
const LONG = 'x'.repeat(500);

it('an export beyond 8 MiB has several documents; applied to an empty database it is the same again, and prunes across documents', async () => {
  await emptied();
  await apply(fresh.db, {
    version: 1,
    tenants: [
      { id: 'large', roles: [{ name: 'writers', permissions: ['chat:*'] }], users: [] },
      { id: 'small', users: [{ email: 'one@small.test', name: 'One' }] },
    ],
  });
  const metadata = Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`key-${i}`, LONG]));
  await fresh.db.query({
    text: `insert into users (id, tenant_id, email, name, metadata)
      select 'usr_' || lpad(n::text, 26, '0'), 'large', 'user' || n || '@large.test', 'User ' || n, $2::jsonb from generate_series(1, $1::integer) n`,
    values: [MANY, JSON.stringify(metadata)],
  });
  const exact = { prune: true, pruneTenants: true };
  const text = await exported(fresh.db);
  const documents = text.split(/^---$/m);
  expect(text.length).toBeGreaterThan(8 * 1_048_576);
  expect(documents.length).toBeGreaterThan(3);
  for (const document of documents) expect(Buffer.byteLength(document)).toBeLessThan(8 * 1_048_576);
  expect(await planLines(fresh.db, text, exact)).toEqual([]);

  await emptied();
  await apply(fresh.db, text, { force: true });
  expect(await exported(fresh.db)).toBe(text);
  expect(await planLines(fresh.db, text, exact)).toEqual([]);
  await fresh.db.query({
    text: `insert into users (id, tenant_id, email, name) values ('usr_' || repeat('9', 26), 'large', 'extra@large.test', 'Extra')`,
  });
  expect(await planLines(fresh.db, text, { prune: true })).toEqual(['delete user large/extra@large.test']);
});

it('an export in documents says what the same export in one document says', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(90), { minLength: 1, maxLength: 4 }),
      fc.boolean(),
      fc.nat(3000),
      (sizes, hasGlobal, bytes) => {
        const write = setupWriter(bytes);
        let text = hasGlobal ? write({ kind: 'global policies', policies: [] }) : '';
        const wanted = sizes.map((size, i) => {
          const users = Array.from({ length: size }, (_, n) => ({ email: `u${n}@t${i}.test`, name: 'é'.repeat(n) }));
          text += write({ kind: 'tenant', tenant: { id: `t${i}`, name: `T${i}` } });
          if (users.length > 0) text += write({ kind: 'users', users });
          text += write({ kind: 'end of users', others: 0 });
          return { id: `t${i}`, emails: users.map(({ email }) => email) };
        });
        const documents: { tenants?: TenantDocument[] }[] = text.split(/^---$/m).map((document) => parse(document));
        const read = new Map<string, string[]>();
        for (const { id, users = [] } of documents.flatMap(({ tenants = [] }) => tenants)) {
          read.set(id, [...(read.get(id) ?? []), ...users.map(({ email }) => email)]);
        }
        expect([...read].map(([id, emails]) => ({ id, emails }))).toEqual(wanted);
        // Only users of a tenant go on in the next document.
        for (const { tenants = [] } of documents.slice(1)) {
          for (const [i, tenant] of tenants.entries()) if (i > 0) expect(tenant.name).toBeDefined();
        }
      },
    ),
    { numRuns: runs(100) },
  );
});
