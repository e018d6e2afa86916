/**
 * `postern audit follow`: audit rows as lines of JSON on standard output, each at least once. The cursor file moves
 * only after standard output has taken the lines before it.
 */

import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Fault, reasonOf, systemCode } from '../domain/errors.ts';
import {
  FIRST_CURSOR,
  type FollowedRow,
  followAudit,
  formatCursor,
  newestCursor,
  parseCursor,
} from '../iam/audit/follow.ts';
import type { AuditCursor } from '../iam/audit/queries.ts';
import type { Queryable } from '../store/queryable.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { stopSignal } from './signals.ts';
import { withStore } from './with-store.ts';

/** The interval between reads if there are no new rows. The server seals rows once a second. */
const POLL_MS = 1_000;
const MAX_BACKOFF_MS = 10_000;

interface Options {
  /** Undefined = the reader of the output keeps the cursor. */
  readonly file: string | undefined;
  /** The first row, if the file does not exist. */
  readonly from: 'start' | 'now' | AuditCursor;
}

/** Runs until SIGTERM or SIGINT, and exits 0. */
export async function auditFollowCommand(args: Arguments): Promise<number> {
  const options = optionsOf(args);
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort());
  const kept = options.file === undefined ? undefined : await readCursorFile(options.file);
  return withStore(args, async ({ db }) => {
    const first = kept ?? (await firstCursor(db.knex, options.from));
    // Written before the first row, so that `--from now` refers to the first start, and a file that cannot be written
    // fails early.
    if (options.file !== undefined) await writeCursorFile(options.file, first);
    await follow(db.knex, first, options.file, stopping.signal);
    return 0;
  });
}

function optionsOf(args: Arguments): Options {
  const [file, from, after] = [args.value('cursor'), args.value('from'), args.value('after')];
  if (from !== undefined && from !== 'start' && from !== 'now')
    throw new UsageError(`--from takes start or now, not ${from}.`);
  if (file === '' || (file === undefined) === (after === undefined)) {
    throw new UsageError(
      'Give --cursor FILE, or --after CURSOR if the reader keeps the cursor of the last line itself.',
    );
  }
  if (after === undefined) return { file, from: from ?? 'start' };
  if (from !== undefined) throw new UsageError('--from goes with --cursor.');
  const cursor = parseCursor(after);
  if (cursor === undefined) throw new UsageError('--after takes the member cursor of a line.');
  return { file, from: cursor };
}

async function firstCursor(q: Queryable, from: Options['from']): Promise<AuditCursor> {
  if (from === 'start') return FIRST_CURSOR;
  return from === 'now' ? await newestCursor(q) : from;
}

async function follow(q: Queryable, first: AuditCursor, file: string | undefined, stop: AbortSignal): Promise<void> {
  let cursor = first;
  let backoffMs = 0;
  while (!stop.aborted) {
    const page = await followAudit(q, cursor).catch((error: unknown) => {
      if (error instanceof Fault) return error;
      throw error;
    });
    if (page instanceof Fault) {
      if (backoffMs === 0) report(`the database did not answer: ${page.message}. Trying again`);
      backoffMs = Math.min(MAX_BACKOFF_MS, Math.max(POLL_MS, 2 * backoffMs));
      await pause(backoffMs, stop);
      continue;
    }
    if (backoffMs > 0) report('the database answers again');
    backoffMs = 0;
    if (page.lost > 0) {
      report(
        `up to ${page.lost} seals with their rows were older than audit.retention and were removed before they could be delivered`,
      );
    }
    if (page.rows.length > 0 && !(await delivered(page.rows, stop))) return;
    if (file !== undefined && formatCursor(page.next) !== formatCursor(cursor)) await writeCursorFile(file, page.next);
    cursor = page.next;
    if (!page.more) await pause(POLL_MS, stop);
  }
}

/** Resolves when standard output has taken the lines; with false if the command stops. Rejects without a reader. */
async function delivered(rows: readonly FollowedRow[], stop: AbortSignal): Promise<boolean> {
  const text = rows.map(({ row, cursor }) => `${JSON.stringify({ ...row, cursor: formatCursor(cursor) })}\n`).join('');
  const written = new Promise<true>((resolve, reject) => {
    process.stdout.write(text, (error) => {
      if (error)
        reject(new Error(`The reader of standard output is gone: ${error.message}. Its cursor was not moved.`));
      else resolve(true);
    });
  });
  const stopped = new Promise<false>((resolve) => {
    if (stop.aborted) resolve(false);
    else stop.addEventListener('abort', () => resolve(false), { once: true });
  });
  // A reader that still takes lines gets another second, so that the cursor includes them.
  return Promise.race([written, stopped.then(() => Promise.race([written, sleep(POLL_MS, false as const)]))]);
}

async function pause(ms: number, stop: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: stop }).catch(() => undefined);
}

/** Messages for the operator go to standard error, because standard output belongs to the reader. */
function report(message: string): void {
  process.stderr.write(`${new Date().toISOString()} ${message}\n`);
}

/** Returns undefined if there is no file. Rejects if the file has no cursor. */
async function readCursorFile(path: string): Promise<AuditCursor | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  const cursor = parseCursor(text.trim());
  if (cursor === undefined) {
    throw new Error(`${path} holds no cursor of postern audit follow. Name another file, or remove it to begin again.`);
  }
  return cursor;
}

/** Resolves when the cursor is on the disk. It replaces the file, so a crash never leaves a part of it. */
async function writeCursorFile(path: string, cursor: AuditCursor): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  const file = await open(draft, 'w', 0o600).catch((error: unknown) => {
    throw new Error(`The cursor file ${path} cannot be written: ${reasonOf(error)}.`);
  });
  try {
    await file.writeFile(`${formatCursor(cursor)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  // The new name must survive a power failure as well. Not every file system can sync a directory.
  const directory = await open(dirname(path), 'r').catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
