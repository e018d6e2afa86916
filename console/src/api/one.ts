/** One resource with the ETag that an edit sends. */

import { useQuery } from '@tanstack/react-query';
import type { Tagged } from './edit.ts';
import { type Tenant, useTenant } from './session.ts';

export type Read<T> = (tenant: Tenant, id: string, signal?: AbortSignal) => Promise<Tagged<T>>;

/** The part of an answer that a form keeps. */
export async function tagged<T>(answer: Promise<Tagged<T>>): Promise<Tagged<T>> {
  const { data, etag } = await answer;
  return { data, etag };
}

/** @param kind the second part of the query's key */
export function useOne<T>(kind: string, id: string, read: Read<T>) {
  const tenant = useTenant();
  return useQuery({ queryKey: [tenant.id, kind, id], queryFn: ({ signal }) => read(tenant, id, signal) });
}
