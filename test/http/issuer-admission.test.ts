/** The users of issuers: created by the first token of a subject, with the roles of the newest token. */

import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { AdmittedIssuerUser } from '../../src/credential-cache/ports.ts';
import { Fault } from '../../src/domain/errors.ts';
import { DEFAULT_TENANT, parseRoleName, type RoleName } from '../../src/domain/ids.ts';
import { IssuerUserProvisioning } from '../../src/iam/users/admit-issuer-user.ts';
import { openDatabase } from '../../src/store/database.ts';
import { runs } from '../support/properties.ts';
import { type Harness, it, type Json, outcome, rows, unique } from './harness.ts';
import { type StoredTestIssuer, storeIssuer } from './stored-issuers.ts';

const USERS = '/v1/iam/users';
const ROLES = ['analyst', 'auditor', 'developer', 'tenant-admin'].map(roleName);
/** An instant in the past, as `iat` has it. */
const IAT = 1_700_000_000_000;

let h: Harness;
let admissions: IssuerUserProvisioning;
it.beforeAll(({ harness }) => {
  h = harness;
  admissions = new IssuerUserProvisioning({ db: h.db, random: randomBytes, now: Date.now });
});

let tenant = '';
let issuer: StoredTestIssuer;
let subject = '';
beforeEach(async () => {
  tenant = unique('issued');
  subject = unique('subject');
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: tenant, name: tenant } });
  issuer = await storeIssuer(h.db, tenant, 'staff', { create: true });
});

function roleName(text: string): RoleName {
  const name = parseRoleName(text);
  if (name === undefined) throw new Error(`no role name: ${text}`);
  return name;
}

const admit = (token: Partial<AdmittedIssuerUser> = {}) =>
  admissions.admit({ issuer, subject, roles: [], iatMs: IAT, ...token });
const listed = async (query = '') =>
  rows(await h.api('GET', `${USERS}?tenant_id=${tenant}&limit=200${query}`, { as: h.root.token }));
const only = async (): Promise<Json> => {
  const [user, ...others] = await listed();
  if (user === undefined || others.length > 0) throw new Error('not one user');
  return user;
};
const path = async () => `${USERS}/${String((await only())['id'])}`;
const changeIssuer = (columns: object) => h.db.knex('issuers').where({ id: issuer.id }).update(columns);
const audited = async (action: string) =>
  (await h.audit(action)).filter((row) => row['tenant_id'] === tenant && row['actor_type'] === 'system');
const link = (user: string, of: string) =>
  h.db.knex('user_identities').insert({ issuer_id: issuer.id, subject: of, user_id: user });

const ADMITTED = { kind: 'admitted' };
const NO_PRINCIPAL = { kind: 'refused', reason: 'no_principal' };
const EMAIL_IN_USE = { kind: 'refused', reason: 'email_in_use' };

describe('the first token of a subject', () => {
  test('creates its user, linked, with the mapped roles that the tenant has, and an audit row', async () => {
    const email = `Ada.${subject}@Acme.Example`;
    const roles = [roleName('developer'), roleName('no-such-role'), roleName('auditor')];
    expect(await admit({ email, name: ' Ada\n\u202eLovelace ', roles })).toEqual(ADMITTED);
    const user = await only();
    expect(user).toMatchObject({
      email: email.toLowerCase(),
      name: 'Ada Lovelace',
      source: 'issuer:staff',
      status: 'active',
      roles: [],
      issuer_roles: ['auditor', 'developer'],
      identities: [{ issuer: 'staff', subject }],
    });
    expect(await audited('user.create')).toEqual([
      expect.objectContaining({
        result: 'success',
        target_id: user['id'],
        after: { ...user, issuer: 'staff', subject, unknown_roles: 'no-such-role' },
      }),
    ]);
    const feed = await h.db.knex('changes').where({ kind: 'link', key: `${issuer.id} ${subject}` });
    expect(feed).toHaveLength(1);
  });

  test.each([
    ['the address', { email: 'x@y.example', name: undefined }, 'x@y.example'],
    ['the subject, if there is no usable address', { email: 'no address', name: '\u200b \0' }, undefined],
  ])('names it by %s if it has no name', async (_name, { email, name }, expected) => {
    const of = email === 'x@y.example' ? `${unique('x')}@y.example` : email;
    await admit({ email: of, ...(name === undefined ? {} : { name }) });
    expect(await only()).toMatchObject({
      name: expected === undefined ? subject : of,
      email: expected === undefined ? null : of,
    });
  });

  test('creates one user, with twenty first tokens at once', async () => {
    const tokens = Array.from({ length: 20 }, (_none, i) =>
      admit({ iatMs: IAT + i, roles: ROLES.slice(0, 1 + (i % 4)) }),
    );
    expect(await Promise.all(tokens)).toEqual(Array(20).fill(ADMITTED));
    // The newest has all four.
    expect(await only()).toMatchObject({ issuer_roles: ROLES });
    expect(await audited('user.create')).toHaveLength(1);
  });

  test('with an address that another user holds is refused, links nothing, and writes nothing but audit rows', async () => {
    const other = await h.person('default', []);
    const email = `${other.id}@example.test`;
    expect(await admit({ email })).toEqual(EMAIL_IN_USE);
    expect(await listed()).toEqual([]);
    expect(await h.db.knex('user_identities').where({ issuer_id: issuer.id })).toEqual([]);
    expect(await audited('user.create')).toMatchObject([
      { result: 'refused', target_id: null, after: { code: 'email_in_use', issuer: 'staff', subject, email } },
    ]);
    expect(await admit({ email: `free-${email}` })).toEqual(ADMITTED);
  });

  test('and another with the same address at once: one is refused', async () => {
    const email = `${unique('same')}@acme.example`;
    const subjects = Array.from({ length: 6 }, (_none, i) => `${subject}-${i}`);
    const results = await Promise.all(subjects.map((one) => admit({ subject: one, email })));
    expect(results.filter(({ kind }) => kind === 'admitted')).toHaveLength(1);
    expect(results.filter(({ kind }) => kind === 'refused')).toEqual(Array(5).fill(EMAIL_IN_USE));
    expect(await only()).toMatchObject({ email });
  });

  test('needs a place in the tenant, with any number at once; a flood of refusals has ten audit rows', async () => {
    await h.api('PUT', `/v1/iam/tenants/${tenant}`, { as: h.root.token, body: { quotas: { max_users: 3 } } });
    const results = await Promise.all(Array.from({ length: 30 }, (_none, i) => admit({ subject: `${subject}-${i}` })));
    expect(results.filter(({ kind }) => kind === 'admitted')).toHaveLength(3);
    expect(results.filter(({ kind }) => kind === 'refused')).toEqual(Array(27).fill(NO_PRINCIPAL));
    expect(await listed()).toHaveLength(3);
    const refused = (await audited('user.create')).filter(({ result }) => result === 'refused');
    expect(refused.map(({ after }) => after)).toEqual(
      Array(10).fill(expect.objectContaining({ code: 'quota_exceeded', issuer: 'staff' })),
    );
    await h.api('PUT', `/v1/iam/tenants/${tenant}`, { as: h.root.token, body: { quotas: { max_users: 4 } } });
    expect(await admit()).toEqual(ADMITTED);
  });

  test('creates the user again after its deletion; a deactivation keeps it away', async () => {
    await admit({ roles: ROLES });
    const first = await path();
    expect(outcome(await h.api('POST', `${first}/deactivate`, { as: h.root.token }))).toBe('200');
    expect(await admit({ iatMs: IAT + 1000, roles: [] })).toEqual(ADMITTED);
    expect(await only()).toMatchObject({ status: 'deactivated', issuer_roles: ROLES });
    expect(outcome(await h.api('DELETE', first, { as: h.root.token }))).toBe('204');
    expect(await admit({ iatMs: IAT + 2000 })).toEqual(ADMITTED);
    expect([await path(), (await only())['status']]).toEqual([expect.not.stringMatching(first), 'active']);
  });
});

describe('no token', () => {
  const time = (ms: number): Date => new Date(ms);
  test.each([
    ['of an issuer that creates no users', { users: JSON.stringify({ create: false }) }, {}],
    ['of an issuer that proves no users', { users: null }, {}],
    ['of a disabled issuer', { enabled: false }, {}],
    ['from before a revocation', { revoked_before: time(IAT + 1000) }, {}],
    ['from before a wider mapping', { users_since: time(IAT + 1000) }, {}],
    ['with an empty subject', {}, { subject: '' }],
    ['with a subject of 513 characters', {}, { subject: 's'.repeat(513) }],
    ['with a NUL in its subject', {}, { subject: 'a\0b' }],
    ['with an unpaired surrogate in its subject', {}, { subject: 'a\ud800' }],
  ])('%s creates a user', async (_name, columns, token) => {
    if (Object.keys(columns).length > 0) await changeIssuer(columns);
    expect(await admit(token)).toEqual(NO_PRINCIPAL);
    expect(await listed()).toEqual([]);
    await changeIssuer({ users: JSON.stringify({ create: true }), enabled: true });
    expect(await admit({ iatMs: IAT + 1000 })).toEqual(ADMITTED);
  });

  test('of another tenant, or of a suspended one, creates a user', async () => {
    expect(await admit({ issuer: { ...issuer, tenantId: DEFAULT_TENANT } })).toEqual(NO_PRINCIPAL);
    await h.api('POST', `/v1/iam/tenants/${tenant}/suspend`, { as: h.root.token });
    expect(await admit()).toEqual(NO_PRINCIPAL);
    await h.api('POST', `/v1/iam/tenants/${tenant}/activate`, { as: h.root.token });
    expect(await admit()).toEqual(ADMITTED);
  });

  test('is judged while the store does not answer: that is a fault', async () => {
    const db = openDatabase({ url: 'postgres://nobody@127.0.0.1:1/none', poolMax: 1, queryTimeoutMs: 1000 });
    const cut = new IssuerUserProvisioning({ db, random: randomBytes, now: Date.now });
    await expect(cut.admit({ issuer, subject, roles: [], iatMs: IAT })).rejects.toThrow(Fault);
    await db.close();
  });
});

describe('the roles of a user', () => {
  const roles = async () => (await only())['issuer_roles'];

  test('follow the newest token: an older one changes nothing, and an equal one writes no audit row', async () => {
    await admit({ roles: ROLES.slice(0, 2), iatMs: IAT + 5000 });
    await admit({ roles: ROLES, iatMs: IAT });
    await admit({ roles: ROLES, iatMs: IAT + 5000 });
    await admit({ roles: ROLES.slice(0, 2).toReversed(), iatMs: IAT + 6000 });
    expect([await roles(), await audited('user.update')]).toEqual([ROLES.slice(0, 2), []]);
    await admit({ roles: ROLES.slice(2), iatMs: IAT + 5500 });
    expect(await roles()).toEqual(ROLES.slice(0, 2));
    await admit({ roles: ROLES.slice(2), iatMs: IAT + 6000.9 });
    expect(await roles()).toEqual(ROLES.slice(0, 2));
    await admit({ roles: ROLES.slice(2), iatMs: IAT + 7000 });
    expect(await roles()).toEqual(ROLES.slice(2));
    expect(await audited('user.update')).toMatchObject([
      {
        before: { issuer_roles: ROLES.slice(0, 2) },
        after: { issuer_roles: ROLES.slice(2), issuer: 'staff', subject },
      },
    ]);
  });

  test('given by hand or by another issuer stay', async () => {
    await changeIssuer({ users: JSON.stringify({ create: false }) });
    const user = await h.person(tenant, ['auditor']);
    const other = await storeIssuer(h.db, tenant, 'partners', {});
    await link(user.id, subject);
    await h.db.knex('user_identities').insert({ issuer_id: other.id, subject, user_id: user.id });
    await admit({ roles: [roleName('developer')] });
    await admit({ issuer: other, roles: [roleName('analyst')] });
    expect(await only()).toMatchObject({ roles: ['auditor'], issuer_roles: ['analyst', 'developer'] });
    await admit({ iatMs: IAT + 1000 });
    expect(await only()).toMatchObject({ roles: ['auditor'], issuer_roles: ['analyst'], name: user.id });
  });

  test('of two subjects of one issuer are those of the newest token of both', async () => {
    const user = await h.person(tenant, []);
    await link(user.id, subject);
    await link(user.id, `${subject}-2`);
    await admit({ roles: [roleName('auditor')], iatMs: IAT + 2000 });
    await admit({ subject: `${subject}-2`, roles: [roleName('developer')], iatMs: IAT + 1000 });
    expect(await roles()).toEqual(['auditor']);
    await admit({ subject: `${subject}-2`, roles: [roleName('developer')], iatMs: IAT + 3000 });
    expect(await roles()).toEqual(['developer']);
  });

  test('are given by no token from before a wider mapping, and stay', async () => {
    await admit({ roles: [roleName('auditor')] });
    await changeIssuer({ users_since: new Date(IAT + 9000) });
    await admit({ roles: ROLES, iatMs: IAT + 8000 });
    expect(await roles()).toEqual(['auditor']);
    await admit({ roles: ROLES, iatMs: IAT + 9000 });
    expect(await roles()).toEqual(ROLES);
  });

  test('stay after the mapping lost them until a newer token comes, and end at once with the role', async () => {
    const named = (name: string) => ({ as: h.root.token, tenant, body: { name, permissions: ['chat:read'] } });
    for (const name of ['helper', 'guest']) await h.api('POST', '/v1/iam/roles', named(name));
    await changeIssuer({
      users: JSON.stringify({ subject_claim: 'sub', default_roles: ['helper', 'guest'], roles: [] }),
    });
    await link((await h.person(tenant, [])).id, subject);
    await admit({ roles: ['helper', 'guest'].map(roleName) });
    const body = { users: { default_roles: [] } };
    const issuers = `/v1/iam/issuers/${issuer.id}`;
    expect(outcome(await h.api('PUT', issuers, { as: h.root.token, tenant, body }))).toBe('200');
    expect(await roles()).toEqual(['guest', 'helper']);
    expect(outcome(await h.api('DELETE', '/v1/iam/roles/guest?force=true', { as: h.root.token, tenant }))).toBe('204');
    expect(await roles()).toEqual(['helper']);
    await admit({ iatMs: IAT + 1000 });
    expect(await roles()).toEqual([]);
  });

  test('are those of the newest token, in any order and with any number of tokens at once', async () => {
    const tokens = fc.uniqueArray(fc.record({ second: fc.nat(40), roles: fc.subarray(ROLES) }), {
      selector: ({ second }) => second,
      minLength: 1,
      maxLength: 8,
    });
    let n = 0;
    await fc.assert(
      fc.asyncProperty(tokens, fc.integer({ min: 1, max: 4 }), async (all, atOnce) => {
        const of = `${subject}-${n++}`;
        for (let from = 0; from < all.length; from += atOnce) {
          const some = all.slice(from, from + atOnce);
          const results = some.map(({ second, roles }) => admit({ subject: of, iatMs: IAT + second * 1000, roles }));
          expect(await Promise.all(results)).toEqual(some.map(() => ADMITTED));
        }
        const newest = all.reduce((one, other) => (other.second > one.second ? other : one));
        const found = await h.db
          .knex('user_identities as l')
          .join('user_roles as r', 'r.user_id', 'l.user_id')
          .where({ 'l.issuer_id': issuer.id, 'l.subject': of, 'r.source': `issuer:${issuer.id}` })
          .pluck('r.role_name');
        expect(found.sort()).toEqual(newest.roles);
      }),
      { numRuns: runs(200) },
    );
  });
});
