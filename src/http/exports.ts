/** Lists that a client can also export as one stream of another media type. */

import { type TSchema, Type } from 'typebox';
import type { HeaderValue } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { MAX_EXPORT_MS } from '../iam/list/export.ts';
import { preferredType } from './accept.ts';
import type { Answers } from './answers.ts';
import type { Answer } from './endpoint.ts';

const PAGES = 'application/json';

const FORMATS = {
  ndjson: {
    type: 'application/x-ndjson',
    parameters: '; charset=utf-8',
    stopped: 'an object with `object` `export_stopped`, `reason`, `detail` and `next_cursor`',
  },
  csv: {
    type: 'text/csv',
    parameters: '; charset=utf-8; header=present',
    stopped: '`export_stopped`, the reason and the cursor',
  },
} as const;

type Format = keyof typeof FORMATS;

/** How long a client that does not read can delay the last batch of an export, in milliseconds. */
const LAST_BATCH_MS = 60_000;
/** The server breaks an export off after this time. */
const LONGEST_EXPORT_MS = MAX_EXPORT_MS + LAST_BATCH_MS;

interface ListAnswers<F extends Format> {
  readonly page: () => Promise<unknown>;
  /** `name` is that of the file, without its extension. */
  readonly whole: (format: F) => Promise<{ readonly name: string; readonly pieces: AsyncIterable<string> }>;
}

/** @param lines describes the lines of the export in each format that the list has */
export function exportableList<F extends Format>(
  description: string,
  page: TSchema,
  lines: Readonly<Record<F, string>>,
): {
  readonly answers: Answers;
  /** @throws Refusal `invalid_parameter`, and as the list */
  readonly answer: (accept: HeaderValue, query: { limit?: number }, list: ListAnswers<F>) => Promise<Answer>;
} {
  const formats = Object.keys(lines) as F[];
  const exported = formats.map((format) => [FORMATS[format].type, linesOf(format, lines[format])] as const);
  return {
    answers: { 200: { description, content: { [PAGES]: page, ...Object.fromEntries(exported) } } },
    answer: async (accept, query, list) => {
      const types = formats.map((format) => FORMATS[format].type);
      const wanted = preferredType(typeof accept === 'string' ? accept : '', [PAGES, ...types]);
      const format = formats.find((each) => FORMATS[each].type === wanted);
      const headers = { vary: 'accept' };
      if (format === undefined) return { status: 200, headers, body: await list.page() };
      refuseLimit(query);
      const { name, pieces } = await list.whole(format);
      return {
        status: 200,
        headers: { ...headers, 'content-disposition': `attachment; filename="${name}.${format}"` },
        stream: { type: `${wanted}${FORMATS[format].parameters}`, pieces, longestMs: LONGEST_EXPORT_MS },
      };
    },
  };
}

function linesOf(format: Format, lines: string): TSchema {
  const last = FORMATS[format].stopped;
  return Type.String({
    description: `${lines} If the export stops early, its last line is ${last}, and the answer breaks off; \`cursor\` goes on.`,
  });
}

/**
 * Rejects an export with a limit, because a client that wants ten rows must not get ten million. A cursor continues an
 * export that stopped early.
 */
function refuseLimit({ limit }: { readonly limit?: number }): void {
  if (limit === undefined) return;
  throw new Refusal('invalid_parameter', `An export is not in pages: leave limit out, or ask for ${PAGES}.`, {
    param: 'limit',
  });
}
