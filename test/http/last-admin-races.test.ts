/**
 * After any two concurrent changes an administrator that can log in remains, if there was one. The rule is compared
 * with a naive twin.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Fault, Refusal } from '../../src/domain/errors.ts';
import { applySetup, previewSetup, type SetupParts } from '../../src/iam/setup/apply.ts';
import type { SetupDocument } from '../../src/iam/setup/document.ts';
import { optionsWith, setupOf } from '../setup/support.ts';
import { runs } from '../support/properties.ts';
import { type Harness, outcome, type Person, startHarness } from './harness.ts';

let h: Harness;
/** A platform administrator from a directory, which does not count. */
let caller: Person;
let parts: SetupParts;
beforeAll(async () => {
  h = await startHarness();
  caller = await h.person('default', ['admin'], 'ldap');
  for (const id of ['x', 'y']) await h.api('POST', '/v1/iam/tenants', { as: caller.token, body: { id, name: id } });
  parts = { db: h.db, random: (size) => crypto.getRandomValues(new Uint8Array(size)) };
});
afterAll(() => h.close());
beforeEach(() => clear());

type TenantName = 'default' | 'x' | 'y';
type Status = 'active' | 'deactivated';

interface User {
  readonly tenant: TenantName;
  readonly status: Status;
  readonly admin: boolean;
  readonly password: boolean;
}

/** Users by number; the tenants that are suspended. */
interface State {
  readonly users: ReadonlyMap<number, User>;
  readonly suspended: ReadonlySet<TenantName>;
}

type Operation =
  | { readonly kind: 'deactivate' | 'activate' | 'delete' | 'strip' | 'give' | 'password'; readonly user: number }
  | { readonly kind: 'suspend' | 'resume'; readonly tenant: 'x' | 'y' }
  /** A setup that writes one user, and the status of one tenant. */
  | {
      readonly kind: 'apply';
      readonly user: number;
      readonly status: Status;
      readonly admin: boolean;
      readonly tenant: 'x' | 'y';
      readonly tenantStatus: 'active' | 'suspended';
    };

// The twin: a naive model of the effect of an operation on a state, and of the rule.

function after({ users, suspended }: State, operation: Operation): State {
  const written = (number: number, change: Partial<User>): ReadonlyMap<number, User> => {
    const user = users.get(number);
    return user === undefined ? users : new Map([...users, [number, { ...user, ...change }]]);
  };
  const tenants = (tenant: TenantName, isSuspended: boolean) =>
    new Set([...[...suspended].filter((one) => one !== tenant), ...(isSuspended ? [tenant] : [])]);
  switch (operation.kind) {
    case 'deactivate':
      return { users: written(operation.user, { status: 'deactivated' }), suspended };
    case 'activate':
      return { users: written(operation.user, { status: 'active' }), suspended };
    case 'strip':
      return { users: written(operation.user, { admin: false }), suspended };
    case 'give':
      return { users: written(operation.user, { admin: true }), suspended };
    case 'password':
      return { users: written(operation.user, { password: true }), suspended };
    case 'delete':
      return { users: new Map([...users].filter(([number]) => number !== operation.user)), suspended };
    case 'suspend':
      return { users, suspended: tenants(operation.tenant, true) };
    case 'resume':
      return { users, suspended: tenants(operation.tenant, false) };
    case 'apply':
      return {
        users: written(operation.user, { status: operation.status, admin: operation.admin }),
        suspended: tenants(operation.tenant, operation.tenantStatus === 'suspended'),
      };
    default:
      return operation satisfies never;
  }
}

function administrators({ users, suspended }: State): readonly User[] {
  return [...users.values()].filter(
    ({ admin, status, tenant }) => admin && status === 'active' && !suspended.has(tenant),
  );
}

const remains = (before: readonly User[], then: readonly User[]): boolean => before.length === 0 || then.length > 0;

function twin(
  state: State,
  operation: Operation,
): { readonly state: State; readonly told: 'done' | 'last_admin' | 'not_found' } {
  if ('user' in operation && operation.kind !== 'password' && !state.users.has(operation.user))
    return { state, told: 'not_found' };
  const next = after(state, operation);
  const [before, then] = [administrators(state), administrators(next)];
  const withPassword = ({ password }: User): boolean => password;
  const allowed = remains(before, then) && remains(before.filter(withPassword), then.filter(withPassword));
  return allowed ? { state: next, told: 'done' } : { state, told: 'last_admin' };
}

// The real one.

const idOf = (user: number) => `usr_${String(user).padStart(26, '0')}`;
const emailOf = (user: number) => `user${user}@example.test`;

async function clear(): Promise<void> {
  await h.db.knex('users').whereNot({ id: caller.id }).delete();
  await h.db.knex('tenants').update({ status: 'active' });
}

async function enter(state: State): Promise<void> {
  await clear();
  for (const [number, { tenant, status, admin, password }] of state.users) {
    const id = idOf(number);
    const row = {
      id,
      tenant_id: tenant,
      email: emailOf(number),
      name: 'Somebody',
      status,
      password_hash: password ? 'set' : null,
    };
    await h.db.knex('users').insert(row);
    if (admin) await h.db.knex('user_roles').insert({ user_id: id, role_name: 'admin' });
  }
  for (const id of state.suspended) await h.db.knex('tenants').where({ id }).update({ status: 'suspended' });
}

async function stored(): Promise<State> {
  const { rows } = await h.db.knex.raw<{
    rows: { n: number; tenant: TenantName; status: Status; admin: boolean; password: boolean }[];
  }>(
    `select substr(u.id, 5)::int as n, u.tenant_id as tenant, u.status, u.password_hash is not null as password,
       exists (select from user_roles r where r.user_id = u.id and r.role_name = 'admin') as admin
     from users u where u.id <> ? order by 1`,
    [caller.id],
  );
  const suspended = await h.db.knex('tenants').where({ status: 'suspended' }).orderBy('id').select('id');
  return { users: new Map(rows.map(({ n, ...user }) => [n, user])), suspended: new Set(suspended.map(({ id }) => id)) };
}

const plain = ({ users, suspended }: State) =>
  JSON.stringify([
    [...users]
      .sort(([a], [b]) => a - b)
      .map(([n, { tenant, status, admin, password }]) => [n, tenant, status, admin, password]),
    (['x', 'y'] as const).filter((id) => suspended.has(id)),
  ]);

type Told = 'done' | 'last_admin' | 'not_found';

async function run(operation: Operation, { users }: State): Promise<Told> {
  const call = async (method: string, path: string, tenant?: string, body?: object): Promise<Told> => {
    const rest = { ...(tenant === undefined ? {} : { tenant }), ...(body === undefined ? {} : { body }) };
    const told = outcome(await h.api(method, `/v1/iam/${path}`, { as: caller.token, ...rest }));
    if (told.startsWith('2')) return 'done';
    if (told === '409 last_admin') return 'last_admin';
    if (told === '404 not_found') return 'not_found';
    throw new Error(`${method} ${path}: ${told}`);
  };
  if (!('user' in operation)) {
    return call('POST', `tenants/${operation.tenant}/${operation.kind === 'suspend' ? 'suspend' : 'activate'}`);
  }
  const tenant = users.get(operation.user)?.tenant ?? 'default';
  const path = `users/${idOf(operation.user)}`;
  switch (operation.kind) {
    case 'deactivate':
    case 'activate':
      return call('POST', `${path}/${operation.kind}`, tenant);
    case 'delete':
      return call('DELETE', path, tenant);
    case 'strip':
      return call('PUT', path, tenant, { roles: [] });
    case 'give':
      return call('PUT', path, tenant, { roles: ['admin'] });
    case 'password':
      await h.db
        .knex('users')
        .where({ id: idOf(operation.user) })
        .update({ password_hash: 'set' });
      return 'done';
    case 'apply':
      return applied(operation, tenant);
    default:
      return operation satisfies never;
  }
}

/** Applies like the command line: a plan that changed before its execution is computed again. */
async function applied(operation: Extract<Operation, { kind: 'apply' }>, home: TenantName): Promise<Told> {
  const { user, status, admin, tenant: other, tenantStatus } = operation;
  const users = [{ email: emailOf(user), name: 'Somebody', roles: admin ? ['admin'] : [], status }];
  const names = [...new Set([home, other])];
  const tenants = names.map((id) => ({
    id,
    name: id === 'default' ? 'Platform' : id,
    ...(id === home ? { users } : {}),
    ...(id === other ? { status: tenantStatus } : {}),
  }));
  const document: SetupDocument = { version: 1, tenants };
  try {
    for (;;) {
      const plan = await previewSetup(parts, setupOf(document), optionsWith());
      if (plan.kind === 'errors') throw new Error(JSON.stringify(plan.errors));
      const result = await applySetup(parts, setupOf(document), { ...optionsWith(), setupTokens: false }, plan.actions);
      if (result.kind === 'applied') return 'done';
    }
  } catch (error) {
    if (error instanceof Refusal && error.code === 'last_admin') return 'last_admin';
    // The other operation may hold a lock for longer than the limit on a busy machine. Nothing is changed then.
    if (error instanceof Fault && error.message.endsWith('lock timeout')) return applied(operation, home);
    throw error;
  }
}

const NUMBERS = [1, 2, 3] as const;
const aUser: fc.Arbitrary<User> = fc.record({
  tenant: fc.constantFrom<TenantName>('default', 'x', 'y'),
  status: fc.constantFrom<Status>('active', 'active', 'deactivated'),
  admin: fc.constantFrom(true, true, false),
  password: fc.boolean(),
});
const aState: fc.Arbitrary<State> = fc.record({
  users: fc
    .array(aUser, { minLength: 1, maxLength: NUMBERS.length })
    .map((users) => new Map(users.map((user, i) => [i + 1, user]))),
  suspended: fc.subarray<TenantName>(['x', 'y']).map((names) => new Set(names)),
});
const aNumber = fc.constantFrom(...NUMBERS);
const aTenant = fc.constantFrom<'x' | 'y'>('x', 'y');
const anOperation: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    kind: fc.constantFrom(
      'deactivate' as const,
      'activate' as const,
      'delete' as const,
      'strip' as const,
      'give' as const,
      'password' as const,
    ),
    user: aNumber,
  }),
  fc.record({ kind: fc.constantFrom('suspend' as const, 'suspend' as const, 'resume' as const), tenant: aTenant }),
  fc.record({
    kind: fc.constant('apply' as const),
    user: aNumber,
    status: fc.constantFrom<Status>('active', 'deactivated', 'deactivated'),
    admin: fc.boolean(),
    tenant: aTenant,
    tenantStatus: fc.constantFrom('active' as const, 'suspended' as const),
  }),
);

/** Reports whether a setup would create a missing user, which another test covers. */
function wouldMake(operation: Operation, { users }: State): boolean {
  return operation.kind === 'apply' && !users.has(operation.user);
}

test('any sequence of operations ends as the naive rule says', async () => {
  await fc.assert(
    fc.asyncProperty(aState, fc.array(anOperation, { minLength: 1, maxLength: 8 }), async (start, operations) => {
      await enter(start);
      let state = start;
      for (const operation of operations) {
        if (wouldMake(operation, state)) continue;
        const expected = twin(state, operation);
        expect([operation, await run(operation, state)]).toEqual([operation, expected.told]);
        state = expected.state;
        expect(plain(await stored())).toBe(plain(state));
      }
    }),
    { numRuns: runs(20) },
  );
});

test('any two operations at once end as one after the other', async () => {
  await fc.assert(
    fc.asyncProperty(aState, anOperation, anOperation, async (start, first, second) => {
      fc.pre(!wouldMake(first, start) && !wouldMake(second, start));
      const removes = [first, second].some(({ kind }) => kind === 'delete');
      fc.pre(!removes || ![first, second].some(({ kind }) => kind === 'apply'));
      await enter(start);
      const told = await Promise.all([run(first, start), run(second, start)]);
      const ended = JSON.stringify([told, plain(await stored())]);
      const serial = (one: Operation, other: Operation) => {
        const half = twin(start, one);
        const whole = twin(half.state, other);
        return { told: [half.told, whole.told], state: plain(whole.state) };
      };
      const forth = serial(first, second);
      const back = serial(second, first);
      const [mine, theirs] = back.told;
      expect([JSON.stringify([forth.told, forth.state]), JSON.stringify([[theirs, mine], back.state])]).toContain(
        ended,
      );
    }),
    { numRuns: runs(60) },
  );
});

const REMOVALS = [
  'deactivate',
  'delete',
  'strip',
  'suspend',
  'apply deactivates',
  'apply strips',
  'apply suspends',
] as const;
type Removal = (typeof REMOVALS)[number];

/** Removes the administrator `user`, the only one in `tenant`. */
function removal(how: Removal, user: number, tenant: 'x' | 'y'): Operation {
  const keep = { kind: 'apply', user, status: 'active', admin: true, tenant, tenantStatus: 'active' } as const;
  switch (how) {
    case 'deactivate':
    case 'delete':
    case 'strip':
      return { kind: how, user };
    case 'suspend':
      return { kind: how, tenant };
    case 'apply deactivates':
      return { ...keep, status: 'deactivated' };
    case 'apply strips':
      return { ...keep, admin: false };
    case 'apply suspends':
      return { ...keep, tenantStatus: 'suspended' };
    default:
      return how satisfies never;
  }
}

async function waiting(): Promise<number> {
  const { rows } = await h.db.knex.raw<{ rows: { n: number }[] }>(
    `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.n ?? 0;
}

test.each(REMOVALS.flatMap((first, i) => REMOVALS.slice(i).map((second) => [first, second] as const)))(
  'of two that remove the two last administrators at once, one is refused: %s and %s',
  async (first, second) => {
    const user = { status: 'active', admin: true, password: true } as const;
    const start: State = {
      users: new Map<number, User>([
        [1, { ...user, tenant: 'x' }],
        [2, { ...user, tenant: 'y' }],
      ]),
      suspended: new Set(),
    };
    await enter(start);
    let told: Promise<Told[]> | undefined;
    await h.db.knex.transaction(async (trx) => {
      // Both begin before either may write.
      await trx.raw('select from users order by id for update');
      await trx.raw('select from tenants order by id for update');
      told = Promise.all([run(removal(first, 1, 'x'), start), run(removal(second, 2, 'y'), start)]);
      await expect.poll(waiting, { interval: 10 }).toBe(2);
    });
    expect(new Set(await told)).toEqual(new Set(['done', 'last_admin']));
    expect(administrators(await stored())).toHaveLength(1);
  },
);

test.each([{ action: 'deactivate' }, { action: 'remove_role', role: 'admin' }])(
  'a change of several users, $action, rejects the last administrator and changes the others',
  async (change) => {
    const local = { tenant: 'default', status: 'active', admin: true, password: true } as const;
    await enter({
      users: new Map([
        [1, local],
        [2, local],
      ]),
      suspended: new Set(),
    });
    const body = { ...change, ids: [idOf(1), idOf(2)] };
    const reply = await h.api('POST', '/v1/iam/users/change', { as: caller.token, body });
    expect(reply.json['data']).toMatchObject([
      { id: idOf(1), outcome: 'changed' },
      { id: idOf(2), outcome: 'rejected', code: 'last_admin' },
    ]);
    expect(administrators(await stored())).toHaveLength(1);
  },
);
