/** The prices of models, which are the same for all tenants. */

import { queryOptions, useQuery } from '@tanstack/react-query';
import type { Price, Prices } from '../../../client/index.ts';
import { invalidate } from './changed.ts';
import { client } from './client.ts';
import type { Tagged } from './edit.ts';
import { tagged } from './one.ts';
import { useDenied } from './session.ts';

const PRICES = '/v1/iam/prices';
const FRESH_MS = 60_000;
/** The amounts of every price are for this number of tokens. */
export const PER = 1_000_000;

export function readPrices(signal?: AbortSignal): Promise<Tagged<Prices>> {
  return tagged(client.send('GET', PRICES, { signal }));
}

const query = queryOptions({
  queryKey: ['prices'],
  queryFn: ({ signal }) => readPrices(signal),
  staleTime: FRESH_MS,
});

export function usePrices() {
  return useQuery(query);
}

/** Replaces the list, unless it is another than the one with this ETag. */
export function writePrices(prices: readonly Price[], ifMatch: string | undefined): Promise<Tagged<Prices>> {
  return tagged(client.send('PUT', PRICES, { body: { prices }, ifMatch }));
}

/** Returns the currency of all amounts; undefined: not known yet, or not for this caller to know. */
export function useCurrency(): string | undefined {
  const denied = useDenied('usage:read');
  return useQuery({ ...query, enabled: denied === undefined }).data?.data.currency;
}

/** Invalidates every query that shows prices. */
export function pricesChanged(): Promise<void> {
  return invalidate([['prices'], ['proposal']]);
}
