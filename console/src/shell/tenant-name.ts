import { useQuery } from '@tanstack/react-query';
import { client } from '../api/client.ts';
import { covers, useMe, useTenant } from '../api/session.ts';

/** The tenant that the caller acts in. A caller that may not read it is not asked for. */
export function useTenantRead() {
  const { id } = useTenant();
  const { permissions } = useMe();
  return useQuery({
    queryKey: [id, 'tenant'],
    queryFn: ({ signal }) => client.tenants.get(id, { signal }),
    enabled: permissions.some((pattern) => covers(pattern, 'admin:users') || covers(pattern, 'admin:tenants')),
    retry: false,
  });
}

/** Its name; its id while that is not known. */
export function useTenantName(): string {
  const { id } = useTenant();
  return useTenantRead().data?.name ?? id;
}
