/** One resource with the ETag that an edit sends. */

import { useQuery } from '@tanstack/react-query';
import { ProblemError } from '../../../client/index.ts';
import { hasUnsaved } from './drafts.ts';
import type { Tagged } from './edit.ts';
import { type Tenant, useTenant } from './session.ts';

export type Read<T> = (tenant: Tenant, id: string, signal?: AbortSignal) => Promise<Tagged<T>>;

/** The part of an answer that a form keeps. */
export async function tagged<T>(answer: Promise<Tagged<T>>): Promise<Tagged<T>> {
  const { data, etag } = await answer;
  return { data, etag };
}

/**
 * Has no data once the resource is deleted elsewhere, unless a form has unsaved input: the save then shows the refusal.
 *
 * @param kind the second part of the query's key
 */
export function useOne<T>(kind: string, id: string, read: Read<T>) {
  const tenant = useTenant();
  const query = useQuery({ queryKey: [tenant.id, kind, id], queryFn: ({ signal }) => read(tenant, id, signal) });
  const { data, isError, isPending, error, refetch } = query;
  const isGone = error instanceof ProblemError && error.status === 404 && !hasUnsaved();
  return { data: isGone ? undefined : data, isError, isPending, error, refetch };
}
