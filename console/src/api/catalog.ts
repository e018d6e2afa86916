/** The permissions that the routes of this server and its API need. */

import { useQuery } from '@tanstack/react-query';
import type { Permission } from '../../../client/index.ts';
import { permissions as text } from '../text/en/permissions.ts';
import { client } from './client.ts';

/** One page. Whoever has more kinds of permissions writes the others as patterns. */
const SHOWN = 200;
const FRESH_MS = 300_000;

export interface Catalog {
  /** Those that this product has by itself come first, then those of the operator's own routes. */
  readonly known: readonly string[];
  /** What a pattern permits, to follow "may". */
  readonly meaning: (pattern: string) => string;
}

/** Until the server has answered, the permissions that every server has. */
export function useCatalog(): Catalog {
  const { data = [] } = useQuery({
    queryKey: ['permissions'],
    queryFn: async ({ signal }) => (await client.request('GET', '/v1/iam/permissions', { query: { limit: SHOWN }, signal })).data,
    staleTime: FRESH_MS,
  });
  return catalogOf(data);
}

function catalogOf(listed: readonly Permission[]): Catalog {
  if (listed.length === 0) return { known: text.builtIn, meaning: text.meaning };
  const names = new Set(listed.map(({ permission }) => permission));
  const own = listed.filter(({ permission }) => !text.builtIn.includes(permission));
  const routes = new Map(own.map((entry) => [entry.permission, entry]));
  return {
    known: [...text.builtIn.filter((permission) => names.has(permission)), ...routes.keys()],
    meaning: (pattern) => {
      const entry = routes.get(pattern);
      const [first] = entry?.routes ?? [];
      if (entry === undefined || first === undefined) return text.meaning(pattern);
      return text.ownRoute(`${first.method} ${first.path}`, entry.route_count - 1);
    },
  };
}
