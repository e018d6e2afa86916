/** Lists that a client can also export as one stream of another media type. */

import type { HeaderValue } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { MAX_EXPORT_MS } from '../iam/list/export.ts';
import { preferredType } from './accept.ts';

export const PAGES = 'application/json';

/** How long a client that does not read can delay the last batch of an export, in milliseconds. */
const LAST_BATCH_MS = 60_000;
/** The server breaks an export off after this time. */
export const LONGEST_EXPORT_MS = MAX_EXPORT_MS + LAST_BATCH_MS;

/** Describes the end of an export that stops early. @param line its last line */
export function stopsEarly(line: string): string {
  return `If the export stops early, its last line is ${line}, and the answer breaks off; \`cursor\` goes on.`;
}

/**
 * Returns the media type that the client prefers: `PAGES` unless it names another.
 * @param exported the types in addition to `PAGES`
 */
export function wantedType(accept: HeaderValue, exported: readonly string[]): string {
  return preferredType(typeof accept === 'string' ? accept : '', [PAGES, ...exported]);
}

/**
 * Rejects an export with a limit, because a client that wants ten rows must not get ten million. A cursor continues an
 * export that stopped early.
 * @throws Refusal `invalid_parameter`
 */
export function refuseLimit({ limit }: { readonly limit?: number }): void {
  if (limit === undefined) return;
  throw new Refusal('invalid_parameter', `An export is not in pages: leave limit out, or ask for ${PAGES}.`, {
    param: 'limit',
  });
}
