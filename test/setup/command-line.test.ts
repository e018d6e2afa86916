/** `postern apply` and `postern export` on a real database: what they print, what they change, and how they end. */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import { opaqueDigest } from '../../src/identity/opaque-tokens.ts';
import { SECRET_KEY } from '../server/support/client.ts';
import { openStand } from '../server/support/postern.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { apply, exported, planLines, postern } from './support.ts';

vi.setConfig({ testTimeout: 120_000 });

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-setup-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function database(): Promise<FreshDatabase> {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.close());
  return fresh;
}

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

const ACME = `version: 1
global_policies:
  - name: no-banned-nets
    effect: deny
    actions: ["*"]
    resources: ["*"]
    conditions: { ip_address: { in: [198.51.100.0/24] } }
tenants:
  - id: acme
    name: Acme
    settings: { timezone: Europe/Berlin }
    quotas: { max_users: 5 }
    roles:
      - name: small-models
        permissions: ["chat:*"]
        resource_constraints: { models: ["phi-*"] }
    policies:
      - name: office
        effect: deny
        actions: ["agents:*"]
        resources: ["*"]
        conditions: { time: { not_between: [08:00, 18:00] } }
        attached_roles: [small-models]
    users:
      - { email: Ada@acme.test, name: Ada, roles: [small-models] }
      - { email: bob@acme.test, name: Bob }
`;

/** With other office hours. */
const HOURS = ACME.replace(/time: \{.*?\}/, 'weekly_hours: { not_in: [Mon-Fri 08:00-18:00, "Sat 22:00-24:00"] }');

const CHANGED = ACME.replace('max_users: 5', 'max_users: 6')
  .replace('"chat:*"', '"chat:*", "rag:*"')
  .replace(/ +- \{ email: bob.*\n/, '');

interface AuditLine {
  readonly actor_type: string;
  readonly action: string;
  readonly tenant_id: string | null;
}

async function audit(fresh: FreshDatabase): Promise<readonly string[]> {
  const rows = await fresh.db.knex<AuditLine>('audit_log').select('actor_type', 'action', 'tenant_id').orderBy('id');
  return rows.map(({ actor_type, action, tenant_id }) => `${actor_type} ${action} ${tenant_id ?? '-'}`);
}

describe('apply', () => {
  it('shows what it does, does it, writes it down as the system, and has nothing to do the second time', async () => {
    const fresh = await database();
    const path = await file('acme.yaml', ACME);
    const first = await postern(fresh.url, ['apply', path]);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toMatch(/^\+ create global policy no-banned-nets$/m);
    expect(first.stdout).toMatch(/^\+ create role acme\/small-models\n {4}permissions: \["chat:\*"\]$/m);
    expect(first.stdout).toMatch(/^\+ create user acme\/ada@acme\.test$/m);
    expect(first.stdout).toMatch(/^Plan: 6 to create, 0 to change, 0 to delete\.\nDone\.$/m);
    expect(await audit(fresh)).toEqual([
      'system tenant.create acme',
      'system role.create acme',
      'system policy.create -',
      'system policy.create acme',
      'system user.create acme',
      'system user.create acme',
      'system setup.apply -',
    ]);

    const second = await postern(fresh.url, ['apply', path, '--prune', '--dry-run', '--exit-code']);
    expect([second.code, second.stderr]).toEqual([0, '']);
    expect(second.stdout).toBe('Nothing to do: the database already matches the file.\n');
    expect(await audit(fresh)).toHaveLength(7);
  });

  it('shows each member before and after with --dry-run, exits 3 with --exit-code, and deletes only after --yes without a terminal', async () => {
    const fresh = await database();
    await apply(fresh.db, ACME);
    const [state, rows] = [await exported(fresh.db), await audit(fresh)];

    const changed = await file('changed.yaml', CHANGED);
    const plan = await postern(fresh.url, ['apply', changed, '--dry-run', '--prune']);
    expect([plan.code, plan.stderr]).toEqual([0, '']);
    expect(plan.stdout).toBe(
      [
        '~ change tenant acme',
        '    quotas.max_users: 5 -> 6',
        '~ change role acme/small-models',
        '    permissions: ["chat:*"] -> ["chat:*","rag:*"]',
        '- delete user acme/bob@acme.test',
        '',
        'Plan: 0 to create, 2 to change, 1 to delete.',
        '',
      ].join('\n'),
    );
    expect((await postern(fresh.url, ['apply', changed, '--dry-run', '--exit-code'])).code).toBe(3);
    expect([await exported(fresh.db), await audit(fresh)]).toEqual([state, rows]);

    const unasked = await postern(fresh.url, ['apply', changed, '--prune']);
    expect([unasked.code, unasked.stderr]).toEqual([
      2,
      'This plan deletes 1 of the resources above. Nothing was changed. Run the command at a terminal to confirm it, or add --yes.\n',
    ]);
    expect([await exported(fresh.db), await audit(fresh)]).toEqual([state, rows]);

    const done = await postern(fresh.url, ['apply', changed, '--prune', '--yes']);
    expect([done.code, done.stderr]).toEqual([0, '']);
    expect((await audit(fresh)).slice(7)).toEqual([
      'system user.delete acme',
      'system tenant.update acme',
      'system role.update acme',
      'system setup.apply -',
    ]);
    const after = await exported(fresh.db);
    expect(after).toContain('max_users: 6');
    expect(after).not.toContain('bob@acme.test');
  });

  it('shows what its roles and policies newly allow and deny with --show-difference, and diff exits with 2 only if something is newly allowed', async () => {
    const fresh = await database();
    await apply(fresh.db, ACME);
    const state = await exported(fresh.db);
    const wider = await file('wider.yaml', ACME.replace('"chat:*"', '"chat:*", "embeddings:*"'));
    const plan = await postern(fresh.url, ['apply', '-f', wider, '--dry-run', '--show-difference']);
    expect([plan.code, plan.stderr]).toEqual([0, '']);
    expect(plan.stdout).toMatch(
      /^Plan: 0 to create, 1 to change, 0 to delete\.\n\nDifference in acme: 1 user and 0 keys affected\.$/m,
    );
    expect(plan.stdout).toMatch(
      /^ {2}newly allowed: embeddings:write; on models\/phi-\*;.* for 1 user and 0 keys with small-models; by the role small-models$/m,
    );
    const allows = await postern(fresh.url, ['diff', '-f', wider, '--json']);
    expect([allows.code, allows.stderr]).toEqual([2, '']);
    expect(JSON.parse(allows.stdout)).toMatchObject({
      left: 0,
      tenants: [
        { tenant: 'acme', complete: true, newly_denied: [], newly_allowed: [{ permission: 'embeddings:write' }] },
      ],
    });
    const narrower = await file('narrower.yaml', ACME.replace('models: ["phi-*"]', 'models: ["phi-3"]'));
    const denies = await postern(fresh.url, ['diff', narrower]);
    expect([denies.code, denies.stderr]).toEqual([0, '']);
    expect(denies.stdout).toMatch(/^ {2}newly denied: chat:write; on models\/phi-\* except models\/phi-3;/m);
    const same = await postern(fresh.url, ['diff', '-f', await file('same.yaml', ACME)]);
    expect([same.code, same.stdout]).toEqual([
      0,
      'Difference: no request of the users and keys of today would be newly allowed or denied.\n',
    ]);
    for (const wrong of [['diff'], ['diff', '-f', join(folder, 'absent.yaml')]])
      expect((await postern(fresh.url, wrong)).code).toBe(1);
    expect(await exported(fresh.db)).toEqual(state);
  });

  it('applies, exports and plans weekly hours', async () => {
    const fresh = await database();
    await apply(fresh.db, ACME);
    const plan = await postern(fresh.url, ['apply', '-', '--dry-run'], HOURS);
    expect([plan.code, plan.stderr]).toEqual([0, '']);
    expect(plan.stdout).toContain('~ change policy acme/office');
    expect(plan.stdout).toMatch(
      / conditions\.weekly_hours: \(none\) -> \{"not_in":\["Mon-Fri 08:00-18:00","Sat 22:00-24:00"\]\}$/m,
    );
    await apply(fresh.db, HOURS);
    const file = await exported(fresh.db);
    expect(file).toContain('Mon-Fri 08:00-18:00');
    expect(await planLines(fresh.db, file, { prune: true })).toEqual([]);

    const wrong = await postern(fresh.url, ['apply', '-'], HOURS.replace('Sat 22:00-24:00', 'Sat 22:00-22:00'));
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain('<stdin>:22:69: tenants[0].policies[0].conditions.weekly_hours.not_in[1]: ');
    expect(await exported(fresh.db)).toBe(file);
  });

  it('patterns that match no permission, policies that apply to no principal, and webhooks without a secret are applied with a notice that names their line', async () => {
    const fresh = await database();
    const text = ACME.replace('permissions: ["chat:*"]', 'permissions: ["chat:wirte"]')
      .replace('attached_roles: [small-models]', 'applies_to: roles')
      .replace('    users:', '    webhooks: [{ url: "https://hooks.acme.example/a", events: ["*"] }]\n    users:');
    const path = await file('mistyped.yaml', text);
    const applied = await postern(fresh.url, ['apply', path]);
    expect([applied.code, applied.stderr]).toEqual([0, '']);
    expect(applied.stdout).toMatch(/^Plan: 7 to create.*\nDone\.$/m);
    expect(applied.stdout.split('\n').slice(0, 4)).toEqual([
      `notice: ${path}:15:23: tenants[0].roles[0].permissions[0]: chat:wirte covers no permission that a route or an endpoint needs. The nearest existing permission is chat:write.`,
      expect.stringMatching(
        /^notice: .*:18:9: tenants\[0\]\.policies\[0\].*applies to no principal\. Attach a role\.$/,
      ),
      `notice: ${path}:24:16: tenants[0].webhooks[0]: This webhook has no secret, so it sends nothing until \`postern webhook rotate\` gives it one.`,
      '+ create global policy no-banned-nets',
    ]);
  });

  it('patterns that nothing needs are refused with --strict, and nothing has changed', async () => {
    const fresh = await database();
    const path = await file('strict.yaml', ACME.replace('permissions: ["chat:*"]', 'permissions: ["chat:wirte"]'));
    const before = await exported(fresh.db);
    const refused = await postern(fresh.url, ['apply', path, '--strict']);
    expect([refused.code, refused.stdout]).toEqual([2, '']);
    expect(refused.stderr).toContain(
      `${path}:15:23: tenants[0].roles[0].permissions[0]: chat:wirte covers no permission`,
    );
    expect(await exported(fresh.db)).toBe(before);
    expect((await postern(fresh.url, ['apply', await file('clean.yaml', ACME), '--strict'])).code).toBe(0);
  });

  it('a file that is wrong changes nothing: exit 2, and every problem with line, path and expectation, none with a secret', async () => {
    const fresh = await database();
    const path = await file(
      'wrong.yaml',
      ACME.replace('max_users', 'max_user').replace('name: Bob', 'name: Bob, password: hunter2-hunter2'),
    );
    const wrong = await postern(fresh.url, ['apply', path]);
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toBe(
      [
        `${path}:12:15: tenants[0].quotas.max_user: This member is unknown; did you mean max_users?`,
        `${path}:26:44: tenants[0].users[1].password: This member is unknown, and this file must not contain secrets.`,
        '',
      ].join('\n'),
    );
    const ghost = await postern(
      fresh.url,
      ['apply', '-'],
      ACME.replace('Ada, roles: [small-models]', 'Ada, roles: [ghost]'),
    );
    expect([ghost.code, ghost.stdout]).toEqual([2, '']);
    expect(ghost.stderr).toBe(
      '<stdin>:25:44: tenants[0].users[0].roles: This role does not exist in the tenant: ghost.\n',
    );
    expect(await exported(fresh.db)).not.toContain('acme');
  });

  it('what the rules of the platform refuse ends with one sentence and exit 1', async () => {
    const fresh = await database();
    const refused = await postern(fresh.url, ['apply', '-', '--dry-run'], ACME.replace('max_users: 5', 'max_users: 1'));
    expect([refused.code, refused.stdout]).toEqual([1, '']);
    expect(refused.stderr).toBe(
      'The tenant acme may have 1 active users, but the file would give it 2. Raise max_users or deactivate users.\n',
    );
  });

  it('gives new users one-time tokens only when asked, keeps their digests alone, and shows them nowhere else', async () => {
    const fresh = await database();
    const quiet = await postern(fresh.url, ['apply', '-'], ACME.replace(/ +- \{ email: bob.*\n/, ''));
    expect(quiet.stdout).toContain('Done.');
    expect(quiet.stdout).not.toContain('pst_');
    expect(await fresh.db.knex('one_time_tokens').count().first()).toEqual({ count: 0 });

    const told = await postern(fresh.url, ['apply', '-', '--setup-tokens'], ACME);
    expect([told.code, told.stderr]).toEqual([0, '']);
    const tokens = [...told.stdout.matchAll(/^(\S+@\S+) (pst_\S+) until \S+Z$/gm)];
    expect(tokens.map(([, email]) => email)).toEqual(['bob@acme.test']);
    const digest = opaqueDigest(tokens[0]?.[2] ?? '');
    expect(await fresh.db.knex('one_time_tokens').where({ digest }).count().first()).toEqual({ count: 1 });
    const rows = JSON.stringify(await fresh.db.knex('audit_log').select());
    expect(rows).not.toContain('pst_');
    expect(rows).not.toContain(digest.toString('hex'));
  });

  it('the example of the docs is taken, and a second run has nothing to do', async () => {
    const fresh = await database();
    const docs = await readFile(new URL('../../docs/declarative.md', import.meta.url), 'utf8');
    const example = /```yaml\n(.*?)```/s.exec(docs)?.[1] ?? '';
    expect(example).toContain('users:');
    expect((await postern(fresh.url, ['apply', '-'], example)).code).toBe(0);
    expect(await planLines(fresh.db, example, { prune: true, pruneTenants: true })).toEqual([]);

    // Its office hours deny nights and the whole weekend.
    const office = await fresh.db.knex('policies').where({ name: 'office-hours' }).first('conditions');
    const inForce = [
      '2026-11-18T12:00:00Z',
      '2026-11-18T22:00:00Z',
      '2026-11-21T12:00:00Z',
      '2026-11-22T22:00:00Z',
    ].map((time) =>
      conditionsHold(
        compileConditions(office.conditions),
        'deny',
        conditionInputs(Date.parse(time), undefined, 'Europe/Berlin'),
      ),
    );
    expect(inForce).toEqual([false, true, true, true]);
  });

  it('of two at once one does it, and the other finds it done', async () => {
    const fresh = await database();
    const stand = await openStand();
    onTestFinished(() => stand.close());
    const args = ['apply', await file('at-once.yaml', ACME)];
    const env = { POSTERN_DATABASE_URL: fresh.url, POSTERN_SECRET_KEY: SECRET_KEY };
    const both = await Promise.all([stand.run(args, env), stand.run(args, env)]);
    expect(both.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect((await audit(fresh)).filter((row) => row.startsWith('system setup.apply'))).toHaveLength(1);
    expect(
      both.filter(({ stdout }) => stdout.endsWith('Nothing to do: the database already matches the file.\n')),
    ).toHaveLength(1);
  });

  it('refuses options that do not go together, and files that are not there', async () => {
    const runs = [
      ['apply', '-', '--exit-code'],
      ['apply', 'nowhere.yaml'],
    ];
    const finished = await Promise.all(runs.map((args) => postern('postgresql://nobody@127.0.0.1:1/none', args)));
    expect(finished.map(({ code, stdout }) => [code, stdout])).toEqual(runs.map(() => [2, '']));
    expect(finished[0]?.stderr).toMatch(/^--exit-code requires --dry-run\.$/m);
    expect(finished[1]?.stderr).toBe('nowhere.yaml: the file does not exist\n');
  });
});

describe('export', () => {
  it('applied to an empty database gives the same export again, byte by byte', async () => {
    const [one, other] = [await database(), await database()];
    await apply(one.db, ACME);
    const first = await postern(one.url, ['export']);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toContain('ada@acme.test');
    const copied = await postern(other.url, ['apply', '-'], first.stdout);
    expect([copied.code, copied.stderr]).toEqual([0, '']);
    expect((await postern(other.url, ['export'])).stdout).toBe(first.stdout);
    expect(await planLines(one.db, first.stdout, { prune: true, pruneTenants: true })).toEqual([]);
  });

  it('has no secret and no user of a directory', async () => {
    const fresh = await database();
    const { knex } = fresh.db;
    await apply(fresh.db, ACME);
    const [ada] = await knex('users').where({ email: 'ada@acme.test' }).select('id');
    const secrets = ['$argon2id$v=19$secret-of-a-test', '5'.repeat(64), '6'.repeat(64)];
    await knex('one_time_tokens').insert({
      digest: Buffer.from(secrets[2] ?? '', 'hex'),
      user_id: ada.id,
      purpose: 'password_setup',
      expires_at: new Date(Date.now() + 60_000),
    });
    await knex('users').where({ id: ada.id }).update({ password_hash: secrets[0] });
    await knex('api_keys').insert({
      id: 'key_00000000000000000000000001',
      tenant_id: 'acme',
      user_id: ada.id,
      description: 'described-in-a-test',
      digest: Buffer.from(secrets[1] ?? '', 'hex'),
      prefix: 'psk_pre',
      last_four: 'last',
      scopes: ['chat:*'],
      created_by: 'test',
    });
    await knex('users').insert({
      id: 'usr_00000000000000000000000001',
      tenant_id: 'acme',
      email: 'dir@acme.test',
      name: 'Dir',
      source: 'ldap',
    });
    const { code, stdout } = await postern(fresh.url, ['export']);
    expect(code).toBe(0);
    for (const secret of [...secrets, 'pst_', 'psk_', 'described-in-a-test', 'dir@acme.test', ada.id]) {
      expect(stdout).not.toContain(secret);
    }
    expect(stdout).toContain('# Not included: 1 from a directory or without an email address.');
  });

  it('of one tenant holds that tenant alone, and says so when there is none', async () => {
    const fresh = await database();
    const two = `${ACME}  - { id: globex, name: Globex }\n`;
    await apply(fresh.db, two);
    const one = await postern(fresh.url, ['export', '--tenant', 'acme', '--without-users']);
    expect(one.code).toBe(0);
    expect(one.stdout).toContain('id: acme');
    expect(one.stdout).not.toMatch(/globex|global_policies|^ +users:/m);
    const none = await postern(fresh.url, ['export', '--tenant', 'nobody']);
    expect([none.code, none.stdout, none.stderr]).toEqual([
      1,
      '',
      'The tenant does not exist, or you may not act in it.\n',
    ]);
  });
});
