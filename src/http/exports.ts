/** Lists that are also answered whole, as one stream of another media type. */

import type { HeaderValue } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { preferredType } from './accept.ts';

export const PAGES = 'application/json';

/**
 * The media type that a client would rather have: `PAGES` unless it names another.
 * @param exported beside `PAGES`
 */
export function wantedType(accept: HeaderValue, exported: readonly string[]): string {
  return preferredType(typeof accept === 'string' ? accept : '', [PAGES, ...exported]);
}

/** Whoever asks for ten rows and gets ten million has been misunderstood. */
export function refusePaging(query: { readonly limit?: number; readonly cursor?: string }): void {
  for (const param of ['limit', 'cursor'] as const) {
    if (query[param] === undefined) continue;
    throw new Refusal('invalid_parameter', `An export is not in pages: leave ${param} out, or ask for ${PAGES}.`, { param });
  }
}
