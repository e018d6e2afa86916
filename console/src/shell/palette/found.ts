/** The search results for a typed text: at most one page of each kind, and only kinds that the caller may read. */

import { useQueries } from '@tanstack/react-query';
import {
  type ApiKey,
  type Client,
  type Issuer,
  type Policy,
  ProblemError,
  type Role,
  type Tenant,
  type User,
} from '../../../../client/index.ts';
import type { SearchText } from '../../api/search-text.ts';
import { useMe, useTenant } from '../../api/session.ts';
import { findTenants } from '../../api/tenants.ts';
import type { Wanted } from '../../api/wanted.ts';
import { useMayOpen } from '../needs.ts';

const PAGE = 5;

type Kind = 'users' | 'keys' | 'roles' | 'policies' | 'issuers' | 'tenants';

export interface Found {
  readonly users: readonly User[];
  readonly keys: readonly ApiKey[];
  readonly roles: readonly Role[];
  readonly policies: readonly Policy[];
  readonly issuers: readonly Issuer[];
  readonly tenants: readonly Tenant[];
  readonly isSearching: boolean;
  readonly error: unknown;
  /** Kinds that were left out because the caller may not read them. */
  readonly left: readonly Exclude<Kind, 'keys' | 'tenants'>[];
}

interface Source<T> {
  readonly kind: Kind;
  readonly isAllowed: boolean;
  readonly load: (signal: AbortSignal) => Promise<readonly T[]>;
}

export function useFound(wanted: Wanted): Found {
  const { id: tenant, client } = useTenant();
  const { platform_admin: isPlatformAdmin } = useMe();
  const mayOpen = useMayOpen();
  const source = <T>(one: Source<T>) => ({
    queryKey: [tenant, one.kind, 'palette', wanted],
    queryFn: ({ signal }: { readonly signal: AbortSignal }) => one.load(signal),
    enabled: one.isAllowed && asks(one.kind, wanted),
    retry: false,
  });
  const [users, keys, roles, policies, issuers, tenants] = useQueries({
    queries: [
      source<User>({ kind: 'users', isAllowed: mayOpen('users'), load: (signal) => loadUsers(client, wanted, signal) }),
      source<ApiKey>({ kind: 'keys', isAllowed: true, load: (signal) => loadKeys(client, wanted, signal) }),
      source<Role>({
        kind: 'roles',
        isAllowed: mayOpen('roles'),
        load: async (signal) =>
          (await client.request('GET', '/v1/iam/roles', { query: { q: textOf(wanted), limit: PAGE }, signal })).data,
      }),
      source<Policy>({
        kind: 'policies',
        isAllowed: mayOpen('policies'),
        load: async (signal) =>
          (await client.request('GET', '/v1/iam/policies', { query: { q: textOf(wanted), limit: PAGE }, signal })).data,
      }),
      source<Issuer>({
        kind: 'issuers',
        isAllowed: mayOpen('issuers'),
        load: async (signal) =>
          (await client.request('GET', '/v1/iam/issuers', { query: { q: textOf(wanted), limit: PAGE }, signal })).data,
      }),
      source<Tenant>({
        kind: 'tenants',
        isAllowed: isPlatformAdmin,
        load: async (signal) => (await findTenants(textOf(wanted) ?? '', PAGE, signal)).rows,
      }),
    ],
  });
  const all = [users, keys, roles, policies, issuers, tenants];
  return {
    users: users.data ?? [],
    keys: keys.data ?? [],
    roles: roles.data ?? [],
    policies: policies.data ?? [],
    issuers: issuers.data ?? [],
    tenants: tenants.data ?? [],
    isSearching: all.some(({ isFetching, data }) => isFetching && data === undefined),
    error: all.find(({ isError }) => isError)?.error ?? undefined,
    left: (['users', 'roles', 'policies', 'issuers'] as const).filter((kind) => asks(kind, wanted) && !mayOpen(kind)),
  };
}

/** An id or the beginning of a key names one kind; any other text may name all. */
function asks(kind: Kind, wanted: Wanted): boolean {
  switch (wanted.kind) {
    case 'nothing':
    case 'request':
      return false;
    case 'user':
      return kind === 'users';
    case 'key':
    case 'prefix':
      return kind === 'keys';
    case 'text':
      return true;
    default:
      return wanted satisfies never;
  }
}

function textOf(wanted: Wanted): SearchText | undefined {
  return wanted.kind === 'text' ? wanted.q : undefined;
}

async function loadUsers(client: Client, wanted: Wanted, signal: AbortSignal): Promise<readonly User[]> {
  if (wanted.kind === 'user') return orNone(client.users.get(wanted.id, { signal }));
  const page = await client.request('GET', '/v1/iam/users', { query: { q: textOf(wanted), limit: PAGE }, signal });
  return page.data;
}

async function loadKeys(client: Client, wanted: Wanted, signal: AbortSignal): Promise<readonly ApiKey[]> {
  if (wanted.kind === 'key') return orNone(client.apiKeys.get(wanted.id, { signal }));
  const filter = wanted.kind === 'prefix' ? { prefix: wanted.prefix } : { q: textOf(wanted) };
  const page = await client.request('GET', '/v1/iam/api-keys', { query: { ...filter, limit: PAGE }, signal });
  return page.data;
}

async function orNone<T>(read: Promise<T>): Promise<readonly T[]> {
  try {
    return [await read];
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return [];
    throw error;
  }
}
