/**
 * The lists, searches and pickers of the console, lucky and unlucky, as a platform administrator meets them in the
 * tenant with most users.
 */

import type { Page } from 'playwright-core';
import type { Watched } from './console-watch.ts';
import { BIG } from './iam-population.ts';
import { userOf } from './population.ts';

export interface ConsoleCase extends Watched {
  readonly name: string;
  readonly kind: 'list' | 'search' | 'picker' | 'page';
  /** Where the action begins, if it is one. */
  readonly from?: string;
  /** Done before anything is measured. */
  readonly before?: (page: Page) => Promise<void>;
}

const ROWS = 'main [role=grid] tbody [role=row]';
const OPTIONS = '[role=listbox] [role=option]';
/** The options of the list under a field. The page may have other lists. */
const SUGGESTED = '[data-trigger=ComboBox] [role=option]';
const USERS = '/v1/iam/users';
const KEYS = '/v1/iam/api-keys';
const ROLES = '/v1/iam/roles';
const POLICIES = '/v1/iam/policies';
const TENANTS = '/v1/iam/tenants';
const AUDIT = '/v1/iam/audit';

function at(path: string): string {
  const [screen, query = ''] = path.split('?');
  return `/console${screen}?${new URLSearchParams([...new URLSearchParams(query), ['tenant', BIG]])}`;
}

const list = (name: string, path: string, answer: string, text?: string): ConsoleCase => ({
  name: `${name}: open`,
  kind: 'list',
  path: at(path),
  answer,
  ready: { rows: ROWS, ...(text === undefined ? {} : { text }) },
});

const search = (
  screen: string,
  path: string,
  answer: string,
  box: string,
  typed: string,
  text: string = typed,
): ConsoleCase => ({
  name: `${screen}: search "${typed}"`,
  kind: 'search',
  from: at(path),
  act: (page) => page.getByRole('searchbox', { name: box, exact: true }).fill(typed),
  answer,
  ready: { rows: ROWS, text },
});

interface PickerCase {
  readonly name: string;
  readonly from: string;
  /** Undefined: the screen asked for what it shows, so the time runs from the action. */
  readonly answer?: string | readonly string[];
  /** Opens the picker, or what it is in. */
  readonly before?: (page: Page) => Promise<void>;
  readonly act: (page: Page) => Promise<void>;
  readonly text?: string;
  readonly rows?: string;
}

const picker = ({ name, from, answer, before, act, text, rows = OPTIONS }: PickerCase): ConsoleCase => ({
  name,
  kind: 'picker',
  from: at(from),
  act,
  ready: { rows, ...(text === undefined ? {} : { text }) },
  ...(answer === undefined ? {} : { answer }),
  ...(before === undefined ? {} : { before }),
});

const press = (name: string | RegExp) => (page: Page) => page.getByRole('button', { name }).first().click();
const openPalette = async (page: Page) => {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or jump to' }).waitFor();
};
const openActors = (page: Page) => page.getByRole('button', { name: 'Actor', exact: true }).click();
const openTenants = press(/^Change the tenant/);
const openRoleFilter = (page: Page) => page.getByRole('button', { name: 'Role', exact: true }).click();
const typeInto = (role: 'searchbox' | 'combobox', name: string, text: string) => (page: Page) =>
  page.getByRole(role, { name }).fill(text);
const choosing = (name: string) => (page: Page) => page.getByRole('combobox', { name }).click();
const openAudience = (page: Page) => page.getByRole('radio', { name: 'Holders of roles' }).click();

/** Has keys. */
const OWNER = userOf(1);

export const CASES: readonly ConsoleCase[] = [
  list('API keys', '/keys', KEYS),
  list('API keys, active', '/keys?status=active', KEYS),
  list('API keys, expiring soon', '/keys?status=expiring', KEYS),
  list('API keys, revoked', '/keys?status=revoked', KEYS, 'revoked'),
  list('API keys by last use', '/keys?sort=-last_used_at', KEYS),
  list('API keys by expiry', '/keys?sort=expires_at', KEYS),
  list('API keys without an expiry', '/keys?care=without-expiry', KEYS),
  search('API keys', '/keys', KEYS, 'Search keys', 'key 7777'),
  search('API keys', '/keys', KEYS, 'Search keys', 'service 77'),
  search('API keys', '/keys?q=nobody', KEYS, 'Search keys', 'psk_0000'),
  {
    name: 'API keys: search that finds nothing',
    kind: 'search',
    from: at('/keys'),
    act: typeInto('searchbox', 'Search keys', 'nobody at all'),
    answer: KEYS,
    ready: { rows: ROWS, none: 'main strong' },
  },
  {
    name: 'API keys: the second page',
    kind: 'page',
    from: at('/keys'),
    act: (page) => page.getByRole('button', { name: 'Show more' }).click(),
    answer: KEYS,
    ready: { rows: `${ROWS}:nth-child(51)` },
  },
  list('users', '/users', USERS),
  list('users by name', '/users?sort=name', USERS),
  list('users, deactivated', '/users?status=deactivated', USERS, 'deactivated'),
  list('users of a role that everybody has', '/users?role=developer', USERS, 'developer'),
  list('users of a role that few have', '/users?role=fire-warden', USERS, 'fire-warden'),
  search('users', '/users', USERS, 'Search users', 'smith'),
  search('users', '/users', USERS, 'Search users', 'zbigniew'),
  search('users', '/users', USERS, 'Search users', 'engineering'),
  search('users', '/users', USERS, 'Search users', '1234'),
  list('one user: keys', `/users/${OWNER}?tab=keys`, KEYS),
  list('roles', '/roles', ROLES),
  search('roles', '/roles', ROLES, 'Search roles', 'team-2'),
  { ...list('one role: holders', '/roles/developer', USERS), ready: { rows: 'main li a[href*="/users/"]' } },
  {
    ...list('one role: policies', '/roles/developer', '/v1/iam/roles/developer/policies'),
    ready: { rows: 'main li a[href*="/policies/"]' },
  },
  list('policies', '/policies', POLICIES),
  search('policies', '/policies', POLICIES, 'Search policies', 'rule-1'),
  { ...list('one policy', '/policies/rule-001', `${POLICIES}/rule-001`), ready: { rows: 'main form input' } },
  { ...list('overview', '/', '/v1/iam/overview'), ready: { rows: 'main h1', text: 'overview' } },
  {
    ...list('access review of a model', '/access?name=model-1', '/v1/iam/explain/who-can'),
    ready: { rows: 'main tbody tr' },
  },
  list('tenants', '/tenants', TENANTS),
  list('tenants by tokens', '/tenants?sort=-tokens', TENANTS),
  search('tenants', '/tenants', TENANTS, 'Find a tenant', 'tenant-77', 'tenant-77'),
  list('audit', '/audit', AUDIT),
  list('audit of one action', '/audit?action=api_key.create', AUDIT),
  list('usage by model', '/usage', '/v1/iam/usage'),
  list('usage by key', '/usage?by=key', '/v1/iam/usage'),
  list('usage by user, most tokens first', '/usage?by=user&sort=-total_tokens', '/v1/iam/usage'),
  list('sessions', '/account', '/v1/auth/sessions'),
  { ...list('connect', '/connect', `${TENANTS}/${BIG}`), ready: { rows: 'main [role=tabpanel] pre', text: 'curl' } },
  picker({ name: 'tenant switcher: open', from: '/roles', answer: TENANTS, act: openTenants }),
  picker({
    name: 'tenant switcher: search "tenant-55"',
    from: '/roles',
    answer: TENANTS,
    before: openTenants,
    act: typeInto('combobox', 'Find a tenant by id or name', 'tenant-55'),
    text: 'tenant-55',
  }),
  picker({ name: 'role filter of users: open', from: '/users', answer: ROLES, act: openRoleFilter }),
  picker({
    name: 'role filter of users: search "team-29"',
    from: '/users',
    answer: ROLES,
    before: openRoleFilter,
    act: typeInto('searchbox', 'Show users with a role', 'team-29'),
    text: 'team-29',
  }),
  picker({ name: 'roles of a new user: open', from: '/users', answer: ROLES, act: press('Create a user') }),
  picker({
    name: 'roles of a new user: search "team-29"',
    from: '/users?open=new',
    answer: ROLES,
    act: typeInto('searchbox', 'Search: Roles', 'team-29'),
    text: 'team-29',
  }),
  picker({
    name: 'owner of a new key: search "zbigniew"',
    from: '/keys?open=new',
    answer: USERS,
    act: typeInto('combobox', 'Owner', 'zbigniew'),
    text: 'zbigniew',
    rows: SUGGESTED,
  }),
  picker({
    name: 'roles of a new policy: open',
    from: '/new-policy',
    act: openAudience,
    rows: '[role=listbox][aria-label=Roles] [role=option]',
  }),
  // All kinds are shown together, so the last answer counts.
  ...['zbigniew', 'service 77', 'tenant-55'].map((typed) =>
    picker({
      name: `command palette: search "${typed}"`,
      from: '/roles',
      answer: [USERS, KEYS, ROLES, POLICIES, TENANTS],
      before: openPalette,
      act: typeInto('combobox', 'Search or jump to', typed),
      text: typed,
    }),
  ),
  picker({ name: 'command palette: open', from: '/roles', act: openPalette }),
  picker({ name: 'actor of audit rows: open', from: '/audit', act: openActors }),
  picker({
    name: 'actor of audit rows: search "zbigniew"',
    from: '/audit',
    answer: [USERS, KEYS],
    before: openActors,
    act: typeInto('combobox', 'Find an actor', 'zbigniew'),
    text: 'zbigniew',
  }),
  picker({ name: 'user to explain: open', from: '/explain', act: choosing('User'), rows: SUGGESTED }),
  picker({
    name: 'user to explain: search "zbigniew"',
    from: '/explain',
    answer: USERS,
    act: typeInto('combobox', 'User', 'zbigniew'),
    text: 'zbigniew',
    rows: SUGGESTED,
  }),
  picker({
    name: 'key to explain: search "service 77"',
    from: '/explain',
    answer: KEYS,
    before: (page) => page.getByRole('radio', { name: 'Key' }).click(),
    act: typeInto('combobox', 'Key', 'service 77'),
    text: 'service 77',
    rows: SUGGESTED,
  }),
];
