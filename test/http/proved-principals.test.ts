/** Tokens of an issuer at the API: the keys and users that they prove, with changes of those while the tokens are valid. */

import { beforeEach, expect, test } from 'vitest';
import { startIssuer, type TestIssuer } from '../support/issuer.ts';
import { type Harness, it, outcome, type Person, text, unique } from './harness.ts';
import { storeIssuer } from './stored-issuers.ts';

const ACME = unique('acme');
const KEYS = '/v1/iam/api-keys';

let h: Harness;
let boss: Person;
let signer: TestIssuer;
it.beforeAll(async ({ harness }) => {
  h = harness;
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: ACME } });
  boss = await h.person(ACME, ['tenant-admin']);
  signer = await startIssuer();
  await storeIssuer(h.db, ACME, 'staff', { create: true, roles: ['auditor', 'developer'] }, signer);
});
it.afterAll(() => signer.close());

let subject = '';
beforeEach(() => {
  subject = unique('subject');
});

/** Returns the id of the principal that a token proves, or the code of its refusal. */
const proved = async (token: string) => {
  const reply = await h.api('GET', '/v1/auth/me', { as: token });
  return reply.status === 200 ? text(reply.json, 'id') : outcome(reply);
};
const keyOf = async (proof: object, body: object = {}) => {
  const reply = await h.api('POST', KEYS, {
    as: boss.token,
    body: {
      description: 'pod',
      scopes: ['chat:write'],
      expires_in_days: 1,
      proof: { issuer: 'staff', ...proof },
      ...body,
    },
  });
  expect(outcome(reply)).toBe('201');
  return text(reply.json, 'id');
};
const as = (method: string, path: string, body?: object) =>
  h.api(method, path, { as: boss.token, ...(body === undefined ? {} : { body }) });
const NOBODY = '401 invalid_credential';

test('a token proves the key with its subject until the key is disabled, has another proof, or is revoked', async () => {
  const token = signer.sign({ sub: subject, namespace: 'agents' });
  const id = await keyOf({ subject, claims: [{ claim: 'namespace', in: ['agents', 'tools'] }] });
  const path = `${KEYS}/${id}`;
  expect(await proved(token)).toBe(id);
  await as('POST', `${path}/disable`);
  expect(await proved(token)).toBe(NOBODY);
  await as('POST', `${path}/enable`);
  expect(await proved(token)).toBe(id);
  const proof = (claims: object[]) => as('PUT', path, { proof: { issuer: 'staff', subject, claims } });
  await proof([{ claim: 'namespace', in: ['tools'] }]);
  expect(await proved(token)).not.toBe(id);
  await proof([{ claim: 'namespace', in: ['a*'] }]);
  expect(await proved(token)).toBe(id);
  await as('DELETE', path);
  expect(await proved(token)).not.toBe(id);
});

test('an exact subject beats a glob, and two equal matches prove none', async () => {
  const token = signer.sign({ sub: `${subject}-1` });
  const glob = await keyOf({ subject: `${subject}-*` });
  expect(await proved(token)).toBe(glob);
  const exact = await keyOf({ subject: `${subject}-1` });
  expect(await proved(token)).toBe(exact);
  const equal = await keyOf({ subject: `${subject}-1` });
  expect(await proved(token)).toBe(NOBODY);
  await as('DELETE', `${KEYS}/${equal}`);
  expect(await proved(token)).toBe(exact);
  await as('DELETE', `${KEYS}/${exact}`);
  expect(await proved(token)).toBe(glob);
});

test('the first token creates its user, a newer one changes its roles, and a deactivation refuses both', async () => {
  const now = Math.floor(Date.now() / 1000);
  const older = signer.sign({ sub: subject, groups: ['auditor'], iat: now - 60 });
  const newer = signer.sign({ sub: subject, groups: ['developer', 'unknown'], iat: now - 30 });
  const user = await proved(older);
  expect(user).toMatch(/^usr_/);
  const shown = async () => (await as('GET', `/v1/iam/users/${user}`)).json;
  expect(await shown()).toMatchObject({ source: 'issuer:staff', issuer_roles: ['auditor'] });
  expect(await proved(newer)).toBe(user);
  expect(await shown()).toMatchObject({ issuer_roles: ['developer'] });
  expect(await proved(older)).toBe(user);
  expect(await shown()).toMatchObject({ issuer_roles: ['developer'] });
  const me = await h.api('GET', '/v1/auth/me', { as: older });
  expect(me.json).toMatchObject({ roles: ['developer'], source: 'issuer:staff' });
  await as('POST', `/v1/iam/users/${user}/deactivate`);
  expect([await proved(older), await proved(newer)]).toEqual([NOBODY, NOBODY]);
  expect(await proved(signer.sign({ sub: subject, groups: ['auditor'] }))).toBe(NOBODY);
  expect(await shown()).toMatchObject({ status: 'deactivated', issuer_roles: ['developer'] });
});

test('a token acts as the user that an administrator links, and no longer after the link is removed', async () => {
  const ada = await h.person(ACME, ['analyst']);
  const token = signer.sign({ sub: subject, groups: ['auditor'], email: `${unique('ada')}@acme.example` });
  const path = `/v1/iam/users/${ada.id}`;
  expect(outcome(await as('PUT', path, { identities: [{ issuer: 'staff', subject }] }))).toBe('200');
  expect(await proved(token)).toBe(ada.id);
  expect((await as('GET', path)).json).toMatchObject({ roles: ['analyst'], issuer_roles: ['auditor'] });
  expect(outcome(await as('PUT', path, { identities: [] }))).toBe('200');
  expect(await proved(token)).not.toBe(ada.id);
  expect((await as('GET', path)).json).toMatchObject({ roles: ['analyst'], issuer_roles: [] });
});
