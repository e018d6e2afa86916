/** The palette's entries for a typed text: screens and commands at once, and what the server found. */

import { useNavigate } from '@tanstack/react-router';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useMe } from '../../api/session.ts';
import type { Wanted } from '../../api/wanted.ts';
import { palette as text } from '../../text/en/palette.ts';
import { shell } from '../../text/en/shell.ts';
import type { IconName } from '../../ui/icon.tsx';
import { WAYS } from '../nav.tsx';
import { type GuardedScreen, NEEDS, useMayOpen } from '../needs.ts';
import { useActIn } from '../tenant-switcher.tsx';
import { type Entry, type Group, isMeant } from './entries.ts';
import type { Found } from './found.ts';

/** The groups that hold something. */
export function useGroups(typed: string, wanted: Wanted, found: Found): readonly Group[] {
  const local = useLocalGroups(typed.trim(), wanted);
  const searched = useFoundGroups(found);
  return [...local, ...searched].filter(({ entries }) => entries.length > 0);
}

function useLocalGroups(typed: string, wanted: Wanted): readonly Group[] {
  const navigate = useNavigate();
  const places = usePlaces();
  const actions = useActions();
  if (wanted.kind === 'request') {
    const { id } = wanted;
    return [
      {
        id: 'request',
        entries: [
          {
            id: 'request explain',
            icon: 'explain',
            name: text.explainRequest(id),
            go: () => void navigate({ to: '/explain', search: { request_id: id } }),
          },
          {
            id: 'request audit',
            icon: 'audit',
            name: text.auditRequest(id),
            go: () => void navigate({ to: '/audit', search: { request_id: id } }),
          },
        ],
      },
    ];
  }
  return [
    { id: 'places', entries: places.filter(({ name }) => isMeant(name, typed)) },
    { id: 'actions', entries: actions.filter(({ name }) => isMeant(name, typed)) },
  ];
}

/** Every screen. An entry names the permission that the caller lacks for it. */
function usePlaces(): readonly Entry[] {
  const navigate = useNavigate();
  const aside = useAside();
  const account: Entry = {
    id: 'place account',
    icon: 'user',
    name: shell.screens.account,
    go: () => void navigate({ to: '/account' }),
  };
  return [
    ...WAYS.map(
      ({ screen, to, icon }): Entry => ({
        id: `place ${screen}`,
        icon,
        name: shell.screens[screen],
        aside: aside(screen),
        keys: screen === 'explain' ? ['E'] : undefined,
        go: () => void navigate({ to }),
      }),
    ),
    account,
  ];
}

function useActions(): readonly Entry[] {
  const navigate = useNavigate();
  const aside = useAside();
  const action = (
    name: keyof typeof text.actions,
    icon: IconName,
    go: () => void,
    more: Partial<Entry> = {},
  ): Entry => ({
    id: `action ${name}`,
    icon,
    name: text.actions[name],
    go,
    ...more,
  });
  return [
    action('createKey', 'plus', () => void navigate({ to: '/keys', search: { open: 'new' } }), { keys: ['C', 'K'] }),
    action('createUser', 'plus', () => void navigate({ to: '/users', search: { open: 'new' } }), {
      aside: aside('users'),
    }),
    action('createRole', 'plus', () => void navigate({ to: '/new-role' }), { aside: aside('roles') }),
    action('createPolicy', 'plus', () => void navigate({ to: '/new-policy' }), { aside: aside('policies') }),
    action('createIssuer', 'plus', () => void navigate({ to: '/new-issuer' }), { aside: aside('issuers') }),
    action('createBudget', 'plus', () => void navigate({ to: '/new-budget' }), { aside: aside('budgets') }),
    action('createWebhook', 'plus', () => void navigate({ to: '/webhooks', search: { add: true } }), {
      aside: aside('webhooks'),
    }),
    action('createTenant', 'plus', () => void navigate({ to: '/tenants', search: { open: '_new' } }), {
      aside: aside('tenants'),
    }),
    action('refusals', 'audit', () => void navigate({ to: '/audit', search: { result: 'refused' } }), {
      aside: aside('audit'),
    }),
  ];
}

function useAside(): (screen: string) => string | undefined {
  const mayOpen = useMayOpen();
  return (screen) => {
    if (!isGuarded(screen) || mayOpen(screen)) return undefined;
    return text.needs(NEEDS[screen].permission);
  };
}

function isGuarded(screen: string): screen is GuardedScreen {
  return Object.hasOwn(NEEDS, screen);
}

function useFoundGroups({ users, keys, roles, policies, issuers, tenants }: Found): readonly Group[] {
  const navigate = useNavigate();
  const actIn = useActIn();
  const { tenant_id: own } = useMe();
  const [first] = users;
  return [
    {
      id: 'users',
      entries: users.map(({ id, name, email, status, department }) => ({
        id,
        icon: 'user',
        name,
        detail: email ?? undefined,
        aside: status === 'active' ? (department ?? undefined) : status,
        go: () => void navigate({ to: '/users/$id', params: { id } }),
      })),
    },
    {
      id: 'keys',
      entries: keys.map((key) => ({
        id: key.id,
        icon: 'key',
        name: nameOf(key),
        detail: shownKey(key),
        isMono: true,
        aside: key.status === 'active' ? undefined : key.status,
        go: () => void navigate({ to: '/keys', search: { open: key.id } }),
      })),
    },
    {
      id: 'roles',
      entries: roles.map(({ name, description, builtin }) => ({
        id: `role ${name}`,
        icon: 'role',
        name,
        detail: description,
        aside: builtin ? text.builtin : undefined,
        go: () => void navigate({ to: '/roles/$name', params: { name } }),
      })),
    },
    {
      id: 'policies',
      entries: policies.map(({ name, description, enabled }) => ({
        id: `policy ${name}`,
        icon: 'policy',
        name,
        detail: description,
        aside: enabled ? undefined : text.disabled,
        go: () => void navigate({ to: '/policies/$name', params: { name } }),
      })),
    },
    {
      id: 'issuers',
      entries: issuers.map(({ id, name, issuer, enabled }) => ({
        id: `issuer ${id}`,
        icon: 'issuer',
        name,
        detail: issuer,
        aside: enabled ? undefined : text.disabled,
        go: () => void navigate({ to: '/issuers/$id', params: { id } }),
      })),
    },
    {
      id: 'tenants',
      entries: tenants.map(({ id, name, status }) => ({
        id: `tenant ${id}`,
        icon: 'tenant',
        name,
        detail: id,
        isMono: true,
        aside: status === 'suspended' ? shell.suspended : id === own ? shell.ownTenant : undefined,
        go: () => actIn(id),
      })),
    },
    { id: 'actions', entries: first === undefined ? [] : aboutUser(first, navigate) },
  ];
}

/** Common actions on the first user of the results. */
function aboutUser(
  { id, name }: { readonly id: string; readonly name: string },
  navigate: ReturnType<typeof useNavigate>,
): readonly Entry[] {
  return [
    {
      id: 'about explain',
      icon: 'explain',
      name: text.explainOf(name),
      go: () => void navigate({ to: '/explain', search: { user: id } }),
    },
    {
      id: 'about keys',
      icon: 'key',
      name: text.keysOf(name),
      go: () => void navigate({ to: '/keys', search: { user: id } }),
    },
    {
      id: 'about audit',
      icon: 'audit',
      name: text.changesOf(name),
      go: () => void navigate({ to: '/audit', search: { actor: id } }),
    },
  ];
}
