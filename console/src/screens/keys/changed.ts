import type { QueryClient } from '@tanstack/react-query';

/** Everything that shows keys of the tenant is asked for again. */
export async function keysChanged(queries: QueryClient, tenant: string, id?: string): Promise<void> {
  const keys = [
    [tenant, 'keys'],
    [tenant, 'audit'],
    ...(id === undefined
      ? []
      : [
          [tenant, 'key', id],
          [tenant, 'name', id],
        ]),
  ];
  await Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
}
