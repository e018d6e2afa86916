/** The signed-in user, the tenant in which it acts, and its permissions. */

import { queryOptions, useSuspenseQuery } from '@tanstack/react-query';
import { useSearch } from '@tanstack/react-router';
import { createContext, useContext } from 'react';
import type { Client, Me } from '../../../client/index.ts';
import { session as text } from '../text/en/session.ts';
import { client } from './client.ts';

export const meQuery = queryOptions({
  queryKey: ['me'],
  queryFn: ({ signal }) => client.me({ signal }),
  staleTime: 60_000,
});

export function useMe(): Me {
  return useSuspenseQuery(meQuery).data;
}

export interface Tenant {
  /** Also the first part of every query's key. */
  readonly id: string;
  readonly client: Client;
}

const TenantContext = createContext<Tenant | undefined>(undefined);

export const TenantProvider = TenantContext.Provider;

/** The tenant that the address names; else the caller's own. */
export function useTenantOfAddress(): Tenant {
  const me = useMe();
  const { tenant } = useSearch({ strict: false });
  const id = me.platform_admin && tenant !== undefined ? tenant : me.tenant_id;
  return { id, client: id === me.tenant_id ? client : client.inTenant(id) };
}

export function useTenant(): Tenant {
  const tenant = useContext(TenantContext);
  if (tenant === undefined) throw new Error('There is a tenant inside the shell only.');
  return tenant;
}

/** The permission of the open screen, if no role gives it and the server permits the screen: a policy allows it. */
const AllowedContext = createContext<string | undefined>(undefined);

export const AllowedProvider = AllowedContext.Provider;

/**
 * Why the caller may not use a permission; undefined: nothing is known against it. Policies and constraints decide
 * besides: the server has the last word, and its refusal is shown in place.
 */
export function useDenied(permission: string): string | undefined {
  const { permissions } = useMe();
  const isAllowed = useContext(AllowedContext) === permission;
  return isAllowed || permissions.some((pattern) => covers(pattern, permission)) ? undefined : text.denied(permission);
}

/** As the server matches patterns: `*`, or `<resource>:<action>` where `*` replaces a whole part. */
export function covers(pattern: string, permission: string): boolean {
  if (pattern === '*' || pattern === permission) return true;
  const [resource, action] = pattern.split(':');
  const [wantedResource, wantedAction] = permission.split(':');
  return (resource === '*' || resource === wantedResource) && (action === '*' || action === wantedAction);
}
