/** One user, with the ETag that an edit sends. */

import { useQuery } from '@tanstack/react-query';
import type { User } from '../../../../client/index.ts';
import { type Read, tagged, useOne } from '../../api/one.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';

const USER = '/v1/iam/users/{id}';

export const readUser: Read<User> = ({ client }, id, signal) =>
  tagged(client.send('GET', USER, { path: { id }, signal }));

export function useUser(id: string) {
  return useOne('user', id, readUser);
}

/** Of everything about the sessions of a user. */
export function sessionsOf(tenant: string, id: string) {
  return [tenant, 'sessions of', id] as const;
}

/** How many keys and active sessions a user has; undefined: not known, or not for this caller to know. */
export function useCounts(id: string): { readonly keys: string | undefined; readonly sessions: string | undefined } {
  const { id: tenant, client } = useTenant();
  const keys = useQuery({
    queryKey: [tenant, 'keys', 'count', id],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys', { query: { user_id: id, limit: 1, count: true }, signal }),
    retry: false,
  });
  const sessions = useQuery({
    queryKey: [...sessionsOf(tenant, id), 'count'],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/users/{id}/sessions', { path: { id }, query: { limit: 1, count: true }, signal }),
    retry: false,
  });
  return { keys: countOf(keys.data), sessions: countOf(sessions.data) };
}

function countOf(page: { readonly total?: number; readonly total_exceeds?: number } | undefined): string | undefined {
  const total = page?.total ?? page?.total_exceeds;
  return total === undefined ? undefined : common.total(total, page?.total === undefined);
}
