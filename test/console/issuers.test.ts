import type { Locator, Page, Request } from 'playwright-core';
import { afterAll, describe, expect } from 'vitest';
import { EMPTY_ISSUER, newIssuerOf } from '../../console/src/screens/issuer/draft.ts';
import { filledBy, TEMPLATE_IDS, templateOf } from '../../console/src/screens/issuer/templates.ts';
import { call, type Decider, decider, done } from '../server/support/client.ts';
import { makeIssuerKey, signToken } from '../support/issuer.ts';
import { accessibilityFaults, chooseOption, faultsInEveryLook, untilSettled, visit } from './support/browser.ts';
import { shoot } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

const TENANT = 'console-issuers';
const CLUSTER = 'https://cluster.console-issuers.example';
const REALM = 'https://login.console-issuers.example/realms/staff';
const TESTED = 'https://tested.console-issuers.example';
const KEY = makeIssuerKey();
const KEY_SET = JSON.stringify({ keys: [KEY.jwk] });
const POD = 'system:serviceaccount:batch:indexer';

let stand: ConsoleStand;
let http: string;
let gate: Decider;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
  gate = decider(stand.server.grpc);
  await done(http, 'POST', '/v1/iam/tenants', { token: stand.token, body: { id: TENANT, name: 'Issuers' } });
});
afterAll(() => gate?.close());

const manage = (method: string, path: string, body?: object) =>
  done(http, method, path, { token: stand.token, tenant: TENANT, body });
const read = async (path: string) => (await manage('GET', path)).body;
const open = (path: string) =>
  stand.asAdmin({ path: `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}` });

function token(iss: string, claims: Readonly<Record<string, unknown>>): string {
  const iat = Math.floor(Date.now() / 1000);
  return signToken(KEY, { iss, aud: 'postern', iat, exp: iat + 300, ...claims });
}

/** @param age seconds since the token was issued */
const podToken = (age = 0) =>
  token(CLUSTER, {
    ...{ sub: POD, 'kubernetes.io': { namespace: 'batch' } },
    ...(age === 0 ? {} : { iat: Math.floor(Date.now() / 1000) - age }),
  });

async function makeIssuer(body: object): Promise<string> {
  return String((await manage('POST', '/v1/iam/issuers', { audiences: ['postern'], ...body })).body['id']);
}

const field = (place: Page | Locator, name: string) => place.getByRole('textbox', { name });

async function addTag(place: Page | Locator, name: string, value: string): Promise<void> {
  await field(place, name).fill(value);
  await field(place, name).press('Enter');
}

describe('an issuer', () => {
  it('added from a template lets a pod in by a key without a secret, until the issuer is deleted', async () => {
    const { page, problems } = await open('issuers');
    await page.getByText('No issuer is accepted yet').waitFor();
    await page.getByRole('button', { name: 'Add an issuer' }).click();
    await page.getByRole('button', { name: /^Kubernetes, pasted keys/ }).click();
    await field(page, 'Issuer of the cluster').fill(CLUSTER);
    await field(page, 'Namespaces').fill('Batch Jobs!');
    await page.getByText('Lower-case letters, digits and -.').waitFor();
    await field(page, 'Namespaces').fill('batch, agents');
    expect(await page.getByRole('button', { name: 'Continue' }).getAttribute('aria-disabled')).toBe('true');
    await field(page, 'Key set (JWKS)').fill(JSON.stringify({ keys: [KEY.privateKey.export({ format: 'jwk' })] }));
    await expect.poll(() => field(page, 'Key set (JWKS)').inputValue()).toBe('');
    await field(page, 'Key set (JWKS)').fill(KEY_SET);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Its tokens prove keys only.').waitFor();
    expect(await field(page.getByRole('group', { name: 'Rule 1' }), 'Claim').inputValue()).toBe(
      '/kubernetes.io/namespace',
    );
    await field(page, 'Name').fill('cluster');
    await page.getByRole('button', { name: 'Add issuer' }).click();
    await page.getByRole('heading', { level: 1, name: 'cluster' }).waitFor();
    await page.getByRole('region', { name: 'Keys in use' }).getByText(KEY.kid).waitFor();
    await shoot(page, 'issuer');

    // A key that its tokens prove.
    await page.getByRole('link', { name: 'Create a key for its tokens' }).click();
    const drawer = page.getByRole('dialog');
    await field(drawer, 'Description').fill('The indexer');
    await drawer.getByRole('searchbox', { name: 'Search: Scopes' }).fill('chat:read');
    await chooseOption(drawer.getByRole('option', { name: 'chat:read' }));
    expect(await drawer.getByRole('combobox', { name: 'Issuer' }).inputValue()).toBe('cluster');
    await field(drawer, 'Subject').fill(POD);
    await shoot(page, 'new key with proof');
    await drawer.getByRole('button', { name: 'Create key' }).click();
    await drawer.getByText(`tokens of cluster whose subject is ${POD}`).waitFor();
    expect(await page.getByText('This is the only time').count()).toBe(0);
    expect(await drawer.getByRole('button', { name: 'Rotate' }).count()).toBe(0);
    await shoot(page, 'key with proof');
    await expect.poll(() => gate.decide(podToken())).toBe('allow');

    // Its proof is edited in place of a rotation.
    await drawer.getByRole('button', { name: 'Edit proof' }).click();
    await field(drawer, 'Subject').fill('system:serviceaccount:batch:*');
    await drawer.getByRole('button', { name: 'Save', exact: true }).click();
    await drawer.getByText('Saved.').waitFor();
    await drawer.getByRole('button', { name: 'Close' }).last().click();
    await drawer.getByText('whose subject is system:serviceaccount:batch:*').waitFor();
    await drawer.getByRole('button', { name: 'Close' }).click();
    await page
      .getByRole('row', { name: 'The indexer' })
      .filter({ hasText: 'cluster: system:serviceaccount:batch:*' })
      .waitFor();

    // Its tokens are revoked; it is disabled, enabled, deleted.
    await page.goto(`/console/issuers?tenant=${TENANT}`);
    await page.getByRole('row', { name: /cluster/ }).click();
    const old = podToken(60);
    expect(await gate.decide(old)).toBe('allow');
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'revoke' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Revoke tokens' }).click();
    await page.getByRole('alertdialog').waitFor({ state: 'hidden' });
    await expect.poll(() => gate.decide(old)).toBe('invalid_credential');
    expect(await gate.decide(podToken())).toBe('allow');
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    await expect.poll(() => gate.decide(podToken())).toBe('invalid_credential');
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Enable' }).click();
    await expect.poll(() => gate.decide(podToken())).toBe('allow');
    // The form goes on from what the buttons changed.
    await addTag(page, 'Audiences', 'postern-next');
    await page.getByRole('button', { name: 'Save issuer' }).click();
    await page.getByText('Saved. It holds on all replicas').waitFor();
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'delete' }).click();
    const dialog = page.getByRole('alertdialog');
    await field(dialog, 'Type cluster to confirm').fill('cluster');
    await dialog.getByRole('button', { name: 'Delete issuer' }).click();
    await dialog.getByText('Keys or users refer to it').waitFor();
    await dialog.getByRole('button', { name: 'Delete it and all that refers to it' }).click();
    await expect.poll(() => new URL(page.url()).pathname).toBe('/console/issuers');
    expect(await read('/v1/iam/issuers')).toMatchObject({ data: [] });
    expect(await gate.decide(podToken())).toBe('invalid_credential');
    expect(problems).toEqual([]);
  });

  it('says what its mapping grants, and its users show whose roles they have', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'issuer-reader', permissions: ['models:read'] });
    const { page, problems } = await open('new-issuer?template=keycloak');
    await field(page, 'Address of the realm').fill(REALM);
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Its users have no role by this issuer.').waitFor();
    await page.getByRole('button', { name: 'Add a mapping' }).click();
    const mapping = page.getByRole('group', { name: 'Roles from claims' });
    expect(await field(mapping, 'Claim').inputValue()).toBe('/realm_access/roles');
    await addTag(mapping, 'is one of', 'readers');
    await mapping.getByRole('button', { name: 'Add a role' }).click();
    await page.getByRole('dialog').getByRole('searchbox').fill('issuer-reader');
    await chooseOption(page.getByRole('option', { name: 'issuer-reader' }));
    const grants = page.getByRole('region', { name: 'What it grants' });
    await grants.getByText('If /realm_access/roles is readers:').waitFor();
    await grants.getByText('Users with this role may see models.').waitFor();
    await page.getByRole('radio', { name: 'Pasted' }).click();
    await field(page, 'Key set (JWKS)').fill(KEY_SET);
    await shoot(page, 'new issuer');
    await page.getByRole('button', { name: 'Add issuer' }).click();
    await page.getByRole('heading', { level: 1, name: 'keycloak' }).waitFor();
    await page.getByText('The login page offers this issuer').click();
    await field(page, 'Text of the button').fill('Acme');
    await field(page, 'Client id').fill('postern-console');
    await page.getByLabel('Client secret').fill('a secret of a test');
    await page.getByRole('button', { name: 'Save issuer' }).click();
    await page.getByText('A secret is stored.').waitFor();
    expect(await page.getByLabel('Client secret').count()).toBe(0);
    await page.getByText(/\/v1\/auth\/sso\/iss_\w+\/callback/).waitFor();
    const reader = { sub: 'f3a1', name: 'Ada Reader', realm_access: { roles: ['readers'] } };
    await expect.poll(() => gate.decide(token(REALM, reader), { path: '/v1/models' })).toBe('allow');

    await visit(page, `/console/users?tenant=${TENANT}&q=Ada`);
    const row = page.getByRole('row', { name: 'Ada Reader' }).filter({ hasText: 'issuer-reader · issuer' });
    await row.filter({ hasText: 'issuer keycloak' }).click();
    await page.getByRole('heading', { level: 1, name: 'Ada Reader' }).waitFor();
    await page.getByText('by an issuer').first().waitFor();
    await page.getByText('f3a1').waitFor();
    await shoot(page, 'user of an issuer');
    await page.getByRole('button', { name: 'Edit user' }).click();
    const drawer = page.getByRole('dialog');
    await drawer.getByRole('button', { name: 'Link an identity' }).click();
    const second = drawer.getByRole('group', { name: 'Identity 2' });
    await second.getByRole('combobox', { name: 'Issuer' }).fill('keycloak');
    await field(second, 'Subject').fill('b77e');
    await drawer.getByRole('button', { name: 'Save', exact: true }).click();
    await drawer.getByText('Saved.').waitFor();
    const { data } = await read('/v1/iam/users?q=Ada');
    expect(data).toMatchObject([
      {
        source: 'issuer:keycloak',
        issuer_roles: ['issuer-reader'],
        identities: expect.arrayContaining([{ issuer: 'keycloak', subject: 'b77e' }]),
      },
    ]);
    expect(problems).toEqual([]);
  });

  it('that would give more than its author has is refused in place, and the form keeps its input', async () => {
    await makeIssuer({ name: 'guarded', issuer: 'https://guarded.console-issuers.example', jwks: JSON.parse(KEY_SET) });
    await manage('POST', '/v1/iam/roles', { name: 'issuer-writer', permissions: ['admin:issuers', 'admin:roles'] });
    const author = { email: 'issuer-writer@example.com', password: 'a person in a system test' };
    await manage('POST', '/v1/iam/users', { ...author, name: 'Author', roles: ['issuer-writer'] });
    const { page, problems } = await stand.signIn({ person: author, path: '/console/issuers?q=guarded' });
    await page.getByRole('row', { name: /guarded/ }).click();
    await page.getByRole('radio', { name: 'Linked users' }).click();
    const defaults = page.getByRole('group', { name: 'Roles of every user' });
    await defaults.getByRole('button', { name: 'Add a role' }).click();
    await page.getByRole('dialog').getByRole('searchbox').fill('developer');
    await chooseOption(page.getByRole('option', { name: 'developer' }));
    await page.getByRole('button', { name: 'Save issuer' }).click();
    await page.getByRole('status').filter({ hasText: 'some that you do not have' }).waitFor();
    await defaults.getByRole('button', { name: /^developer/ }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the test of a token', () => {
  it('says how each step ends, and the token is in one request and nowhere else', async () => {
    const id = await makeIssuer({
      ...{ name: 'tested', issuer: TESTED, jwks: JSON.parse(KEY_SET) },
      users: { create: true, default_roles: ['developer'] },
    });
    const { page, problems } = await open(`issuers/${id}`);
    const requests: Request[] = [];
    page.on('request', (request) => requests.push(request));
    await page.getByRole('button', { name: 'Test a token' }).click();
    const drawer = page.getByRole('dialog');
    const steps = drawer.getByRole('list', { name: 'Steps of the test' }).getByRole('listitem');
    const run = async (given: string): Promise<void> => {
      await field(drawer, 'Token').fill(given);
      await drawer.getByRole('button', { name: 'Test', exact: true }).click();
    };
    const given = token(TESTED, { sub: 'ada' });
    await run(given);
    await drawer.getByText('This token is accepted.').waitFor();
    await steps.filter({ hasText: /^\d+Roles.*the roles developer/ }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await shoot(page, 'test accepted');
    await run(token(TESTED, { sub: 'ada', aud: 'another service' }));
    await drawer.getByText('This token is refused at').waitFor();
    await steps.filter({ hasText: 'Audience' }).filter({ hasText: 'fails' }).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await shoot(page, 'test refused');
    const carriers = requests.filter((one) => `${one.url()} ${one.postData() ?? ''}`.includes(given));
    expect(carriers.map((one) => new URL(one.url()).pathname)).toEqual([`/v1/iam/issuers/${id}/test`]);
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage, location.href])')).not.toContain('eyJ');
    expect(problems).toEqual([]);
  });
});

describe('the list of issuers', () => {
  it('finds issuers, and warns of pasted keys after 90 days and of keys that cannot be fetched', async () => {
    const old = await makeIssuer({
      ...{ name: 'old-paste', issuer: 'https://old.console-issuers.example', jwks: JSON.parse(KEY_SET) },
    });
    const failing = await makeIssuer({ name: 'failing', issuer: 'https://127.0.0.1:9/console-issuers' });
    await makeIssuer({ name: 'switched-off', issuer: 'https://off.console-issuers.example', enabled: false });
    await stand.db.knex.raw("update issuers set jwks_set_at = now() - interval '100 days' where id = ?", [old]);
    await stand.db.knex.raw(
      `insert into issuer_keys (issuer_id, keys, fetched_at, next_fetch_at, error) values (?, ?, now(), now() + interval '1 day', 'connection refused')
       on conflict (issuer_id) do update set keys = excluded.keys, fetched_at = excluded.fetched_at, next_fetch_at = excluded.next_fetch_at, error = excluded.error`,
      [failing, JSON.stringify([KEY.jwk])],
    );
    const { page, problems } = await open('issuers');
    await page.getByRole('row', { name: 'old-paste' }).filter({ hasText: 'pasted long ago' }).waitFor();
    await page.getByRole('row', { name: 'failing' }).filter({ hasText: 'fetch fails' }).waitFor();
    await shoot(page, 'issuers');
    await page.getByRole('radio', { name: 'Disabled' }).click();
    await page.getByRole('row', { name: 'switched-off' }).waitFor();
    await expect.poll(() => page.getByRole('row', { name: 'old-paste' }).count()).toBe(0);
    await page.getByRole('radio', { name: 'All' }).click();
    await page.getByRole('searchbox', { name: 'Search issuers' }).fill('old.console');
    await expect.poll(() => page.getByRole('row', { name: 'failing' }).count()).toBe(0);
    await page.getByRole('row', { name: /old-paste/ }).click();
    await page.getByText('The keys were pasted 100 days ago.').waitFor();
    await visit(page, `/console/issuers/${failing}?tenant=${TENANT}`);
    await page.getByText('connection refused').waitFor();
    await page.getByRole('button', { name: 'Refresh keys' }).click();
    await page.getByText('connection refused').waitFor({ state: 'hidden' });
    await page.getByText('The last attempt to fetch the keys failed.').waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the templates of issuers', () => {
  it('fill in what the server accepts', async () => {
    const refused: unknown[] = [];
    for (const id of TEMPLATE_IDS.filter((one) => one !== 'own')) {
      // Whether a text is a certificate is not the template's matter.
      const samples = templateOf(id).inputs.filter(({ name }) => name !== 'ca');
      const values = Object.fromEntries(samples.map(({ name, sample }) => [name, sample]));
      const issuer = newIssuerOf({ ...EMPTY_ISSUER, name: `template-${id}`, ...filledBy(id, values) }, 'a secret');
      // Another tenant may have an enabled issuer of the same value.
      const body = { ...issuer, enabled: false };
      const reply = await call(http, 'POST', '/v1/iam/issuers', { token: stand.token, tenant: TENANT, body });
      if (reply.status !== 201) refused.push(id, reply.body);
    }
    expect(refused).toEqual([]);
  });
});

describe('the screens of issuers', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'looked-at-by-issuer', permissions: ['models:read'] });
    const id = await makeIssuer({
      ...{ name: 'looked-at', issuer: 'https://looked-at.console-issuers.example', jwks: JSON.parse(KEY_SET) },
      required_claims: [{ claim: 'tid', in: ['one', 'two'] }],
      users: { create: true, roles: [{ claim: 'roles', in: ['a'], roles: ['looked-at-by-issuer'] }] },
      sso: { client_id: 'postern', client_secret: 'a secret of a test', label: 'Acme' },
    });
    const { page, problems } = await open('issuers');
    const paths = ['issuers', 'new-issuer', 'new-issuer?template=github', 'new-issuer?template=own', `issuers/${id}`];
    for (const path of [...paths, `issuers/${id}?open=test`, 'keys?open=new&issuer=looked-at']) {
      await visit(page, `/console/${path}${path.includes('?') ? '&' : '?'}tenant=${TENANT}`);
      await untilSettled(page);
      await shoot(page, `look ${path.replace(id, 'id').replaceAll(/[?/=&]/g, '-')}`);
      expect(await faultsInEveryLook(page)).toEqual([]);
    }
    expect(
      (await call(http, 'GET', `/v1/iam/issuers/${id}`, { token: stand.token, tenant: TENANT })).body,
    ).toMatchObject({
      sso: { client_id: 'postern', label: 'Acme' },
    });
    expect(problems).toEqual([]);
  });
});
