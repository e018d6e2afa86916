/** Lists of users and keys against a naive twin, on random people, filters and page sizes. */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Knex } from 'knex';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { makeId, type TenantId, type UserId } from '../../src/domain/ids.ts';
import type { KeyStatus } from '../../src/iam/api-keys/entity.ts';
import {
  countKeys,
  KEY_ORDERS,
  type KeyFilter,
  type KeyOrder,
  keySearch,
  listKeys,
} from '../../src/iam/api-keys/list-queries.ts';
import {
  countUsers,
  listUsers,
  USER_ORDERS,
  type UserFilter,
  type UserOrder,
  userSearch,
} from '../../src/iam/users/list-queries.ts';
import { setManualRoles, setUserStatus } from '../../src/iam/users/queries.ts';
import type { Page, TenantScope } from '../../src/store/paging.ts';
import { runNamedQuery } from '../../src/store/prepared.ts';
import { matchingPage } from '../../src/store/sorted-pages.ts';
import { type FreshDatabase, freshDatabase } from '../support/database.ts';
import { runs } from '../support/properties.ts';
import { digestOf, roleName, seedKey, tenantId } from './seed.ts';

const TENANTS = ['acme', 'globex', 'initech'].map(tenantId);
const ROLES = ['analyst', 'auditor', 'developer', 'night-shift'].map(roleName);
const STATUSES = ['active', 'deactivated'] as const;
/** Texts that share parts, cross cases and scripts, and hold every character that means something to a query. */
const NAMES = [
  'Ann Lee',
  'ANNE Leeds',
  "Miles O'Hara",
  'Back\\slash',
  'x & y | !z:*',
  'Zoë Weiß',
  '李雷',
  'a',
  '%_%',
  '(<->)',
  'q\u0001t',
];
const DEPARTMENTS = [null, 'Sales', 'Sales & Marketing', 'Recherche'];

interface ListedPerson {
  readonly id: UserId;
  readonly tenant: TenantId;
  readonly name: string;
  readonly email: string | null;
  readonly department: string | null;
  readonly status: 'active' | 'deactivated';
  readonly roles: readonly string[];
  /** Undefined for local users. */
  readonly directoryStatus: 'active' | 'removed' | undefined;
  readonly inConflict: boolean;
  readonly locked: boolean;
  readonly createdAt: Date;
  readonly lastLoginAt: Date | undefined;
}

let fresh: FreshDatabase;
let people: readonly ListedPerson[];

/** The same at every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function idBytes(n: number): Uint8Array {
  return Uint8Array.from({ length: 10 }, (_, i) => (n >> (8 * (9 - i))) & 255);
}

const bytes = (n: number): Uint8Array => idBytes(n & 0xff_ffff);

/** Few instants, so that rows share them, and with parts of a millisecond. */
const instant = (n: number): Date => new Date(1_750_000_000_000 + n * 1000);

beforeAll(async () => {
  fresh = await freshDatabase();
  for (const id of TENANTS) await fresh.db.knex('tenants').insert({ id, name: id });
  const pick = numbers(7);
  people = Array.from({ length: 400 }, (_, n) => {
    const email = pick(20) === 0 ? null : `person${n}@${pick(2) === 0 ? 'example.com' : 'example.org'}`;
    const ofDirectory = pick(3) === 0;
    return {
      id: makeId('usr', 1_750_000_000_000 + n, bytes(n)),
      tenant: TENANTS[pick(10) < 7 ? 0 : pick(3)] ?? tenantId('acme'),
      name: NAMES[pick(NAMES.length)] ?? '',
      email,
      department: DEPARTMENTS[pick(DEPARTMENTS.length)] ?? null,
      status: pick(8) === 0 ? 'deactivated' : 'active',
      roles: ROLES.filter(() => pick(4) === 0),
      directoryStatus: ofDirectory ? (pick(4) === 0 ? 'removed' : 'active') : undefined,
      inConflict: ofDirectory && email === null,
      locked: pick(9) === 0,
      createdAt: instant(pick(200)),
      lastLoginAt: ofDirectory || pick(2) === 0 ? instant(pick(200)) : undefined,
    };
  });
  const { knex } = fresh.db;
  await knex.batchInsert(
    'users',
    people.map(({ id, tenant, name, email, department, status, directoryStatus, inConflict, createdAt }) => ({
      ...{ id, tenant_id: tenant, name, email, department, status, created_at: createdAt },
      ...{
        source: directoryStatus === undefined ? 'local' : 'ldap',
        directory: directoryStatus && 'corp',
        directory_id: directoryStatus && id,
      },
      directory_suspension: directoryStatus === 'removed' ? 'removed' : null,
      directory_suspended_at: directoryStatus === 'removed' ? new Date() : null,
      email_conflict: inConflict ? `taken-${id}` : null,
    })),
  );
  // Every user has failures: over the limit now, over the limit in an ended window, or below it. Unknown accounts too.
  const subject = (text: string): Buffer => createHash('sha256').update(text).digest();
  const accountOf = ({ id, email, directoryStatus }: ListedPerson): string => {
    if (directoryStatus !== undefined) return `directory:${id}`;
    return email === null ? `user:${id}` : `email:${email}`;
  };
  await knex.batchInsert(
    'user_logins',
    people
      .filter(({ lastLoginAt }) => lastLoginAt !== undefined)
      .map((one) => ({
        user_id: one.id,
        last_login_at: one.lastLoginAt,
        account: one.directoryStatus === undefined ? null : subject(accountOf(one)),
      })),
  );
  const until = (ms: number): Date => new Date(Date.now() + ms);
  await knex.batchInsert('login_failures', [
    ...people.map((one, n) => ({
      ...{ scope: 'account', subject: subject(accountOf(one)), window_start: new Date(), failures: 10 },
      locked_until: one.locked ? until(900_000) : n % 2 === 0 ? until(-1000) : null,
    })),
    {
      scope: 'account',
      subject: subject('email:unknown'),
      window_start: new Date(),
      failures: 10,
      locked_until: until(900_000),
    },
    {
      scope: 'address',
      subject: subject('email:address'),
      window_start: new Date(),
      failures: 10,
      locked_until: until(900_000),
    },
  ]);
  // By hand, by the directory, or by both.
  const given = people.flatMap(({ id, roles }, n) =>
    roles.flatMap((role_name, i) =>
      ['manual', 'directory']
        .filter((source) => (n + i) % 3 === 2 || source === ((n + i) % 3 === 0 ? 'manual' : 'directory'))
        .map((source) => ({ user_id: id, role_name, source })),
    ),
  );
  await knex.batchInsert('user_roles', given);
});
afterAll(() => fresh.close());

const scopes = fc.oneof(
  fc.constant<TenantScope>({ kind: 'every' }),
  fc.constantFrom(...TENANTS).map((tenant): TenantScope => ({ kind: 'one', tenant })),
);

/** All pages of a list, joined. */
async function pages<Row extends { readonly id: string; readonly position: readonly string[] }>(
  size: number,
  fetch: (page: Page) => Promise<readonly Row[]>,
): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let after: readonly string[] | undefined; ; ) {
    const rows = await fetch({ after, take: size + 1 });
    const shown = rows.slice(0, size);
    ids.push(...shown.map((row) => row.id));
    const last = shown.at(-1);
    if (rows.length <= size || last === undefined) return ids;
    after = last.position;
  }
}

/** Sorts in the obvious way: by the value, then by id; rows without a value are last. */
function sortedBy<Row extends { readonly id: string }>(
  rows: readonly Row[],
  descending: boolean,
  sortValue: (row: Row) => Date | string | null | undefined,
): readonly string[] {
  const turn = descending ? -1 : 1;
  const compare = (left: Buffer | string | number, right: Buffer | string | number): number =>
    left < right ? -turn : left > right ? turn : 0;
  return rows
    .toSorted((one, other) => {
      const [left, right] = [sortValue(one), sortValue(other)].map((value) =>
        value instanceof Date ? value.getTime() : value,
      );
      if ((left ?? null) === null && (right ?? null) === null) return compare(one.id, other.id);
      if ((left ?? null) === null) return 1;
      if ((right ?? null) === null) return -1;
      if (typeof left === 'string' && typeof right === 'string') {
        const order = turn * Buffer.compare(Buffer.from(left), Buffer.from(right));
        return order === 0 ? compare(one.id, other.id) : order;
      }
      return compare(left ?? '', right ?? '') || compare(one.id, other.id);
    })
    .map((row) => row.id);
}

const inScope = (scope: TenantScope, tenant: TenantId): boolean => scope.kind === 'every' || scope.tenant === tenant;

describe('users', () => {
  const needles = fc.oneof(
    fc.constantFrom(
      'ann',
      'LEE',
      "o'h",
      '\\',
      '&',
      ':*',
      'ß',
      'ë',
      '李',
      '%',
      '_',
      'a',
      'le',
      'sales & m',
      'person1',
      '@example.org',
      ' ',
    ),
    fc.constantFrom(...NAMES),
    fc.string({ minLength: 1, maxLength: 5 }).filter((text) => !text.includes('\0') && text.isWellFormed()),
    fc.nat({ max: 399 }).map((n) => `person${n}@`),
  );
  const filters = fc.record(
    {
      role: fc.constantFrom(...ROLES, 'nobody-has-it'),
      status: fc.constantFrom(...STATUSES),
      q: needles,
      email: fc.oneof({ weight: 1, arbitrary: fc.nat({ max: 420 }).map((n) => `person${n}@example.com`) }),
      directory_status: fc.constantFrom('active' as const, 'removed' as const, 'disabled' as const),
      locked: fc.constant(true as const),
      email_conflict: fc.constant(true as const),
    },
    { requiredKeys: [] },
  );
  /** Omits each of the selective filters half of the time; otherwise almost no user would pass all of them. */
  const rarelyNarrow = filters.chain((filter) =>
    fc.subarray(['email', 'directory_status', 'locked', 'email_conflict']).map((left) => {
      const kept: Partial<typeof filter> = Object.fromEntries(
        Object.entries(filter).filter(([name]) => !left.includes(name)),
      );
      return kept;
    }),
  );

  const orders = fc.record({ member: fc.constantFrom(...USER_ORDERS), descending: fc.boolean() });
  const VALUES = {
    created_at: (one: ListedPerson) => one.createdAt,
    last_login_at: (one: ListedPerson) => one.lastLoginAt,
    name: (one: ListedPerson) => one.name.toLowerCase(),
  };

  function naive(
    scope: TenantScope,
    { role, status, q, email, ...care }: Partial<UserFilter>,
    { member, descending }: UserOrder,
  ): readonly string[] {
    const found = people
      .filter((one) => care.directory_status === undefined || one.directoryStatus === care.directory_status)
      .filter(
        (one) => (care.locked === undefined || one.locked) && (care.email_conflict === undefined || one.inConflict),
      )
      .filter((one) => inScope(scope, one.tenant))
      .filter((one) => role === undefined || one.roles.includes(role))
      .filter((one) => status === undefined || one.status === status)
      .filter((one) => email === undefined || one.email === email)
      .filter(
        (one) =>
          q === undefined ||
          [one.name, one.email, one.department].some((text) => text?.toLowerCase().includes(q.toLowerCase())),
      );
    return sortedBy(found, descending, VALUES[member]);
  }

  test('every filter and any of them together shows exactly the users it describes, page by page in every order', async () => {
    await fc.assert(
      fc.asyncProperty(
        scopes,
        rarelyNarrow,
        orders,
        fc.integer({ min: 1, max: 200 }),
        async (scope, filter, order, size) => {
          const { knex } = fresh.db;
          const found = await pages(size, async (page) => (await listUsers(knex, scope, filter, page, order)).rows);
          expect(found).toEqual(naive(scope, filter, order));
          const count = (most: number) => countUsers(knex, scope, filter, most);
          expect([await count(1000), await count(5)]).toEqual([found.length, Math.min(5, found.length)]);
          const all = matchingPage(userSearch(scope, filter, order), { after: undefined, take: 1000 });
          const byFilter = (await runNamedQuery<{ id: string }>(knex, all)).map(({ id }) => id);
          expect(byFilter, 'by an index of the filter').toEqual(found);
        },
      ),
      { numRuns: runs(150) },
    );
  });

  test('a text of few users is found behind any number of users without it', async () => {
    const patient = fresh.db.reopen({ poolMax: 1, queryTimeoutMs: 60_000 });
    const { knex } = patient;
    const late = {
      id: makeId('usr', 1_760_000_000_000, bytes(1)),
      tenant_id: 'globex',
      name: 'Xanthippe Quux',
      email: "x'\\@example.net",
    };
    await knex.raw(
      `insert into users (id, tenant_id, name) select 'usr_0' || lpad(to_hex(i), 25, '0'), 'globex', 'Filler ' || case when i % 100 = 0 then 'rare ' else '' end || i from generate_series(1, 2100) i`,
    );
    await knex('users').insert(late);
    for (const q of ['xanth', 'ippe qu', 'X', "'\\@", 'xanthippe quux', 'ux']) {
      for (const scope of [{ kind: 'every' }, { kind: 'one', tenant: tenantId('globex') }] as const) {
        const filter = q === 'X' ? { q: 'xan', status: 'active' as const } : { q };
        const { rows } = await listUsers(knex, scope, filter, { after: undefined, take: 51 });
        expect(
          rows.map((row) => row.id),
          q,
        ).toContain(late.id);
        expect(rows.every((row) => `${row.name}\n${row.email}`.toLowerCase().includes(filter.q.toLowerCase()))).toBe(
          true,
        );
      }
      const { rows: elsewhere } = await listUsers(
        knex,
        { kind: 'one', tenant: tenantId('initech') },
        { q: 'quux' },
        { after: undefined, take: 51 },
      );
      expect(elsewhere).toEqual([]);
    }
    const { rows: rare } = await listUsers(knex, { kind: 'every' }, { q: 'ler rare' }, { after: undefined, take: 51 });
    expect(rare.map((row) => row.name)).toEqual(Array.from({ length: 21 }, (_, i) => `Filler rare ${(21 - i) * 100}`));
    await knex('users').where({ name: late.name }).delete();
    await knex('users').where('name', 'like', 'Filler%').delete();
    await patient.close();
  });

  test('the columns that the lists search follow every change of roles, status and text', async () => {
    const { knex } = fresh.db;
    const [someone] = people.filter((one) => one.tenant === 'initech' && one.status === 'active');
    if (someone === undefined) throw new Error('nobody is there');
    const shows = async (filter: UserFilter) => {
      const { rows } = await listUsers(knex, { kind: 'one', tenant: someone.tenant }, filter, {
        after: undefined,
        take: 201,
      });
      return rows.some((row) => row.id === someone.id);
    };
    await setManualRoles(knex, someone.id, [roleName('fire-warden')]);
    await knex('user_roles').where({ user_id: someone.id, source: 'directory' }).delete();
    expect(await shows({ role: 'fire-warden' })).toBe(true);
    await setUserStatus(knex, someone.tenant, [someone.id], 'deactivated');
    expect([
      await shows({ role: 'fire-warden', status: 'active' }),
      await shows({ role: 'fire-warden', status: 'deactivated' }),
    ]).toEqual([false, true]);
    await knex('user_roles').insert({ user_id: someone.id, role_name: 'from-afar', source: 'directory' });
    await knex('user_roles')
      .where({ user_id: someone.id, role_name: 'fire-warden' })
      .update({ role_name: 'first-aider' });
    expect([
      await shows({ role: 'from-afar' }),
      await shows({ role: 'first-aider' }),
      await shows({ role: 'fire-warden' }),
    ]).toEqual([true, true, false]);
    await knex('users').where({ id: someone.id }).update({ name: 'Brand New' });
    expect([
      await shows({ q: 'brand' }),
      await shows({ q: 'and n', role: 'first-aider', status: 'deactivated' }),
    ]).toEqual([true, true]);
    await setManualRoles(knex, someone.id, []);
    await knex('user_roles').where({ user_id: someone.id }).delete();
    expect([await shows({ role: 'from-afar' }), await shows({ role: 'first-aider' })]).toEqual([false, false]);
    const { rows } = await knex.raw<{ rows: unknown[] }>(
      `select u.id from users u left join user_roles r on r.user_id = u.id group by u.id
       having u.role_names <> array_remove(array_agg(distinct r.role_name order by r.role_name), null)
         or bool_or(r.status <> u.status or r.tenant_id <> u.tenant_id)`,
    );
    expect(rows).toEqual([]);
  });

  test('two concurrent transactions that each remove a role of a user leave no role in the column that the lists search', async () => {
    const { knex } = fresh.db;
    const id = makeId('usr', 1_770_000_000_000, bytes(3));
    await knex('users').insert({ id, tenant_id: 'acme', name: 'Two Hats' });
    await setManualRoles(knex, id, [roleName('first-hat'), roleName('second-hat')]);
    const take = (q: Knex, role: string) => q('user_roles').where({ user_id: id, role_name: role }).delete();
    const first = await knex.transaction();
    await take(first, 'first-hat');
    const second = take(knex, 'second-hat').then(() => undefined);
    // Until the second one waits for the first.
    await vi.waitUntil(
      async () => {
        const { rows } = await knex.raw<{ rows: unknown[] }>(
          `select from pg_locks join pg_stat_activity using (pid)
           where not granted and locktype = 'transactionid' and datname = current_database()`,
        );
        return rows.length > 0;
      },
      { timeout: 10_000 },
    );
    await first.commit();
    await second;
    expect(await knex('users').where({ id }).select('role_names')).toEqual([{ role_names: [] }]);
    await knex('users').where({ id }).delete();
  });

  test('a role that is given during the deactivation of its holder is listed with the new status of the holder', async () => {
    const { knex } = fresh.db;
    const [someone] = people.filter(
      (one) => one.tenant === 'acme' && one.status === 'active' && !one.roles.includes('auditor'),
    );
    if (someone === undefined) throw new Error('nobody is there');
    const first = await knex.transaction();
    await setUserStatus(first, someone.tenant, [someone.id], 'deactivated');
    const second = knex('user_roles').insert({ user_id: someone.id, role_name: 'late-role' });
    const given = second.then(() => undefined);
    await first.commit();
    await given;
    const { rows: listed } = await listUsers(
      knex,
      { kind: 'one', tenant: someone.tenant },
      { role: 'late-role', status: 'deactivated' },
      { after: undefined, take: 2 },
    );
    expect(listed.map((row) => row.id)).toEqual([someone.id]);
  });
});

describe('keys', () => {
  const NOW = Date.UTC(2026, 6, 15, 12);
  const DAY = 86_400_000;
  /** Around now, around the ends of months, years away, and never. */
  const EXPIRIES = [
    -800,
    -200,
    -46,
    -45,
    -20,
    -15,
    -14.5,
    -1,
    -1e-8,
    0,
    1e-8,
    1,
    15,
    16.4,
    16.5,
    17,
    40,
    200,
    365,
    3650,
    Number.POSITIVE_INFINITY,
  ].map((days) => (days === Number.POSITIVE_INFINITY ? null : new Date(NOW + Math.round(days * DAY))));

  interface AKey {
    readonly id: string;
    readonly tenant: TenantId;
    readonly owner: UserId | null;
    readonly expiresAt: Date | null;
    readonly revoked: boolean;
    readonly name: string | null;
    readonly description: string;
    readonly metadata: Readonly<Record<string, string>>;
    readonly prefix: string;
    readonly disabled: boolean;
    readonly createdAt: Date;
    readonly lastUsedAt: Date | null;
  }
  let keys: readonly AKey[];
  let owners: readonly UserId[];

  beforeAll(async () => {
    const pick = numbers(11);
    owners = Array.from(
      { length: 4 },
      (_, n) => (n < 3 ? people[n]?.id : undefined) ?? makeId('usr', 1_740_000_000_000, bytes(n)),
    );
    keys = Array.from({ length: 300 }, (_, n) => ({
      id: makeId('key', 1_750_000_000_000 + n, bytes(n)),
      tenant: TENANTS[pick(3)] ?? tenantId('acme'),
      owner: owners[pick(5)] ?? null,
      expiresAt: EXPIRIES[pick(EXPIRIES.length)] ?? null,
      revoked: pick(6) === 0,
      name: pick(3) === 0 ? null : (NAMES[pick(NAMES.length)] ?? null),
      description: ['build server', 'Chat Service', "O'Hara & sons"][pick(3)] ?? '',
      metadata: [{}, { team: 'Zoë Weiß' }, { env: 'prod', 'back\\slash': '"quoted"' }][pick(3)] ?? {},
      prefix: ['psk_0000', 'psk_00Ab', 'psk_9zzz', 'sk-proj-~'][pick(4)] ?? '',
      disabled: pick(6) === 0,
      createdAt: instant(pick(200)),
      lastUsedAt: pick(3) === 0 ? null : instant(pick(200)),
    }));
    await fresh.db.knex.batchInsert(
      'api_keys',
      keys.map(({ id, tenant, owner, expiresAt, revoked, name, description, metadata, prefix, ...key }) => ({
        id,
        disabled_at: key.disabled ? new Date(NOW) : null,
        created_at: key.createdAt,
        last_used_at: key.lastUsedAt,
        tenant_id: tenant,
        user_id: owner,
        ...{ name, description, metadata: JSON.stringify(metadata), prefix },
        digest: Buffer.from(digestOf(id), 'hex'),
        last_four: '0000',
        scopes: ['chat:read'],
        expires_at: expiresAt,
        revoked_at: revoked ? new Date(NOW) : null,
        created_by: 'test',
      })),
    );
  });

  function statusOf(key: AKey): KeyStatus {
    if (key.revoked) return 'revoked';
    if (key.disabled) return 'disabled';
    return key.expiresAt !== null && key.expiresAt.getTime() <= NOW ? 'expired' : 'active';
  }

  const VALUES = {
    created_at: (key: AKey) => key.createdAt,
    last_used_at: (key: AKey) => key.lastUsedAt,
    expires_at: (key: AKey) => key.expiresAt,
    name: (key: AKey) => key.name?.toLowerCase(),
  };
  const orders: fc.Arbitrary<KeyOrder> = fc.record({
    member: fc.constantFrom(...KEY_ORDERS),
    descending: fc.boolean(),
  });

  test('every filter and any of them together shows exactly the keys it describes, page by page in every order', async () => {
    const filters = fc.record(
      {
        status: fc.constantFrom('active', 'disabled', 'expired', 'revoked' as const),
        userId: fc.constantFrom(0, 1, 2, 3),
        withoutExpiry: fc.constant(true),
        unusedSince: fc.integer({ min: 0, max: 200 }).map(instant),
        searchesOwners: fc.constant(true),
        expiresBefore: fc.oneof(
          fc.constantFrom(...EXPIRIES.filter((expiry) => expiry !== null)),
          fc.integer({ min: -900, max: 4000 }).map((days) => new Date(NOW + days * DAY)),
        ),
        prefix: fc.constantFrom('p', 'psk_', 'psk_0', 'psk_00', 'psk_00A', 'psk_00a', 'sk-proj-~', '~', '%', '_'),
        q: fc.constantFrom(
          'ann',
          'SERVER',
          'e',
          'Ö',
          'zoë weiß',
          'prod',
          'env',
          "o'hara",
          '\\',
          '"quoted"',
          '%',
          'person',
          'sales',
        ),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        scopes,
        filters,
        orders,
        fc.integer({ min: 1, max: 200 }),
        async (scope, { userId: n, ...rest }, order, size) => {
          const owner = n === undefined ? undefined : owners[n];
          const filter: KeyFilter = owner === undefined ? rest : { ...rest, userId: owner };
          const found = await pages(
            size,
            async (page) => (await listKeys(fresh.db.knex, scope, filter, page, new Date(NOW), order)).rows,
          );
          const { status, expiresBefore, unusedSince, prefix = '', q = '' } = rest;
          const matching = keys
            .filter((key) => inScope(scope, key.tenant))
            .filter((key) => owner === undefined || key.owner === owner)
            .filter((key) => status === undefined || statusOf(key) === status)
            .filter((key) => expiresBefore === undefined || (key.expiresAt !== null && key.expiresAt < expiresBefore))
            .filter((key) => rest.withoutExpiry !== true || key.expiresAt === null)
            .filter((key) => unusedSince === undefined || (key.lastUsedAt ?? key.createdAt) < unusedSince)
            .filter((key) => key.prefix.startsWith(prefix))
            .filter((key) =>
              [...textsOf(key), ...(rest.searchesOwners === true ? ownerTexts(key) : [])].some((text) =>
                text.toLowerCase().includes(q.toLowerCase()),
              ),
            );
          const expected = sortedBy(matching, order.descending, VALUES[order.member]);
          expect(found).toEqual(expected);
          const count = (most: number) => countKeys(fresh.db.knex, scope, filter, new Date(NOW), most);
          expect([await count(1000), await count(5)]).toEqual([expected.length, Math.min(5, expected.length)]);
          const all = matchingPage(keySearch(scope, filter, new Date(NOW), order), { after: undefined, take: 1000 });
          const ids = (await runNamedQuery<{ id: string }>(fresh.db.knex, all)).map((row) => row.id);
          expect(ids, 'by an index of the filter').toEqual(expected);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  /** An owner of another tenant is not one: its names find no key. */
  function ownerTexts({ owner, tenant }: AKey): readonly string[] {
    const user = people.find((person) => person.id === owner && person.tenant === tenant);
    return user === undefined ? [] : [user.name, user.email ?? ''];
  }

  function textsOf({ name, description, metadata }: AKey): readonly string[] {
    // Nothing is found across two texts, except what holds a line break itself.
    return [name ?? '', description, ...Object.entries(metadata).flat()];
  }

  test('a text or prefix that few keys of a large tenant have is found behind thousands of others', async () => {
    const { knex } = fresh.db;
    await knex('tenants').insert({ id: 'umbrella', name: 'Umbrella' });
    // Without triggers, and in parts: a statement has 2 s.
    for (let from = 1; from <= 4500; from += 500) {
      await knex.raw(
        `alter table api_keys disable trigger user;
         insert into api_keys (id, tenant_id, name, description, digest, prefix, last_four, scopes, created_by)
         select 'key_' || lpad(i::text, 26, '0'), 'umbrella', 'filler ' || i, 'k', sha256(i::text::bytea),
           case when i % 1500 = 0 then 'old-' || i else 'psk_' || lpad(i::text, 4, '0') end, '0000', '{chat:read}', 'test'
         from generate_series(${from}, ${from + 499}) i;
         alter table api_keys enable trigger user`,
      );
    }
    const scope = { kind: 'one', tenant: tenantId('umbrella') } as const;
    const found = async (filter: KeyFilter) =>
      pages(50, async (page) => (await listKeys(knex, scope, filter, page, new Date(NOW))).rows);
    const id = (i: number) => `key_${String(i).padStart(26, '0')}`;
    expect(await found({ q: 'FILLER 4321' })).toEqual([id(4321)]);
    expect(await found({ prefix: 'old-' })).toEqual([4500, 3000, 1500].map(id));
    expect(await found({ prefix: 'old-', q: 'ler 3' })).toEqual([id(3000)]);
    expect(await found({ q: 'filler 44' })).toHaveLength(111);
    expect(await found({ q: 'filler' })).toHaveLength(4500);
    expect(await found({ q: 'filler 4321', status: 'revoked' })).toEqual([]);
  });
});

test('a database that had users and keys before is listed like one that is new', async () => {
  const old = await freshDatabase('');
  const run = (name: string) =>
    old.db.knex.raw(
      readFileSync(new URL(`../../src/store/migrations/${name}`, import.meta.url), 'utf8').replaceAll('?', '\\?'),
    );
  await run('0001-foundation.sql');
  const id = makeId('usr', 1_750_000_000_000, bytes(1));
  await old.db.knex('tenants').insert({ id: 'acme', name: 'Acme' });
  await old.db.knex('users').insert({ id, tenant_id: 'acme', name: 'Early Bird', status: 'deactivated' });
  await old.db.knex('user_roles').insert([
    { user_id: id, role_name: 'auditor', source: 'manual' },
    { user_id: id, role_name: 'auditor', source: 'directory' },
    { user_id: id, role_name: 'analyst', source: 'manual' },
  ]);
  const key = await seedKey(old.db, 'acme', digestOf('early'), { expires_at: new Date('2020-02-29T23:59:59Z') });
  const before = await old.db.query({ text: 'select feed_position() as position' });
  await old.db.knex.transaction(async (trx) => {
    await trx.raw(
      readFileSync(new URL('../../src/store/migrations/0002-iam-indexes.sql', import.meta.url), 'utf8').replaceAll(
        '?',
        '\\?',
      ),
    );
  });
  expect(await old.db.query({ text: 'select feed_position() as position' })).toEqual(before);
  // For the columns that lists show today.
  for (const name of [
    '0003-audit-chain.sql',
    '0008-directory.sql',
    '0021-directory-status.sql',
    '0023-key-search.sql',
    '0025-user-care.sql',
    '0037-deleted-roles.sql',
    '0043-list-orders.sql',
    '0049-issuers.sql',
  ])
    await run(name);
  for (const table of ['users', 'api_keys']) await old.db.knex.raw(`alter table ${table} add column rate_limits jsonb`);
  expect(await old.db.query({ text: 'select feed_position() as position' })).toEqual(before);
  const everywhere: TenantScope = { kind: 'every' };
  const page = { after: undefined, take: 10 };
  const filters: readonly UserFilter[] = [
    { role: 'auditor', status: 'deactivated' },
    { role: 'analyst' },
    { q: 'ly bi', role: 'auditor' },
  ];
  for (const filter of filters) {
    expect((await listUsers(old.db.knex, everywhere, filter, page)).rows.map((user) => user.id)).toEqual([id]);
    if (filter.q === undefined) continue;
    const all = matchingPage(userSearch(everywhere, filter, { member: 'name', descending: false }), page);
    expect(await runNamedQuery(old.db.knex, all)).toMatchObject([{ id }]);
  }
  expect((await listUsers(old.db.knex, everywhere, { role: 'auditor', status: 'active' }, page)).rows).toEqual([]);
  const expired = await listKeys(
    old.db.knex,
    everywhere,
    { status: 'expired', expiresBefore: new Date('2020-03-01') },
    page,
    new Date(),
  );
  expect(expired.rows.map((one) => one.id)).toEqual([key]);
  await old.close();
});
