/** The changes that a setup must not make for any file, and the data that it leaves unchanged. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Refusal } from '../../src/domain/errors.ts';
import type { SetupDocument, TenantDocument } from '../../src/iam/setup/document.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { apply, applyPlan, exported, plan, planLines, setupOf } from './support.ts';

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh?.close());
beforeEach(async () => {
  await fresh.db.knex.raw(
    'truncate tenants, users, user_roles, roles, policies, policy_roles, api_keys, sessions, audit_log cascade',
  );
});

const root = { email: 'root@example.com', name: 'Root', roles: ['admin'] };
const ada = { email: 'ada@acme.test', name: 'Ada', roles: ['editor'] };
const editor = { name: 'editor', permissions: ['chat:*'] };

function acme(parts: Partial<TenantDocument> = {}): SetupDocument {
  return { version: 1, tenants: [{ id: 'acme', name: 'Acme', ...parts }] };
}

function platform(parts: Partial<TenantDocument> = {}): SetupDocument {
  return { version: 1, tenants: [{ id: 'default', name: 'Platform', ...parts }] };
}

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof Refusal)) throw new Error(`no refusal: ${JSON.stringify(error)}`);
  return error.code;
}

async function errorsOf(document: SetupDocument | string, options = {}): Promise<readonly string[]> {
  const planned = await plan(fresh.db, document, options);
  return 'errors' in planned ? planned.errors.map(({ path, message }) => `${path} ${message}`) : [];
}

const KEYCLOAK = { name: 'keycloak', issuer: 'https://login.example/realms/a', audiences: ['postern'] };

describe('issuers', () => {
  const stored = async (id = 'acme') => {
    const { rows } = await fresh.db.knex.raw<{ rows: Record<string, unknown>[] }>(
      'select * from issuers where tenant_id = ? order by name',
      [id],
    );
    return rows;
  };

  /** As text, because a mapping names roles that a file may not have. */
  const mapped = (tenant: Partial<TenantDocument>, issuer: object): string => {
    const [first] = acme(tenant).tenants ?? [];
    return JSON.stringify({ version: 1, tenants: [{ ...first, issuers: [{ ...KEYCLOAK, ...issuer }] }] });
  };

  it('are made, changed member by member, kept where the file does not name them, and pruned where it does', async () => {
    await apply(fresh.db, acme({ issuers: [KEYCLOAK] }));
    expect(await planLines(fresh.db, acme({ issuers: [{ name: 'keycloak', leeway_seconds: 9 }] }))).toEqual([
      'change issuer acme/keycloak',
    ]);
    await apply(fresh.db, acme({ issuers: [{ name: 'keycloak', leeway_seconds: 9 }] }));
    expect(await stored()).toMatchObject([{ issuer: KEYCLOAK.issuer, leeway_seconds: 9 }]);
    await apply(fresh.db, acme({ issuers: [{ name: 'keycloak', leeway_seconds: null }] }));
    expect(await stored()).toMatchObject([{ leeway_seconds: 5 }]);
    await apply(fresh.db, acme({}), { prune: true });
    expect(await stored()).toHaveLength(1);
    await apply(fresh.db, acme({ issuers: [] }), { prune: true });
    expect(await stored()).toEqual([]);
    const { rows: audit } = await fresh.db.knex.raw<{ rows: { action: string }[] }>(
      `select action from audit_log where target_type = 'issuer' order by id`,
    );
    expect(audit.map(({ action }) => action)).toEqual([
      'issuer.create',
      'issuer.update',
      'issuer.update',
      'issuer.delete',
    ]);
  });

  it('apply a wider change to tokens issued after it, as the API does', async () => {
    await apply(fresh.db, acme({ issuers: [KEYCLOAK] }));
    await apply(fresh.db, acme({ issuers: [{ ...KEYCLOAK, audiences: ['postern', 'other'], enabled: false }] }));
    await apply(fresh.db, acme({ issuers: [{ ...KEYCLOAK, audiences: ['postern', 'other'], enabled: true }] }));
    expect(await stored()).toMatchObject([
      { earlier: { audiences: ['postern'] }, revoked_before: expect.any(Date), enabled: true },
    ]);
  });

  it('keep the secret of a client, which no file has, until the issuer gets another value', async () => {
    const login = { ...KEYCLOAK, users: {}, sso: { client_id: 'console', label: 'Log in' } };
    await apply(fresh.db, acme({ issuers: [login] }));
    await fresh.db.knex.raw(
      `update issuers set sso_secret_sealed = 'sealed', sso = sso || '{"client_secret_set": true}' where name = 'keycloak'`,
    );
    expect(await exported(fresh.db)).not.toMatch(/secret_set|sealed/);
    expect(await planLines(fresh.db, acme({ issuers: [login] }))).toEqual([]);
    await apply(fresh.db, acme({ issuers: [{ ...login, sso: { ...login.sso, label: 'Other' } }] }));
    expect(await stored()).toMatchObject([{ sso: { label: 'Other', client_secret_set: true } }]);
    expect((await stored())[0]?.['sso_secret_sealed']).not.toBeNull();
    await apply(fresh.db, acme({ issuers: [{ ...login, issuer: 'https://other.example' }] }));
    expect(await stored()).toMatchObject([{ sso: { client_secret_set: false }, sso_secret_sealed: null }]);
  });

  it.each([
    ['an unknown role', { users: { default_roles: ['wizard'] } }, '/tenants/0/issuers/0/users'],
    ['plain HTTP', { issuer: 'http://login.example' }, '/tenants/0/issuers/0/issuer'],
    ['a key set without keys', { jwks: { keys: [{ kty: 'oct' }] } }, '/tenants/0/issuers/0/jwks'],
  ])('with %s are errors at their place', async (_name, members, path) => {
    const errors = await errorsOf(mapped({}, members));
    expect(errors[0]).toMatch(new RegExp(`^${path} `));
    expect(errors).toHaveLength(1);
  });

  it('never change their kind, and need a value and audiences when they are new', async () => {
    expect(await errorsOf(acme({ issuers: [{ name: 'keycloak' }] }))).toEqual([
      '/tenants/0/issuers/0/issuer This member is required for a new issuer.',
      '/tenants/0/issuers/0/audiences This member is required for a new issuer.',
    ]);
    await apply(fresh.db, acme({ issuers: [KEYCLOAK] }));
    expect(await errorsOf(acme({ issuers: [{ name: 'keycloak', kind: 'spiffe' }] }))).toEqual([
      '/tenants/0/issuers/0/kind The kind of an issuer never changes. The stored one is oidc.',
    ]);
  });

  it('of one value are enabled once, unless the same file disables the other one', async () => {
    await apply(fresh.db, acme({ issuers: [KEYCLOAK] }));
    const others = { id: 'globex', name: 'Globex', issuers: [KEYCLOAK] };
    expect(await refusal(apply(fresh.db, { version: 1, tenants: [others] }))).toBe('already_exists');
    const disabled = { id: 'acme', issuers: [{ ...KEYCLOAK, enabled: false }] };
    await apply(fresh.db, { version: 1, tenants: [disabled, others] });
    expect([await stored(), await stored('globex')]).toMatchObject([[{ enabled: false }], [{ enabled: true }]]);
  });

  it('that keys refer to are not pruned, and a role of a mapping is not deleted', async () => {
    await apply(fresh.db, mapped({ roles: [editor] }, { users: { default_roles: ['editor'] } }));
    expect(await refusal(apply(fresh.db, acme({ roles: [] }), { prune: true }))).toBe('in_use');
    await fresh.db.knex.raw(
      `insert into api_keys (id, tenant_id, description, scopes, digest, prefix, last_four, created_by, proof_issuer_id, proof_subject, proof_claims)
       select 'key_' || repeat('0', 26), 'acme', 'k', '{chat:read}', 'x', '', '', 'x', id, 'pod', '[]' from issuers`,
    );
    expect(await refusal(apply(fresh.db, acme({ issuers: [] }), { prune: true }))).toBe('in_use');
    await fresh.db.knex.raw('update api_keys set revoked_at = now()');
    await apply(fresh.db, acme({ roles: [], issuers: [] }), { prune: true });
    expect(await stored()).toEqual([]);
  });
});

describe('the last administrator', () => {
  beforeEach(() => apply(fresh.db, platform({ users: [root] })));

  it.each([
    ['deleted by pruning', platform({ users: [] }), { prune: true }],
    ['deactivated', platform({ users: [{ ...root, status: 'deactivated' }] }), {}],
    ['stripped of the role', platform({ users: [{ ...root, roles: [] }] }), {}],
  ] as const)('cannot be %s, and --force does not help', async (_, document, options) => {
    const before = await exported(fresh.db);
    expect(await refusal(apply(fresh.db, document, options))).toBe('last_admin');
    expect(await refusal(apply(fresh.db, document, { ...options, force: true }))).toBe('last_admin');
    expect(await exported(fresh.db)).toBe(before);
  });

  it('can go when the same file makes another one', async () => {
    const other = { email: 'other@example.com', name: 'Other', roles: ['admin'] };
    await apply(fresh.db, platform({ users: [other] }), { prune: true });
    expect(await exported(fresh.db)).not.toContain(root.email);
  });

  it('cannot be shut into a suspended tenant, and --force does not help', async () => {
    await apply(fresh.db, acme({ users: [{ ...ada, roles: ['admin'] }] }));
    await apply(fresh.db, platform({ users: [] }), { prune: true });
    const suspended = acme({ status: 'suspended' });
    expect(await refusal(apply(fresh.db, suspended))).toBe('last_admin');
    expect(await refusal(apply(fresh.db, suspended, { force: true }))).toBe('last_admin');
  });

  it('does not make room for itself in a suspended tenant', async () => {
    await apply(fresh.db, acme({ status: 'suspended', users: [{ ...ada, roles: ['admin'] }] }));
    expect(await refusal(apply(fresh.db, platform({ users: [{ ...root, roles: [] }] })))).toBe('last_admin');
    const activates: SetupDocument = {
      version: 1,
      tenants: [
        { id: 'default', name: 'Platform', users: [{ ...root, roles: [] }] },
        { id: 'acme', name: 'Acme', status: 'active' },
      ],
    };
    await apply(fresh.db, activates);
  });

  it('with a password is not replaced by one without, unless the run makes a one-time token for it', async () => {
    await fresh.db.knex.raw(`update users set password_hash = 'set'`);
    const other = { email: 'other@example.com', name: 'Other', roles: ['admin'] };
    const replaced = platform({ users: [other] });
    expect(await refusal(apply(fresh.db, replaced, { prune: true }))).toBe('last_admin');
    await apply(fresh.db, replaced, { prune: true, setupTokens: true });
    expect(await exported(fresh.db)).not.toContain(root.email);
  });
});

describe('max_users', () => {
  const people = ['a', 'b', 'c'].map((name) => ({ email: `${name}@acme.test`, name }));

  it('is never exceeded by making or activating users, and counts who goes in the same run', async () => {
    expect(await refusal(apply(fresh.db, acme({ quotas: { max_users: 2 }, users: people })))).toBe('quota_exceeded');
    await apply(fresh.db, acme({ quotas: { max_users: 2 }, users: people.slice(0, 2) }));
    expect(await refusal(apply(fresh.db, acme({ quotas: { max_users: 2 }, users: people })))).toBe('quota_exceeded');
    const asleep = people.map((one, i) => (i === 0 ? { ...one, status: 'deactivated' as const } : one));
    await apply(fresh.db, acme({ quotas: { max_users: 2 }, users: asleep }));
    const awake = people.map((one) => ({ ...one, status: 'active' as const }));
    expect(await refusal(apply(fresh.db, acme({ quotas: { max_users: 2 }, users: awake })))).toBe('quota_exceeded');
    await apply(fresh.db, acme({ quotas: { max_users: 2 }, users: awake.slice(0, 2) }), { prune: true });
  });

  it('may be lowered below what there is, as by the API', async () => {
    await apply(fresh.db, acme({ users: people }));
    await apply(fresh.db, acme({ quotas: { max_users: 1 }, users: people }));
  });
});

describe('pruning', () => {
  const policy = { name: 'office', effect: 'deny', actions: ['*'], resources: ['*'] } as const;

  beforeEach(() => apply(fresh.db, acme({ roles: [editor], policies: [policy], users: [ada] })));

  it('leaves alone every list that the file does not have, and other tenants', async () => {
    await apply(fresh.db, platform({ users: [root], roles: [{ ...editor, name: 'other' }] }));
    const before = await exported(fresh.db);
    expect(await planLines(fresh.db, acme(), { prune: true })).toEqual([]);
    expect(await planLines(fresh.db, { version: 1 }, { prune: true, pruneTenants: true })).toEqual([]);
    expect(await exported(fresh.db)).toBe(before);
  });

  it('does not happen unless asked for', async () => {
    expect(await planLines(fresh.db, acme({ roles: [], policies: [], users: [] }))).toEqual([]);
  });

  it('deletes what a list does not name, also if the deleted rows refer to each other', async () => {
    const document = acme({ roles: [], policies: [], users: [] });
    expect(await planLines(fresh.db, document, { prune: true })).toEqual([
      'delete role acme/editor',
      'delete policy acme/office',
      'delete user acme/ada@acme.test',
    ]);
    await apply(fresh.db, document, { prune: true });
    expect(await planLines(fresh.db, document, { prune: true })).toEqual([]);
    expect(await exported(fresh.db)).not.toMatch(/editor|office|ada@/);
  });

  it('never deletes a role in use by users or policies outside the file, or by the directory', async () => {
    expect(await refusal(apply(fresh.db, acme({ roles: [] }), { prune: true }))).toBe('in_use');
    await apply(fresh.db, acme({ policies: [{ ...policy, attached_roles: ['editor'] }] }));
    expect(await refusal(apply(fresh.db, acme({ roles: [], users: [] }), { prune: true }))).toBe('in_use');
    await apply(fresh.db, acme({ policies: [], users: [] }), { prune: true });
    await fresh.db.knex.raw(
      `insert into users (id, tenant_id, name, source) values ('usr_00000000000000000000000001', 'acme', 'Dir', 'ldap')`,
    );
    await fresh.db.knex.raw(`insert into user_roles values ('usr_00000000000000000000000001', 'editor', 'directory')`);
    expect(await refusal(apply(fresh.db, acme({ roles: [], users: [] }), { prune: true }))).toBe('in_use');
  });

  it('never deletes a user of the directory', async () => {
    await fresh.db.knex.raw(`update users set source = 'ldap' where email = 'ada@acme.test'`);
    expect(await planLines(fresh.db, acme({ users: [] }), { prune: true })).toEqual([]);
  });

  it('ends the sessions of a deleted user and revokes the keys', async () => {
    const [user] = await fresh.db.knex('users').select('id');
    await fresh.db
      .knex('sessions')
      .insert({ id: 'ses_x', user_id: user.id, expires_at: new Date(Date.now() + 60_000) });
    await fresh.db.knex('api_keys').insert({
      id: 'key_00000000000000000000000001',
      tenant_id: 'acme',
      user_id: user.id,
      description: '',
      digest: Buffer.alloc(32),
      prefix: 'p',
      last_four: 'f',
      scopes: [],
      created_by: 'test',
    });
    await apply(fresh.db, acme({ users: [] }), { prune: true });
    expect(await fresh.db.knex('sessions').whereNull('ended_at').count().first()).toEqual({ count: 0 });
    expect(await fresh.db.knex('api_keys').whereNull('revoked_at').count().first()).toEqual({ count: 0 });
  });

  it('deletes tenants only with a flag of its own, only empty ones, and never the first', async () => {
    await apply(fresh.db, platform({ users: [root] }));
    await apply(fresh.db, { version: 1, tenants: [{ id: 'globex', name: 'Globex', roles: [editor] }] });
    const only: SetupDocument = { version: 1, tenants: [{ id: 'globex', name: 'Globex' }] };
    expect(await planLines(fresh.db, only, { prune: true })).toEqual([]);
    expect(await refusal(apply(fresh.db, only, { pruneTenants: true }))).toBe('in_use');
    expect(await planLines(fresh.db, acme(), { pruneTenants: true })).toEqual(['delete tenant globex']);
    await apply(fresh.db, acme(), { pruneTenants: true });
    expect(await errorsOf(only)).toEqual([
      '/tenants/0/id This id belonged to a deleted tenant and cannot be reused. Choose another id.',
    ]);
  });
});

describe('what is switched off', () => {
  const policy = { name: 'office', effect: 'deny', actions: ['*'], resources: ['*'] } as const;

  it('stays off when the file does not say that it is on, and is switched on when it does', async () => {
    const quiet = acme({ policies: [policy], users: [{ ...ada, roles: [] }] });
    await apply(fresh.db, quiet);
    await apply(
      fresh.db,
      acme({
        status: 'suspended',
        policies: [{ ...policy, enabled: false }],
        users: [{ ...ada, roles: [], status: 'deactivated' }],
      }),
    );
    expect(await planLines(fresh.db, quiet)).toEqual([]);
    const loud = acme({
      status: 'active',
      policies: [{ ...policy, enabled: true }],
      users: [{ ...ada, roles: [], status: 'active' }],
    });
    expect(await planLines(fresh.db, loud)).toEqual([
      'change tenant acme',
      'change policy acme/office',
      'change user acme/ada@acme.test',
    ]);
  });

  it('a user who is switched off loses all sessions', async () => {
    await apply(fresh.db, acme({ users: [{ ...ada, roles: [] }] }));
    const [user] = await fresh.db.knex('users').select('id');
    await fresh.db
      .knex('sessions')
      .insert({ id: 'ses_x', user_id: user.id, expires_at: new Date(Date.now() + 60_000) });
    await apply(fresh.db, acme({ users: [{ ...ada, roles: [], status: 'deactivated' }] }));
    expect(await fresh.db.knex('sessions').whereNull('ended_at').count().first()).toEqual({ count: 0 });
  });
});

describe('a global policy that denies every administrator the right to manage policies', () => {
  const nobody = { name: 'nobody-manages', effect: 'deny', actions: ['admin:*'], resources: ['*'] } as const;

  it.each([
    ['for everyone', nobody],
    ['for admin', { ...nobody, actions: ['*'], attached_roles: ['admin'] }],
  ] as const)('%s is written only when forced', async (_, policy) => {
    const document: SetupDocument = { version: 1, global_policies: [policy] };
    expect(await refusal(apply(fresh.db, document))).toBe('would_lock_out');
    await apply(fresh.db, document, { force: true });
    expect(await planLines(fresh.db, document)).toEqual([]);
  });

  it.each([
    ['binds other roles', { ...nobody, attached_roles: ['developer'] }],
    ['is under a condition', { ...nobody, conditions: { ip_address: { in: ['198.51.100.0/24'] } } }],
    ['is disabled', { ...nobody, enabled: false }],
    ['denies something else', { ...nobody, actions: ['chat:*'] }],
  ] as const)('is written at once when it %s', async (_, policy) => {
    await apply(fresh.db, { version: 1, global_policies: [policy] });
  });
});

describe('names and addresses that others have', () => {
  const policy = { name: 'office', effect: 'deny', actions: ['chat:*'], resources: ['*'] } as const;

  it("a tenant's policy cannot have the name of a global one, nor the reverse; a policy can become global in one run", async () => {
    await apply(fresh.db, acme({ policies: [policy] }));
    const global: SetupDocument = { version: 1, global_policies: [policy] };
    expect(await errorsOf(global)).toEqual([
      '/global_policies/0/name A policy of the tenant acme already has this name. Choose another name.',
    ]);
    await apply(fresh.db, { ...acme({ policies: [] }), ...global }, { prune: true });
    expect(await errorsOf(acme({ policies: [policy] }))).toEqual([
      '/tenants/0/policies/0/name A global policy already has this name. Choose another name.',
    ]);
  });

  it('an address belongs to one user across all tenants; a user pruned in one tenant can be created in another in one run', async () => {
    await apply(fresh.db, acme({ users: [{ ...ada, roles: [] }] }));
    const here: TenantDocument = {
      id: 'globex',
      name: 'Globex',
      users: [{ ...ada, email: 'ADA@acme.test', roles: [] }],
    };
    expect(await errorsOf({ version: 1, tenants: [here] }, { prune: true })).toEqual([
      '/tenants/0/users/0/email A user of the tenant acme has this email address, and users cannot move between tenants. Delete that user first.',
    ]);
    const both: SetupDocument = { version: 1, tenants: [here, { id: 'acme', name: 'Acme', users: [] }] };
    await apply(fresh.db, both, { prune: true });
    expect(await planLines(fresh.db, both, { prune: true })).toEqual([]);
  });

  it('a user of the directory is the directory’s', async () => {
    await apply(fresh.db, acme({ users: [{ ...ada, roles: [] }] }));
    await fresh.db.knex.raw(`update users set source = 'ldap'`);
    expect(await errorsOf(acme({ users: [ada] }))).toContain(
      '/tenants/0/users/0/email This user belongs to a directory or an issuer, which manages the user. Remove the user from the file.',
    );
  });

  it('a role is one of the file, of the tenant or built in', async () => {
    await apply(fresh.db, acme({ roles: [editor] }));
    await apply(fresh.db, acme({ users: [{ ...ada, roles: ['editor', 'analyst'] }] }));
    expect(await errorsOf(acme({ users: [{ ...ada, roles: ['ghost'] }] }))).toEqual([
      '/tenants/0/users/0/roles This role does not exist in the tenant: ghost.',
    ]);
    expect(await errorsOf(acme({ roles: [], users: [ada] }), { prune: true })).toEqual([
      '/tenants/0/users/0/roles This role does not exist in the tenant: editor.',
    ]);
  });
});

describe('changes by others during the run', () => {
  it('a plan that is no longer what was shown is not done, not even in part', async () => {
    const document = acme({ roles: [editor], users: [ada] });
    const setup = setupOf(document);
    const shown = await plan(fresh.db, document);
    if ('errors' in shown) throw new Error('no plan');
    await apply(fresh.db, acme({ roles: [{ ...editor, permissions: ['rag:*'] }] }));
    const before = await exported(fresh.db);
    expect(await applyPlan(fresh.db, setup, shown)).toEqual({ kind: 'changed' });
    expect(await exported(fresh.db)).toBe(before);
  });

  it('a statement that fails leaves nothing of the rest, and no word in the audit log', async () => {
    await fresh.db.knex.raw(`alter table users add constraint no_eve check (email <> 'eve@acme.test')`);
    try {
      const users = [ada, { email: 'eve@acme.test', name: 'Eve' }];
      await expect(apply(fresh.db, acme({ roles: [editor], users }))).rejects.toThrow(/no_eve/);
    } finally {
      await fresh.db.knex.raw('alter table users drop constraint no_eve');
    }
    expect(await exported(fresh.db)).not.toContain('acme');
    expect(await fresh.db.knex('audit_log').count().first()).toEqual({ count: 0 });
  });
});
