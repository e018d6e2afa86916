/**
 * Reads a setup file: YAML of bounded size into a valid setup, or into a list of errors with their lines. The file may
 * consist of several documents. They are read one after the other, because reading takes many times the memory of the
 * text.
 */

import { open } from 'node:fs/promises';
import { type Document, isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { type ConfigError, joinPath, type Position } from '../config/config-error.ts';
import { fileError, filePosition, readFailure, resolved, syntaxError, YAML_OPTIONS } from '../config/yaml.ts';
import { pointerSteps } from '../domain/json.ts';
import { unstorable } from '../http/storable.ts';
import type { SetupDocument } from '../iam/setup/document.ts';
import { readSetups, type Setup, type SetupError } from '../iam/setup/read.ts';
import { meaningErrors } from './apply-meaning.ts';
import { checkForm } from './apply-schema.ts';
import { UsageError } from './arguments.ts';

export type SetupFile =
  | {
      readonly kind: 'setup';
      readonly setup: Setup;
      /** Adds positions to errors that only the database shows. */
      readonly locate: (errors: readonly SetupError[]) => readonly ConfigError[];
    }
  | { readonly kind: 'invalid'; readonly errors: readonly ConfigError[] };

/** Bytes of all documents: room for about four hundred thousand users. */
export const MAX_FILE_BYTES = 64 * 1_048_576;
/** Bytes of one document: about fifty thousand users, which take a gigabyte of memory to read. */
const MAX_DOCUMENT_BYTES = 8 * 1_048_576;
/** In a document up to this size, the reader looks for all errors; in a larger one, it stops at the first. */
const SHORT_BYTES = 1_048_576;
const MAX_ALIASES = 1000;
const MAX_BROKEN = 3;
const NESTED = 'nested too deeply';

export const STDIN = '-';

/** @param file `-` = standard input */
export async function readSetupFile(file: string): Promise<SetupFile> {
  const name = file === STDIN ? '<stdin>' : file;
  const fail = (message: string): SetupFile => ({ kind: 'invalid', errors: [fileError(name, message)] });
  let bytes: Buffer | undefined;
  try {
    bytes = await readBounded(file);
  } catch (error) {
    return fail(readFailure(error));
  }
  return bytes === undefined
    ? fail(`expected a file of at most ${MAX_FILE_BYTES / 1_048_576} MiB`)
    : readSetupText(name, bytes);
}

/** @param name the file's name in error messages */
export function readSetupText(name: string, bytes: Uint8Array): SetupFile {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { kind: 'invalid', errors: [fileError(name, 'expected UTF-8 text')] };
  }
  const parts = partsOf(name, text);
  const documents: SetupDocument[] = [];
  for (const [i, part] of parts.entries()) {
    const read = readPart(part, i);
    if (read.kind === 'invalid') return read;
    documents.push(read.document);
  }
  const locate = (errors: readonly SetupError[]): readonly ConfigError[] => locateIn(parts, errors);
  const read = readSetups(documents);
  if (read.kind === 'errors') return { kind: 'invalid', errors: locate(read.errors) };
  return { kind: 'setup', setup: read.setup, locate };
}

interface Part {
  readonly file: string;
  readonly text: string;
  /** Lines of the file before it. */
  readonly line: number;
}

/** Begins a document, also inside a scalar of several lines (YAML 1.2, section 9.1.2). */
const MARKER = /^---[ \t]*\r?$/gm;
/** A line that is more than a marker, a directive or a comment. */
const CONTENT = /^(?!---[ \t]*\r?$|%)[ \t]*[^\s#]/m;

function partsOf(file: string, text: string): readonly Part[] {
  const parts: Part[] = [];
  let [from, looked, line, hasContent] = [0, 0, 0, false];
  for (const { index } of text.matchAll(MARKER)) {
    hasContent ||= CONTENT.test(text.slice(looked, index));
    looked = index;
    if (!hasContent) continue;
    const part = text.slice(from, index);
    parts.push({ file, text: part, line });
    line += part.split('\n').length - 1;
    [from, hasContent] = [index, false];
  }
  return [...parts, { file, text: text.slice(from), line }];
}

/**
 * @param errors whose paths begin with the number of the document. Each document is read again, so that one at a time
 *   is in memory.
 */
function locateIn(parts: readonly Part[], errors: readonly SetupError[]): readonly ConfigError[] {
  return parts.flatMap((part, i) => {
    const own = errors.filter(({ path }) => pointerSteps(path)[0] === String(i));
    if (own.length === 0) return [];
    const parsed = parse(part);
    if (parsed === undefined) return [];
    return own.map((error) => {
      const also = error.also === undefined ? undefined : pointerSteps(error.also);
      const other = also === undefined || also[0] === String(i) ? parsed : parsedAt(parts, Number(also[0]));
      return locatedError(
        part.file,
        parsed,
        error,
        also === undefined ? undefined : other?.position(also.slice(1)).line,
      );
    });
  });
}

function locatedError(
  file: string,
  parsed: Parsed,
  { path, message }: SetupError,
  also: number | undefined,
): ConfigError {
  const steps = pointerSteps(path).slice(1);
  return {
    where: { kind: 'file', file, at: parsed.position(steps) },
    path: pathOf(steps),
    message: also === undefined ? message : `${message} Also in line ${also}.`,
  };
}

function parsedAt(parts: readonly Part[], i: number): Parsed | undefined {
  const part = parts[i];
  return part && parse(part);
}

/** Reads the text of a file that a command names. @throws UsageError if it cannot be read, or has more than 64 MiB */
export async function readInput(file: string): Promise<string> {
  const bytes = await readBounded(file).catch((error: unknown) => {
    throw new UsageError(`${file}: ${readFailure(error)}.`);
  });
  if (bytes === undefined) throw new UsageError(`${file} has more than ${MAX_FILE_BYTES / 1_048_576} MiB.`);
  return bytes.toString();
}

/** Reads a file, or standard input for `-`. Returns undefined for more than 64 MiB. */
async function readBounded(file: string): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  const handle = file === STDIN ? undefined : await open(file);
  for await (const chunk of handle?.createReadStream() ?? process.stdin) {
    const bytes: Buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    size += bytes.length;
    if (size > MAX_FILE_BYTES) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

interface Parsed {
  readonly doc: Document;
  readonly position: (steps: readonly string[]) => Position;
  readonly positionAt: (offset: number) => Position;
}

/** Returns undefined if the document is nested too deeply. */
function parse({ text, line }: Part): Parsed | undefined {
  const lines = new LineCounter();
  try {
    const doc = parseDocument(text, { ...YAML_OPTIONS, lineCounter: lines, stringKeys: true });
    const positionAt = (offset: number): Position => {
      const inPart = filePosition(lines, offset);
      return { line: line + inPart.line, column: inPart.column };
    };
    return { doc, positionAt, position: (steps) => positionAt(offsetOf(doc, steps) ?? 0) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return undefined;
  }
}

type PartRead =
  | { readonly kind: 'document'; readonly document: SetupDocument }
  | { readonly kind: 'invalid'; readonly errors: readonly ConfigError[] };

/** @param i the number of the document */
function readPart(part: Part, i: number): PartRead {
  const { file, text } = part;
  const fail = (...errors: readonly ConfigError[]): PartRead => ({ kind: 'invalid', errors });
  const size = Buffer.byteLength(text);
  if (size > MAX_DOCUMENT_BYTES) {
    const message = `expected a document of at most ${MAX_DOCUMENT_BYTES / 1_048_576} MiB; a line --- begins another document`;
    return fail(fileError(file, message, { line: part.line + 1, column: 1 }));
  }
  const parsed = parse(part);
  if (parsed === undefined) return fail(fileError(file, NESTED));
  const { doc, positionAt } = parsed;
  const broken = [...doc.errors, ...doc.warnings].map((error) => syntaxError(file, error, positionAt));
  // One syntax error causes others after it.
  if (broken.length > 0) return fail(...broken.slice(0, MAX_BROKEN));
  const value = plain(doc);
  if (value === undefined) {
    return fail(fileError(file, 'an alias has no anchor, or there are too many aliases'));
  }
  const locate = (errors: readonly SetupError[]): readonly ConfigError[] =>
    errors.map((error) => {
      const also = error.also === undefined ? undefined : parsed.position(pointerSteps(error.also)).line;
      return locatedError(file, parsed, { ...error, path: `/${i}${error.path}` }, also);
    });
  try {
    return readValue(value.value, size <= SHORT_BYTES, locate);
  } catch (error) {
    // A value with an alias of itself has no end.
    if (!(error instanceof RangeError)) throw error;
    return fail(fileError(file, NESTED));
  }
}

function readValue(
  value: unknown,
  short: boolean,
  locate: (errors: readonly SetupError[]) => readonly ConfigError[],
): PartRead {
  if (value === null)
    return { kind: 'invalid', errors: locate([{ path: '', message: 'expected a map, with version: 1' }]) };
  const bad = unstorable(value).map((path) => ({
    path,
    message: 'Text must not contain NUL characters or lone surrogates.',
  }));
  const checked = checkForm(value, short);
  if (checked.kind === 'invalid' || bad.length > 0) {
    const paths = new Set(bad.map(({ path }) => path));
    const form = [...bad, ...(checked.kind === 'invalid' ? checked.errors.filter(({ path }) => !paths.has(path)) : [])];
    return { kind: 'invalid', errors: inOrder(locate(short ? [...form, ...meaningErrors(value, form)] : form)) };
  }
  return { kind: 'document', document: checked.value };
}

/** Sorts errors by their position in the file. */
function inOrder(errors: readonly ConfigError[]): readonly ConfigError[] {
  const rank = ({ where }: ConfigError): number =>
    where?.kind === 'file' && where.at !== undefined ? where.at.line * MAX_FILE_BYTES + where.at.column : 0;
  return errors.toSorted((a, b) => rank(a) - rank(b));
}

/** Returns undefined if an alias has no anchor, or if there are more than `MAX_ALIASES`. */
function plain(doc: Document): { readonly value: unknown } | undefined {
  try {
    return { value: doc.toJS({ maxAliasCount: MAX_ALIASES }) };
  } catch {
    return undefined;
  }
}

/** Errors do not repeat any other name, because it may be a misplaced secret. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/;

/** For example `tenants[0].roles[2].name`. */
function pathOf(steps: readonly string[]): string {
  const [first, ...rest] = steps.map((step) =>
    /^\d+$/.test(step) ? Number(step) : NAME.test(step) ? step : '(not a name)',
  );
  return first === undefined ? '' : joinPath(String(first), rest);
}

/** Returns the offset of the value at the path, or of the nearest value above it. */
function offsetOf(doc: Document, steps: readonly string[]): number | undefined {
  let node: unknown = doc.contents;
  let offset = rangeOf(node);
  for (const step of steps) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
      if (pair === undefined) break;
      offset = rangeOf(pair.key) ?? offset;
      node = resolved(doc, pair.value);
    } else if (isSeq(node)) {
      node = resolved(doc, node.items[Number(step)]);
      offset = rangeOf(node) ?? offset;
    } else break;
  }
  return offset;
}

function rangeOf(node: unknown): number | undefined {
  return isScalar(node) || isCollection(node) ? node.range?.[0] : undefined;
}
