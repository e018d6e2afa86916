/**
 * JSON that a server of a tenant's choice answers. Its structure is bounded before it is parsed, like that of a
 * request's body: 512 KiB can hold 170,000 empty lists, which block the process for 0.1 s and take 7 MB.
 */

import { BODY_BOUNDS, structureOf } from '../../http/body-structure.ts';

/** Discovery documents have about as many members as an object of a request may have. */
const BOUNDS = { ...BODY_BOUNDS, maxMembers: 512 };

type FetchedJson =
  | { readonly kind: 'ok'; readonly value: unknown }
  /** `reason` is one sentence for an administrator of the tenant. `refused`: the text was not parsed. */
  | { readonly kind: 'refused' | 'malformed'; readonly reason: string };

export function parseFetched(body: Buffer): FetchedJson {
  const text = body.toString('utf8');
  const structure = structureOf(text, BOUNDS);
  if (structure.kind !== 'within') return { kind: 'refused', reason: structure.message };
  try {
    return { kind: 'ok', value: JSON.parse(text) };
  } catch {
    return { kind: 'malformed', reason: 'The response is not JSON.' };
  }
}
