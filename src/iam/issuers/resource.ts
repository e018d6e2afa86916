/** The resource of an issuer, with the state of its keys. */

import { resourceOf } from '../schema/entity.ts';
import { type IssuerKeysState, type IssuerResource, issuer } from './entity.ts';
import type { IssuerSettings } from './parts.ts';
import type { StoredIssuer } from './queries.ts';

export function issuerResource(
  row: StoredIssuer,
  { maxStalenessMs }: Pick<IssuerSettings, 'maxStalenessMs'>,
  nowMs: number,
): IssuerResource {
  return resourceOf(issuer, row, { keys: keysState(row, maxStalenessMs, nowMs) });
}

function keysState(row: StoredIssuer, maxStalenessMs: number, nowMs: number): IssuerKeysState {
  const { jwks, jwks_set_at, key_count: count, kids } = row;
  if (jwks !== null) return { count, kids, pasted: true, fetched_at: jwks_set_at, error: null, stale: false };
  const { fetched_at, fetch_error: error } = row;
  const stale = fetched_at !== null && nowMs - fetched_at.getTime() > maxStalenessMs;
  return { count, kids, pasted: false, fetched_at, error, stale };
}
