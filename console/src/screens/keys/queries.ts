/** Pages of keys, and one key with the ETag that an edit sends. */

import { type ApiKey, ProblemError } from '../../../../client/index.ts';
import { type List, type ListQuery, useList } from '../../api/list.ts';
import { type Read, tagged, useOne } from '../../api/one.ts';
import { useDenied, useTenant } from '../../api/session.ts';

const KEYS = '/v1/iam/api-keys';
const KEY = '/v1/iam/api-keys/{id}';
const PAGE = 50;

/** Lists keys, with their owners for callers that may see users. */
export function useKeys(query: ListQuery<typeof KEYS>): List<ApiKey> {
  const { id, client } = useTenant();
  const seesOwners = useDenied('admin:users') === undefined;
  return useList<typeof KEYS>([id, 'keys', query], async (cursor, signal) => {
    const page = { ...query, limit: PAGE, cursor, ...(cursor === undefined ? { count: true } : {}) };
    try {
      return await client.request('GET', KEYS, { query: seesOwners ? { ...page, include: 'owner' } : page, signal });
    } catch (error) {
      // A policy may deny users what their roles give.
      if (!seesOwners || !(error instanceof ProblemError) || error.status !== 403) throw error;
      return client.request('GET', KEYS, { query: page, signal });
    }
  });
}

export const readKey: Read<ApiKey> = ({ client }, id, signal) =>
  tagged(client.send('GET', KEY, { path: { id }, signal }));

export function useKey(id: string) {
  return useOne('key', id, readKey);
}
