/** The permission that each screen needs. Every user may open the other screens, which show only permitted data. */

import { useMatches } from '@tanstack/react-router';
import type { Client } from '../../../client/index.ts';
import { covers, useMe } from '../api/session.ts';

export interface Need {
  readonly permission: string;
  /** It works for platform administrators only. */
  readonly isPlatform: boolean;
  /**
   * The request of the screen's first page, as small as it can be: the server has the last word, and its answer has a
   * request id.
   */
  readonly request: string;
  readonly ask: (client: Client, signal: AbortSignal) => Promise<unknown>;
}

const query = { limit: 1 };

export const NEEDS = {
  users: {
    permission: 'admin:users',
    isPlatform: false,
    request: 'GET /v1/iam/users?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/users', { query, signal }),
  },
  roles: {
    permission: 'admin:roles',
    isPlatform: false,
    request: 'GET /v1/iam/roles?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/roles', { query, signal }),
  },
  policies: {
    permission: 'admin:policies',
    isPlatform: false,
    request: 'GET /v1/iam/policies?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/policies', { query, signal }),
  },
  issuers: {
    permission: 'admin:issuers',
    isPlatform: false,
    request: 'GET /v1/iam/issuers?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/issuers', { query, signal }),
  },
  access: {
    permission: 'admin:policies',
    isPlatform: false,
    request: 'GET /v1/iam/explain/who-can?permission=chat:write&limit=1',
    ask: (client, signal) =>
      client.request('GET', '/v1/iam/explain/who-can', { query: { ...query, permission: 'chat:write' }, signal }),
  },
  trial: {
    permission: 'audit:read',
    isPlatform: false,
    request: 'GET /v1/iam/decisions/trial',
    ask: (client, signal) => client.request('GET', '/v1/iam/decisions/trial', { signal }),
  },
  usage: {
    permission: 'usage:read',
    isPlatform: false,
    request: 'GET /v1/iam/usage?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/usage', { query, signal }),
  },
  spend: {
    permission: 'usage:read',
    isPlatform: false,
    request: 'GET /v1/iam/usage?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/usage', { query, signal }),
  },
  budgets: {
    permission: 'usage:read',
    isPlatform: false,
    request: 'GET /v1/iam/budgets?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/budgets', { query, signal }),
  },
  prices: {
    permission: 'usage:read',
    isPlatform: false,
    request: 'GET /v1/iam/prices',
    ask: (client, signal) => client.request('GET', '/v1/iam/prices', { signal }),
  },
  webhooks: {
    permission: 'admin:webhooks',
    isPlatform: false,
    request: 'GET /v1/iam/webhooks?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/webhooks', { query, signal }),
  },
  audit: {
    permission: 'audit:read',
    isPlatform: false,
    request: 'GET /v1/iam/audit?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/audit', { query, signal }),
  },
  tenants: {
    permission: 'admin:tenants',
    isPlatform: true,
    request: 'GET /v1/iam/tenants?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/tenants', { query, signal }),
  },
  directory: {
    permission: 'admin:tenants',
    isPlatform: true,
    // A test of the directory would try a login; the tenants need the same.
    request: 'GET /v1/iam/tenants?limit=1',
    ask: (client, signal) => client.request('GET', '/v1/iam/tenants', { query, signal }),
  },
} as const satisfies Readonly<Record<string, Need>>;

/** A screen that needs a permission. */
export type GuardedScreen = keyof typeof NEEDS;

declare module '@tanstack/react-router' {
  interface StaticDataRouteOption {
    /** Absent if every user may open the route. */
    readonly guarded?: GuardedScreen;
  }
}

/** Returns the screen of the address, if it needs a permission. */
export function useGuardedScreen(): GuardedScreen | undefined {
  return useMatches({ select: (matches) => matches.at(-1)?.staticData.guarded });
}

/** Returns a function that reports whether the caller has the permission of a screen. */
export function useMayOpen(): (screen: GuardedScreen) => boolean {
  const { permissions, platform_admin: isPlatformAdmin } = useMe();
  return (screen) => {
    const { permission, isPlatform }: Need = NEEDS[screen];
    return (isPlatformAdmin || !isPlatform) && permissions.some((pattern) => covers(pattern, permission));
  };
}
