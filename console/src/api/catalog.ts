/** The permissions that the routes of this server and its API need, as the server lists them. */

import { useQuery } from '@tanstack/react-query';
import type { Permission } from '../../../client/index.ts';
import { permissions as text } from '../text/en/permissions.ts';
import { client } from './client.ts';

const PAGE = 200;
/**
 * A server with more routes of its own than this is shown without the last permissions; they are still written as
 * patterns.
 */
const MAX_PAGES = 5;
const FRESH_MS = 300_000;

export interface Catalog {
  /** Those of the platform's routes, then those of the API. Empty until the server has answered. */
  readonly known: readonly string[];
  readonly isLoading: boolean;
  /** True: there are more than `known` holds, so what is counted by it is a lower bound. */
  readonly isPart: boolean;
  /** Present if the server did not list them. */
  readonly failure: { readonly error: unknown; readonly retry: () => void } | undefined;
  /** The permitted actions of a pattern, as a phrase that follows "may". */
  readonly meaning: (pattern: string) => string;
}

export function useCatalog(): Catalog {
  const query = useQuery({
    queryKey: ['permissions'],
    queryFn: ({ signal }) => listed(signal),
    staleTime: FRESH_MS,
  });
  const { data } = query;
  return {
    known: data?.known ?? [],
    isLoading: query.isPending,
    isPart: data?.isPart ?? false,
    failure:
      query.isError && data === undefined ? { error: query.error, retry: () => void query.refetch() } : undefined,
    meaning: (pattern) => meaningOf(pattern, data?.byName.get(pattern)),
  };
}

interface Listed {
  readonly known: readonly string[];
  readonly isPart: boolean;
  readonly byName: ReadonlyMap<string, Permission>;
}

async function listed(signal: AbortSignal): Promise<Listed> {
  const rows: Permission[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, next_cursor: next } = await client.request('GET', '/v1/iam/permissions', {
      query: { limit: PAGE, cursor },
      signal,
    });
    rows.push(...data);
    cursor = next ?? undefined;
    if (cursor === undefined) break;
  }
  const ofKind = (wanted: Permission['kind']): readonly string[] =>
    rows.filter(({ kind }) => kind === wanted).map(({ permission }) => permission);
  return {
    known: [...ofKind('platform'), ...ofKind('management')],
    isPart: cursor !== undefined,
    byName: new Map(rows.map((row) => [row.permission, row])),
  };
}

/** The words that the console has for it; otherwise the first of the routes that need it. */
function meaningOf(pattern: string, entry: Permission | undefined): string {
  const words = text.meaning(pattern);
  if (words !== undefined) return words;
  const route = entry?.routes[0];
  return entry === undefined || route === undefined
    ? pattern
    : text.needing(`${route.method} ${route.path}`, entry.route_count - 1);
}
