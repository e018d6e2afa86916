/**
 * Exports a whole list as one stream, in batches, at the speed of the client. The export holds no database connection
 * between two batches.
 *
 * The caller may lose its permissions during an export, so the server admits the caller again before each batch. If an
 * export stops early, its last line has the reason and a cursor for the rest. Then the server breaks the stream off, so
 * that a client notices that it is incomplete.
 */

import { type ErrorCode, Refusal } from '../../domain/errors.ts';
import type { PageRows } from '../../store/paging.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { csvLine } from './csv.ts';
import type { Cursors } from './list.ts';

/** Longest duration of one export, in milliseconds. */
export const MAX_EXPORT_MS = 10 * 60_000;
/** The largest number of bytes of the rows of one batch, as stored. A batch of one row may exceed it. */
export const MAX_BATCH_BYTES = 256 * 1024;

export interface ExportCaller {
  readonly caller: Caller;
  /** Admits the caller again, with the same credential. Rejects with the Refusal of the step that rejects it. */
  readonly again: () => Promise<Caller>;
}

interface ExportFormat<Row> {
  /** The first line; empty for none. */
  readonly header: string;
  readonly line: (row: Row) => string;
  /** The last line of an export that stopped early. */
  readonly stopped: (stop: ExportStop) => string;
}

interface ExportBatch<Row> {
  readonly rows: readonly Row[];
  /** The position of the next batch, which may be empty; undefined: this is the last batch. */
  readonly next: readonly string[] | undefined;
}

/** Returns a batch of a list whose positions are rows. */
export function batchOf<Row>(
  { rows, more, end }: PageRows<Row>,
  position: (row: Row) => readonly string[],
): ExportBatch<Row> {
  const last = end ?? rows.at(-1);
  return { rows, next: more && last !== undefined ? position(last) : undefined };
}

interface ExportedList<Row> {
  /** Fetches the batch after a position; undefined = the first. */
  readonly fetch: (caller: Caller, after: readonly string[] | undefined) => Promise<ExportBatch<Row>>;
  readonly format: ExportFormat<Row>;
}

interface ExportStop {
  /** The code with which a request for the rest would be rejected now; or `time_limit`. */
  readonly reason: ErrorCode | 'time_limit';
  readonly detail: string;
  /** Names the rest of the export. */
  readonly cursor: string;
}

/** The error after the last line of an export that stopped early, with its cause. */
export class ExportStopped extends Error {
  override readonly name = 'ExportStopped';
  readonly reason: ExportStop['reason'];

  constructor({ reason, detail }: ExportStop, cause: unknown) {
    super(`an export stopped early: ${detail}`, { cause });
    this.reason = reason;
  }
}

/**
 * Resolves after the first batch, so that most errors occur before the response begins.
 * @throws Refusal of the list's `fetch`
 */
export async function startExport<Row>(
  parts: Pick<AdminParts, 'feed' | 'now'>,
  from: ExportCaller,
  cursors: Cursors,
  list: ExportedList<Row>,
): Promise<AsyncIterable<string>> {
  return pieces(parts, from, cursors, list, await list.fetch(from.caller, cursors.after));
}

async function* pieces<Row>(
  parts: Pick<AdminParts, 'feed' | 'now'>,
  { caller, again }: ExportCaller,
  cursors: Cursors,
  { fetch, format }: ExportedList<Row>,
  first: ExportBatch<Row>,
): AsyncGenerator<string> {
  const endsMs = caller.nowMs + MAX_EXPORT_MS;
  if (format.header !== '') yield format.header;
  for (let batch = first; ; ) {
    if (batch.rows.length > 0) yield batch.rows.map(format.line).join('');
    const after = batch.next;
    if (after === undefined) return;
    try {
      if (parts.now() >= endsMs) throw new TimeLimit();
      batch = await fetch(await admittedAgain(parts, caller, again), after);
    } catch (cause) {
      const stop = stopOf(cause, cursors.next(after));
      yield format.stopped(stop);
      throw new ExportStopped(stop, cause);
    }
  }
}

/** Admits the caller with everything that was committed before the call. */
async function admittedAgain(
  parts: Pick<AdminParts, 'feed'>,
  caller: Caller,
  again: () => Promise<Caller>,
): Promise<Caller> {
  await parts.feed.catchUp();
  const now = await again();
  if (now.tenant !== caller.tenant || now.everyTenant !== caller.everyTenant) {
    throw new Refusal('tenant_mismatch', 'The credential now belongs to another tenant.');
  }
  return now;
}

class TimeLimit extends Error {}

function stopOf(cause: unknown, cursor: string): ExportStop {
  if (cause instanceof TimeLimit) {
    return {
      reason: 'time_limit',
      detail: `The export exceeded its limit of ${MAX_EXPORT_MS / 60_000} minutes. Continue from next_cursor.`,
      cursor,
    };
  }
  if (cause instanceof Refusal) return { reason: cause.code, detail: cause.message, cursor };
  return {
    reason: 'unavailable',
    detail: 'The server cannot read the remaining rows at the moment. Continue from next_cursor later.',
    cursor,
  };
}

/** The last line of an NDJSON export that stopped early. A row has no member `object`. */
function stoppedNdjson({ reason, detail, cursor }: ExportStop): string {
  return `${JSON.stringify({ object: 'export_stopped', reason, detail, next_cursor: cursor })}\n`;
}

/** The last line of a CSV export that stopped early. None of its cells needs quotes or is a formula. */
export function stoppedCsv({ reason, cursor }: ExportStop): string {
  return `export_stopped,${reason},${cursor}\r\n`;
}

/** The columns of a CSV export by their titles; null is an empty cell. */
export type CsvColumns<Row> = Readonly<Record<string, (row: Row) => string | null>>;

/**
 * Returns the formats of a list: NDJSON of its resources, and CSV of columns.
 * @param resource the value of one line of NDJSON
 */
export function exportFormats<Row>(columns: CsvColumns<Row>, resource: (row: Row) => unknown) {
  return {
    ndjson: { header: '', line: (row: Row) => `${JSON.stringify(resource(row))}\n`, stopped: stoppedNdjson },
    csv: {
      header: csvLine(Object.keys(columns)),
      line: (row: Row) => csvLine(Object.values(columns).map((read) => read(row))),
      stopped: stoppedCsv,
    },
  } as const satisfies Readonly<Record<string, ExportFormat<Row>>>;
}
