/** A setup leaves unchanged what its file does not name, so several files can each have a part. */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { SetupDocument, TenantDocument } from '../../src/iam/setup/document.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { setup } from './any-setup.ts';
import { apply, exported, plan, planLines } from './support.ts';

vi.setConfig({ testTimeout: 120_000 });

let fresh: FreshDatabase;
beforeAll(async () => {
  fresh = await freshDatabase();
});
afterAll(() => fresh?.close());

async function emptied(): Promise<void> {
  await fresh.db.knex.raw('truncate tenants, users, user_roles, roles, policies, policy_roles, audit_log cascade');
}

const ROOT: TenantDocument = {
  id: 'root',
  name: 'Root',
  users: [{ email: 'root@root.test', name: 'Root', roles: ['admin'] }],
};
const ACME = {
  id: 'acme',
  name: 'Acme',
  settings: { rate_limit_rpm: 600, default_model: 'phi-4' },
  quotas: { monthly_tokens: 1000, max_users: 50 },
  metadata: { contract: '17' },
  roles: [
    {
      name: 'small',
      description: 'Small models.',
      permissions: ['chat:*'],
      resource_constraints: { models: ['phi-*'] },
    },
  ],
  policies: [
    {
      name: 'office-hours',
      description: 'Only by day.',
      effect: 'deny',
      actions: ['chat:*'],
      resources: ['*'],
      conditions: { weekly_hours: { not_in: ['Mon-Fri 08:00-18:00'] } },
      attached_roles: ['small'],
      enabled: false,
    },
  ],
  issuers: [
    {
      name: 'keycloak',
      kind: 'oidc',
      issuer: 'https://login.example/realms/a',
      audiences: ['postern'],
      required_claims: [{ claim: 'hd', in: ['acme.example'] }],
      users: { subject_claim: 'sub', create: true, roles: [], default_roles: [] },
      sso: { client_id: 'console', scopes: ['openid'], label: 'Log in' },
      enabled: true,
      max_age_seconds: 60,
    },
  ],
  webhooks: [
    { url: 'https://hooks.acme.example/a', events: ['key.*', 'audit.*'], description: 'On-call', enabled: false },
  ],
  users: [
    {
      email: 'ada@acme.test',
      name: 'Ada',
      department: 'R',
      metadata: { a: 'b' },
      roles: ['small'],
      status: 'deactivated',
    },
  ],
} as const satisfies TenantDocument;

const of = (...tenants: readonly TenantDocument[]): SetupDocument => ({ version: 1, tenants });
const acme = async (): Promise<TenantDocument> =>
  parse(await exported(fresh.db)).tenants.find((tenant: TenantDocument) => tenant.id === 'acme');

describe('a file that names a part of what there is', () => {
  beforeEach(async () => {
    await emptied();
    await apply(fresh.db, of(ROOT, ACME));
  });

  it.each<[string, TenantDocument]>([
    ['the tenant alone', { id: 'acme' }],
    ['its users alone', { id: 'acme', users: [{ email: 'ada@acme.test' }] }],
    ['its roles alone', { id: 'acme', roles: [{ name: 'small' }] }],
    ['its issuers alone', { id: 'acme', issuers: [{ name: 'keycloak' }] }],
    ['its webhooks alone', { id: 'acme', webhooks: [{ url: 'https://hooks.acme.example/a' }] }],
    ['its policies alone', { id: 'acme', policies: [{ name: 'office-hours' }] }],
    ['one quota', { id: 'acme', quotas: { max_users: 50 }, settings: {} }],
  ])('leaves everything else as it is, also with --prune: %s', async (_, tenant) => {
    for (const prune of [false, true]) expect(await planLines(fresh.db, of(tenant), { prune })).toEqual([]);
  });

  it('changes the members that it names and no others', async () => {
    await apply(
      fresh.db,
      of({
        id: 'acme',
        quotas: { max_users: 60 },
        roles: [{ name: 'small', permissions: ['chat:read'] }],
        policies: [{ name: 'office-hours', description: 'By day.' }],
        issuers: [{ name: 'keycloak', max_age_seconds: 120 }],
        webhooks: [{ url: 'https://hooks.acme.example/a', enabled: true }],
        users: [{ email: 'ada@acme.test', department: 'S' }],
      }),
    );
    expect(await acme()).toEqual({
      ...ACME,
      status: 'active',
      quotas: { ...ACME.quotas, max_users: 60 },
      roles: [{ ...ACME.roles[0], permissions: ['chat:read'] }],
      policies: [{ ...ACME.policies[0], description: 'By day.', applies_to: 'roles' }],
      issuers: [{ ...ACME.issuers[0], max_age_seconds: 120 }],
      webhooks: [{ ...ACME.webhooks[0], enabled: true }],
      users: [{ ...ACME.users[0], department: 'S' }],
    });
  });

  it('removes what it says is null', async () => {
    await apply(
      fresh.db,
      of({
        id: 'acme',
        settings: { default_model: null },
        quotas: null,
        metadata: null,
        roles: [{ name: 'small', description: null, resource_constraints: null }],
        policies: [{ name: 'office-hours', conditions: null, attached_roles: null }],
        issuers: [{ name: 'keycloak', required_claims: null, users: null, sso: null, max_age_seconds: null }],
        users: [{ email: 'ada@acme.test', department: null, metadata: null, roles: null }],
      }),
    );
    const { metadata: _none, quotas: _no, ...rest } = ACME;
    expect(await acme()).toEqual({
      ...rest,
      status: 'active',
      settings: { rate_limit_rpm: 600 },
      roles: [{ name: 'small', permissions: ['chat:*'] }],
      policies: [
        {
          name: 'office-hours',
          description: 'Only by day.',
          effect: 'deny',
          actions: ['chat:*'],
          resources: ['*'],
          applies_to: 'roles',
          enabled: false,
        },
      ],
      issuers: [
        {
          name: 'keycloak',
          kind: 'oidc',
          issuer: 'https://login.example/realms/a',
          audiences: ['postern'],
          enabled: true,
        },
      ],
      users: [{ email: 'ada@acme.test', name: 'Ada', status: 'deactivated' }],
    });
  });

  it('is refused where what is new lacks a member that it needs', async () => {
    const tenant = {
      id: 'acme',
      roles: [{ name: 'r' }],
      policies: [{ name: 'p' }],
      users: [{ email: 'new@acme.test' }],
    };
    expect(await plan(fresh.db, of(tenant))).toEqual({
      errors: expect.arrayContaining([
        { path: '/tenants/0/roles/0/permissions', message: 'This member is required for a new role.' },
        { path: '/tenants/0/policies/0/effect', message: 'This member is required for a new policy.' },
        { path: '/tenants/0/policies/0/actions', message: 'This member is required for a new policy.' },
        { path: '/tenants/0/policies/0/resources', message: 'This member is required for a new policy.' },
        { path: '/tenants/0/users/0/name', message: 'This member is required for a new user.' },
      ]),
    });
  });
});

type Members = Readonly<Record<string, unknown>>;
/** Lists that say one thing as a whole. */
const WHOLE = ['required_claims', 'rate_limits'];
/** By which a thing is known, and what a new one needs. */
const KEPT = [
  ...['id', 'name', 'email', 'permissions', 'effect', 'actions', 'resources', 'issuer', 'audiences'],
  ...['url', 'events', 'unit', 'limit', 'period'],
];
/** Members that say one thing together. */
const TOGETHER: Readonly<Record<string, string>> = { attached_roles: 'applies_to', sso: 'users' };
const isMembers = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The document with the members for which `takes` says so; `place` names each of them. */
function part(value: unknown, takes: (place: string) => boolean, place = ''): unknown {
  if (Array.isArray(value) && value.every(isMembers))
    return value.map((one) => part(one, takes, `${place}/${one['email'] ?? one['id'] ?? one['url'] ?? one['name']}`));
  if (!isMembers(value) || /\/(?:metadata|conditions|resource_constraints)$/.test(place)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) => {
      const at = `${place}/${name}`;
      const nested =
        (Array.isArray(member) && member.every(isMembers) && member.length > 0 && !WHOLE.includes(name)) ||
        /^(?:settings|quotas)$/.test(name);
      if (nested) return [[name, part(member, takes, at)]];
      const isScope = name === 'applies_to' && isMembers(member);
      return KEPT.includes(name) || isScope || name === 'version' || takes(`${place}/${TOGETHER[name] ?? name}`)
        ? [[name, member]]
        : [];
    }),
  );
}

it('two files for disjoint parts of the same things commute: in either order the outcome is that of one file with both', async () => {
  await fc.assert(
    fc.asyncProperty(setup, fc.array(fc.boolean(), { minLength: 64, maxLength: 64 }), async (whole, coins) => {
      const places = new Map<string, boolean>();
      const isFirst = (place: string): boolean => {
        const coin = places.get(place) ?? coins[places.size % coins.length] ?? false;
        places.set(place, coin);
        return coin;
      };
      const texts = [() => false, isFirst, (place: string) => !isFirst(place)].map((takes) =>
        JSON.stringify(part(whole, takes)),
      );
      const [bare = '', first = '', second = ''] = texts;
      const outcome = async (...files: readonly string[]): Promise<string> => {
        await emptied();
        await apply(fresh.db, of(ROOT));
        for (const file of files) await apply(fresh.db, file, { force: true });
        return exported(fresh.db);
      };
      const together = await outcome(bare, JSON.stringify(whole));
      expect(await outcome(bare, first, second)).toBe(together);
      expect(await outcome(bare, second, first)).toBe(together);
    }),
    { numRuns: runs(12), endOnFailure: true },
  );
});
