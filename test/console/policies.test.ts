import { describe, expect } from 'vitest';
import { call, done, makeUser } from '../server/support/client.ts';
import {
  accessibilityFaults,
  applyLook,
  chooseOption,
  faultsInEveryLook,
  PHONE,
  untilSettled,
  visit,
} from './support/browser.ts';
import { ask, chooseAction, developerKey, shoot } from './support/policies.ts';
import { type ConsoleStand, it } from './support/stand.ts';

let stand: ConsoleStand;
let http: string;
it.beforeAll(async ({ stand: shared }) => {
  stand = shared;
  http = stand.server.http;
});

const manage = (method: string, path: string, body?: object) => done(http, method, path, { token: stand.token, body });
const policy = async (name: string) => (await manage('GET', `/v1/iam/policies/${name}`)).body;

describe('the list of policies', () => {
  it('finds a policy by name, effect and state, and opens it', async () => {
    const rule = { actions: ['chat:read'], resources: ['models/list-only'] };
    await manage('POST', '/v1/iam/policies', { name: 'list-deny', effect: 'deny', ...rule });
    await manage('POST', '/v1/iam/policies', { name: 'list-allow', effect: 'allow', ...rule });
    await manage('POST', '/v1/iam/policies', { name: 'list-off', effect: 'deny', ...rule, enabled: false });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies?effect=deny' });
    await page.getByRole('row', { name: 'list-deny' }).waitFor();
    expect(await page.getByRole('row', { name: 'list-allow' }).count()).toBe(0);
    await page.getByRole('radiogroup', { name: 'Effect' }).getByRole('radio', { name: 'All', exact: true }).click();
    await page.getByRole('row', { name: 'list-allow' }).getByText('no role', { exact: true }).waitFor();
    await page.getByRole('radio', { name: 'Off', exact: true }).click();
    await expect.poll(() => page.getByRole('row', { name: 'list-' }).count()).toBe(1);
    await page.getByText('Off. When on, it denies chat history on models/list-only to everyone.').waitFor();
    await page.getByRole('radio', { name: 'On and off' }).click();
    await page.getByRole('searchbox', { name: 'Search policies' }).fill('list-allow');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    await page.getByRole('row', { name: 'list-allow' }).click();
    await page.getByRole('heading', { level: 1, name: 'list-allow' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the policies that need care', () => {
  it('are found by the server among all policies, with what is wrong with each', async () => {
    const rule = { effect: 'deny', resources: ['*'] };
    await manage('POST', '/v1/iam/policies', { name: 'care-typo', ...rule, actions: ['rag:querry'] });
    await manage('POST', '/v1/iam/policies', { name: 'care-none', ...rule, actions: ['rag:write'], enabled: false });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies?q=care-' });
    await page.getByRole('row', { name: 'care-none' }).waitFor();
    await page.getByText('Needs care', { exact: true }).click();
    await expect.poll(() => page.getByRole('row', { name: 'care-none' }).count()).toBe(0);
    await page.getByRole('row', { name: /care-typo.*Needs care:.*rag:querry/ }).waitFor();
    expect(new URL(page.url()).searchParams.get('notices')).toBe('true');
    await visit(page, '/console/roles?notices=true&q=developer');
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.getByRole('row', { name: 'developer' }).waitFor();
    expect(problems).toEqual([]);
  });
});

describe('the editor of a policy', () => {
  it('shows during typing whether an address matches, and which texts are no networks, times or windows', async () => {
    const { page, problems } = await stand.asAdmin({ path: '/console/new-policy' });
    await page.getByRole('button', { name: 'Address', exact: true }).click();
    const networks = page.getByRole('textbox', { name: 'Networks' });
    await networks.fill('10.20.0.1/16');
    await page.getByText('Write an IP address or a CIDR block').waitFor();
    await networks.fill('10.20.0.0/16');
    await networks.press('Enter');
    await networks.fill('2001:db8::/32');
    await networks.press('Enter');
    const tried = page.getByRole('textbox', { name: 'Does it match?' });
    await tried.fill('10.20.14');
    await page.getByText('This is no IP address.').waitFor();
    await tried.fill('10.20.14.9');
    await page.getByText('10.20.14.9 is in 10.20.0.0/16, so the condition does not hold.').waitFor();
    await tried.fill('::ffff:10.21.0.1');
    await page.getByText('::ffff:10.21.0.1 is in none of them, so the condition holds.').waitFor();
    await page.getByText('from outside 10.20.0.0/16 and 2001:db8::/32 to everyone.').waitFor();

    await page.getByRole('button', { name: 'Time of day' }).click();
    await page.getByText('It goes over midnight into the next day.').waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('25:00');
    await page.getByText('Write HH:MM').first().waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('22:00');
    await page.getByText('Give a start and an end that differ.').waitFor();
    await page.getByRole('textbox', { name: 'End' }).fill('24:00');
    await page.getByRole('button', { name: 'Days', exact: true }).click();
    await page
      .getByRole('radio', { name: 'Sat' })
      .or(page.getByRole('button', { name: 'Sat', exact: true }))
      .click();
    await page.getByText('on Sun during 22:00-24:00 (UTC)').waitFor();

    await page.getByRole('button', { name: 'Hours of the week' }).click();
    await page.getByRole('radio', { name: 'Text' }).click();
    const windows = page.getByRole('textbox', { name: 'Windows' });
    await windows.fill('Mon-Fri 8-18');
    await page.getByText('Write days and a time span').waitFor();
    await windows.fill('Sat 22:30-02:00');
    await windows.press('Enter');
    await page.getByText('These windows do not begin and end at full hours').waitFor();

    const clockOf = page.getByRole('combobox', { name: 'On the clock of' });
    await clockOf.click();
    await clockOf.pressSequentially('Europe/Berl');
    await chooseOption(page.getByRole('option', { name: 'Europe/Berlin' }));
    await page.getByText('(Europe/Berlin)').waitFor();

    const resources = page.getByRole('textbox', { name: 'Resources' });
    await resources.fill('model/gpt');
    await page.getByText('Write *, or models/…').waitFor();
    await resources.fill('models/gpt-*');
    await resources.press('Enter');
    await page.getByRole('button', { name: '*, Remove *', exact: true }).click();
    await chooseAction(page, 'embeddings:write');
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('all-conditions');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'all-conditions' }).waitFor();
    expect(await policy('all-conditions')).toMatchObject({
      effect: 'deny',
      actions: ['embeddings:write'],
      resources: ['models/gpt-*'],
      applies_to: 'everyone',
      conditions: {
        weekly_hours: { not_in: ['Mon-Fri 08:00-18:00', 'Sat 22:30-02:00'] },
        day_of_week: { in: ['Sun'] },
        time: { between: ['22:00', '24:00'] },
        ip_address: { not_in: ['10.20.0.0/16', '2001:db8::/32'] },
        timezone: 'Europe/Berlin',
      },
    });
    await manage('DELETE', '/v1/iam/policies/all-conditions');
    expect(problems).toEqual([]);
  });

  it('attaches a policy to a role and detaches it, which requests meet', async () => {
    const { key } = await developerKey(stand);
    await manage('POST', '/v1/iam/policies', {
      name: 'attached-here',
      effect: 'deny',
      actions: ['chat:read'],
      resources: ['*'],
      applies_to: 'roles',
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/attached-here' });
    await page.getByText('to no role yet, because none is attached.').waitFor();
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('developer');
    await chooseOption(page.getByRole('option', { name: 'developer' }));
    await page.getByText('Denies chat history to developers.').waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('403 attached-here');
    await page.getByRole('button', { name: 'Remove developer' }).click();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('200');
    expect((await policy('attached-here'))['attached_roles']).toEqual([]);
    await page.getByRole('radio', { name: 'Everyone' }).click();
    await page.getByText('Denies chat history to everyone.').waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('403 attached-here');
    await page.getByText('In force', { exact: true }).click();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Off. When on, it denies').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('200');
    expect(problems).toEqual([]);
  });

  it('shows the requests that a report-only policy would have denied, and enforces it', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'reported-role', permissions: ['chat:*'] });
    const { owner, key } = await developerKey(stand);
    await manage('PUT', `/v1/iam/users/${owner}`, { roles: ['reported-role'] });
    await manage('POST', '/v1/iam/policies', {
      name: 'only-reports',
      effect: 'deny',
      actions: ['chat:read'],
      resources: ['*'],
      attached_roles: ['reported-role'],
      mode: 'report',
    });
    await expect
      .poll(async () => {
        const answer = await ask(stand, key);
        const { data } = (await manage('GET', '/v1/iam/decisions/recent?report=only-reports')).body;
        return [answer, Array.isArray(data) && data.length > 0];
      })
      .toEqual(['200', true]);
    const { page, problems } = await stand.asAdmin({ path: '/console/policies?state=report' });
    await page.getByRole('row', { name: 'only-reports' }).getByText('Would deny', { exact: true }).waitFor();
    await page.getByRole('row', { name: 'only-reports' }).click();
    await page.getByText('Would deny chat history to holders of reported-role.').waitFor();
    await page.getByText(/^It would have denied \d+ of the recorded requests/).waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.getByRole('link', { name: /^GET / }).first().click();
    await page.getByText('The report-only policy only-reports would have denied this request.').first().waitFor();
    expect(await accessibilityFaults(page)).toEqual([]);
    await page.goBack();
    await page.getByRole('radio', { name: 'Enforce', exact: true }).click();
    await page.getByText('Denies chat history to holders of reported-role.').waitFor();
    await page.getByRole('button', { name: 'Save policy' }).click();
    await page.getByText('Saved. It is in force').waitFor();
    await expect.poll(() => ask(stand, key)).toBe('403 only-reports');
    expect(problems).toEqual([]);
  });

  it('sends only changed members, and keeps the typed values if another administrator saved first', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'contested',
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['*'],
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/contested' });
    const sent: unknown[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PUT') sent.push(request.postDataJSON());
    });
    const save = page.getByRole('button', { name: 'Save policy' });
    await save.waitFor();
    expect(await save.getAttribute('aria-disabled')).toBe('true');
    await page.getByRole('textbox', { name: 'Description' }).fill('Ours');
    await manage('PUT', '/v1/iam/policies/contested', { resources: ['collections/hr'] });
    await save.click();
    await page.getByText('Somebody else saved a change').waitFor();
    await page.getByRole('button', { name: 'Continue with the newest' }).click();
    await page.getByRole('button', { name: 'Remove collections/hr' }).waitFor();
    await save.click();
    await page.getByText('Saved. It is in force').waitFor();
    expect(sent).toEqual([{ description: 'Ours' }, { description: 'Ours' }]);
    expect(await policy('contested')).toMatchObject({ description: 'Ours', resources: ['collections/hr'] });
    expect(problems).toEqual([]);
  });

  it('saves a policy that allows holders of its role what no role gives them', async () => {
    await manage('POST', '/v1/iam/roles', { name: 'auditors-of-chat', permissions: ['models:read'] });
    const { owner, key } = await developerKey(stand);
    await manage('PUT', `/v1/iam/users/${owner}`, { roles: ['auditors-of-chat'] });
    expect(await ask(stand, key)).toBe('403 undefined');
    const { page, problems } = await stand.asAdmin({ path: '/console/new-policy' });
    await page.getByRole('radio', { name: 'Allow' }).click();
    await page.getByText('Allows nothing yet to').waitFor();
    await page.getByText('It allows when all resources of a request match.').waitFor();
    await chooseAction(page, 'chat:read');
    await page.getByRole('radio', { name: 'Holders of roles' }).click();
    await page.getByText('The policy is attached to no role. It applies to no request until you choose one.').waitFor();
    await page.getByRole('searchbox', { name: 'Search: Roles' }).fill('auditors-of');
    await chooseOption(page.getByRole('option', { name: 'auditors-of-chat' }));
    await page.getByText('Allows chat history to holders of auditors-of-chat.').waitFor();
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('analysts-read');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'analysts-read' }).waitFor();
    await expect.poll(() => ask(stand, key)).toBe('200');
    expect(await policy('analysts-read')).toMatchObject({
      effect: 'allow',
      actions: ['chat:read'],
      applies_to: 'roles',
      attached_roles: ['auditors-of-chat'],
    });
    await manage('DELETE', '/v1/iam/policies/analysts-read');
    expect(problems).toEqual([]);
  });

  it('creates a policy from another one under a name of its own', async () => {
    const rule = {
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['collections/hr-*'],
      conditions: { weekly_hours: { in: ['Sat 22:00-02:00'] }, timezone: 'Asia/Tokyo' },
      attached_roles: ['developer'],
      enabled: false,
    };
    await manage('POST', '/v1/iam/policies', { name: 'original', ...rule });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/original' });
    await page.getByRole('button', { name: 'Create one from it' }).click();
    const name = page.getByRole('textbox', { name: 'Name', exact: true });
    await name.fill('original');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByText('A policy with this name already exists').waitFor();
    await name.fill('duplicate');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'duplicate' }).waitFor();
    expect(await policy('duplicate')).toMatchObject({ applies_to: 'roles', ...rule });
    expect(problems).toEqual([]);
  });

  it('sends nothing when nothing is changed, and nothing after a change is taken back', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'unchanged',
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['*'],
      // In another order than the editor writes them.
      conditions: { timezone: 'UTC', ip_address: { in: ['10.0.0.0/8'] }, time: { between: ['22:00', '06:00'] } },
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/unchanged' });
    const sent: string[] = [];
    page.on('request', (request) => {
      if (!['GET', 'HEAD'].includes(request.method()) && request.url().includes('/v1/iam/'))
        sent.push(request.method());
    });
    const description = page.getByRole('textbox', { name: 'Description' });
    await description.press('Enter');
    await description.fill('Another');
    await page.getByText('Not saved yet.').waitFor();
    await page.getByRole('button', { name: 'Discard' }).click();
    await page.getByText('Not saved yet.').waitFor({ state: 'detached' });
    await description.press('Enter');
    await description.fill('Saved at last');
    await description.press('Enter');
    await page.getByText('Saved. It is in force').waitFor();
    expect(sent).toEqual(['PUT']);
    expect(problems).toEqual([]);
  });

  it('deletes a policy after its name is typed', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'unwanted',
      effect: 'deny',
      actions: ['rag:write'],
      resources: ['*'],
    });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies/unwanted' });
    await page.getByRole('button', { name: 'Delete policy' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByRole('textbox').fill('unwanted');
    await dialog.getByRole('button', { name: 'Delete policy' }).click();
    await page.getByRole('heading', { level: 1, name: 'Policies' }).waitFor();
    expect((await call(http, 'GET', '/v1/iam/policies/unwanted', { token: stand.token })).status).toBe(404);
    expect(problems).toEqual([]);
  });

  it('warns that a policy would lock its author out, and saves it only after a confirmation', async () => {
    const tenant = 'locked-out';
    await manage('POST', '/v1/iam/tenants', { id: tenant, name: 'Locked out' });
    const person = await makeUser(http, stand.token, { roles: ['tenant-admin'], tenant });
    const { page, problems } = await stand.signIn({ person, path: '/console/new-policy' });
    await page.getByRole('textbox', { name: 'Name', exact: true }).fill('self-harm');
    await chooseAction(page, 'admin:policies');
    await page.getByRole('button', { name: 'Create policy' }).click();
    await page.getByText('This would deny you the management of policies right now.').waitFor();
    expect((await call(http, 'GET', '/v1/iam/policies/self-harm', { token: stand.token, tenant })).status).toBe(404);
    await page.getByRole('button', { name: 'Save anyway' }).click();
    await expect
      .poll(async () => (await call(http, 'GET', '/v1/iam/policies/self-harm', { token: stand.token, tenant })).status)
      .toBe(200);
    expect(problems).toEqual([]);
  });
});

describe('the screens of policies', () => {
  it('have no serious accessibility fault and fit the screen in both themes, on desktops and phones', async () => {
    await manage('POST', '/v1/iam/policies', {
      name: 'looked-at',
      effect: 'deny',
      actions: ['embeddings:*'],
      resources: ['models/gpt-*'],
      attached_roles: ['developer'],
      conditions: {
        weekly_hours: { not_in: ['Mon-Fri 08:00-18:00', 'Sat 09:00-13:00'] },
        time: { between: ['22:00', '06:00'] },
        day_of_week: { in: ['Mon'] },
        ip_address: { not_in: ['10.20.0.0/16', '2001:db8:40::/48'] },
        timezone: 'Europe/Berlin',
      },
    });
    const { owner } = await developerKey(stand);
    await manage('PUT', `/v1/iam/users/${owner}`, { name: 'Frieda Looked At' });
    const { page, problems } = await stand.asAdmin({ path: '/console/policies' });
    await page.getByRole('row', { name: 'looked-at' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await shoot(page, 'policies');
    await visit(page, '/console/policies/looked-at');
    await applyLook(page, PHONE);
    await page.getByRole('button', { name: 'Choose a request' }).click();
    // The list closes when the page scrolls, as it does to a field below the screen: first the place, then the text.
    // The difference above the field moves it when it arrives.
    await untilSettled(page);
    await page.getByRole('combobox', { name: 'User' }).click();
    await page.getByRole('combobox', { name: 'User' }).fill('Frieda Looked At');
    await chooseOption(page.getByRole('option', { name: /^Frieda Looked At/ }));
    await page.getByRole('button', { name: 'Try it' }).click();
    await page.getByText(/^With this draft/).waitFor();
    await chooseAction(page, 'chat:*');
    await page.getByRole('list', { name: 'Newly denied' }).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await shoot(page, 'policy');
    await page.goto('/console/new-policy');
    await page.getByRole('button', { name: 'Create policy' }).waitFor();
    await page.getByRole('option').nth(3).waitFor();
    expect(await faultsInEveryLook(page)).toEqual([]);
    await shoot(page, 'new policy');
    await manage('DELETE', '/v1/iam/policies/looked-at');
    expect(problems).toEqual([]);
  });
});
