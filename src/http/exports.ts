/** Lists that are also answered whole, as one stream of another media type. */

import type { HeaderValue } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { MAX_EXPORT_MS } from '../iam/list/export.ts';
import { preferredType } from './accept.ts';

export const PAGES = 'application/json';

/** How long a reader that does not read can keep the last batch of an export waiting, in milliseconds. */
const LAST_BATCH_MS = 60_000;
/** After this, an export is broken off, read or not. */
export const LONGEST_EXPORT_MS = MAX_EXPORT_MS + LAST_BATCH_MS;

/** Describes how an export ends that stops early. @param line its last line */
export function stopsEarly(line: string): string {
  return `If the export stops early, its last line is ${line}, and the answer breaks off; \`cursor\` goes on.`;
}

/**
 * The media type that a client would rather have: `PAGES` unless it names another.
 * @param exported beside `PAGES`
 */
export function wantedType(accept: HeaderValue, exported: readonly string[]): string {
  return preferredType(typeof accept === 'string' ? accept : '', [PAGES, ...exported]);
}

/**
 * An export takes a cursor, to go on with one that stopped early, and no limit: a client that wants ten rows must not get ten million.
 * @throws Refusal `invalid_parameter`
 */
export function refuseLimit({ limit }: { readonly limit?: number }): void {
  if (limit === undefined) return;
  throw new Refusal('invalid_parameter', `An export is not in pages: leave limit out, or ask for ${PAGES}.`, {
    param: 'limit',
  });
}
