/** Reads a set-up file: YAML of bounded size into a document whose form and meaning are right, or every problem with its line. */

import { open } from 'node:fs/promises';
import { type Document, isAlias, isCollection, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { readSetup, type SetupError } from '../admin/setup/read.ts';
import type { Setup } from '../admin/setup/setup.ts';
import { positionIn } from '../config/file.ts';
import { joinPath, type Position, type Problem } from '../config/problems.ts';
import { unstorable } from '../http/storable.ts';
import { meaningErrors } from './apply-meaning.ts';
import { checkForm } from './apply-schema.ts';

export type SetupFile =
  | {
      readonly kind: 'setup';
      readonly setup: Setup;
      /** For errors that only the database shows. */
      readonly problemsOf: (errors: readonly SetupError[]) => readonly Problem[];
    }
  | { readonly kind: 'problems'; readonly problems: readonly Problem[] };

/** Room for about fifty thousand users, which take a gigabyte of memory to read. */
const MAX_BYTES = 8 * 1_048_576;
/** Up to here all errors are looked for rather than the first. */
const SHORT_BYTES = 1_048_576;
const MAX_ALIASES = 1000;
const MAX_BROKEN = 3;

/** The name that stands for standard input. */
export const STDIN = '-';

/** @param file `-` = standard input */
export async function readSetupFile(file: string): Promise<SetupFile> {
  const name = file === STDIN ? '<stdin>' : file;
  const fail = (message: string): SetupFile => ({
    kind: 'problems',
    problems: [{ where: { kind: 'file', file: name, at: undefined }, path: '', message }],
  });
  let bytes: Buffer | undefined;
  try {
    bytes = await readBounded(file);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return fail(code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${code})`);
  }
  return bytes === undefined ? fail(`expected a file of at most ${MAX_BYTES / 1_048_576} MiB`) : readSetupText(name, bytes);
}

/** @param name of the file, as problems show it */
export function readSetupText(name: string, bytes: Uint8Array): SetupFile {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return {
      kind: 'problems',
      problems: [{ where: { kind: 'file', file: name, at: undefined }, path: '', message: 'expected UTF-8 text' }],
    };
  }
  return readYaml(name, text, bytes.length <= SHORT_BYTES);
}

/** Undefined when there is more than fits. */
async function readBounded(file: string): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  const handle = file === STDIN ? undefined : await open(file);
  for await (const chunk of handle?.createReadStream() ?? process.stdin) {
    const bytes: Buffer = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    size += bytes.length;
    if (size > MAX_BYTES) return undefined;
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function readYaml(file: string, text: string, short: boolean): SetupFile {
  const lines = new LineCounter();
  const at = (position: Position | undefined) => ({ kind: 'file', file, at: position }) as const;
  let doc: Document;
  try {
    doc = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true });
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: 'problems', problems: [{ where: at(undefined), path: '', message: 'nested too deeply' }] };
  }
  const positionAt = (offset: number | undefined): Position => positionIn(lines, offset ?? 0);
  // The parser's own messages quote the file, and what they quote may be a secret.
  const broken = [...doc.errors, ...doc.warnings].map(
    ({ code, pos }): Problem => ({
      where: at(positionAt(pos[0])),
      path: '',
      message: code === 'DUPLICATE_KEY' ? 'this key appears twice in the same map' : `not valid YAML here (${code})`,
    }),
  );
  // What is broken once is taken for more of it further on.
  if (broken.length > 0) return { kind: 'problems', problems: broken.slice(0, MAX_BROKEN) };
  const problemsOf = (errors: readonly SetupError[]): readonly Problem[] =>
    errors.map(({ path, message, also }) => ({
      where: at(positionAt(offsetOf(doc, stepsOf(path)))),
      path: pathOf(stepsOf(path)),
      message: also === undefined ? message : `${message} Also in line ${positionAt(offsetOf(doc, stepsOf(also))).line}.`,
    }));
  const value = plain(doc);
  if (value === undefined) {
    return {
      kind: 'problems',
      problems: [{ where: at(undefined), path: '', message: 'an alias has no anchor, or there are too many aliases' }],
    };
  }
  return readValue(value.value, short, problemsOf);
}

function readValue(value: unknown, short: boolean, problemsOf: (errors: readonly SetupError[]) => readonly Problem[]): SetupFile {
  if (value === null)
    return { kind: 'problems', problems: problemsOf([{ path: '', message: 'expected a map, with version: 1' }]) };
  const bad = unstorable(value).map((path) => ({ path, message: 'Text must not contain NUL characters or lone surrogates.' }));
  const checked = checkForm(value, short);
  if (checked.kind === 'invalid' || bad.length > 0) {
    const paths = new Set(bad.map(({ path }) => path));
    const form = [...bad, ...(checked.kind === 'invalid' ? checked.errors.filter(({ path }) => !paths.has(path)) : [])];
    return { kind: 'problems', problems: inOrder(problemsOf(short ? [...form, ...meaningErrors(value, form)] : form)) };
  }
  const read = readSetup(checked.value);
  if (read.kind === 'errors') return { kind: 'problems', problems: problemsOf(read.errors) };
  return { kind: 'setup', setup: read.setup, problemsOf };
}

/** Sorts problems by their position in the file. */
function inOrder(problems: readonly Problem[]): readonly Problem[] {
  const rank = ({ where }: Problem): number =>
    where?.kind === 'file' && where.at !== undefined ? where.at.line * MAX_BYTES + where.at.column : 0;
  return problems.toSorted((a, b) => rank(a) - rank(b));
}

/** Undefined when aliases lead nowhere, or would grow it beyond measure. */
function plain(doc: Document): { readonly value: unknown } | undefined {
  try {
    return { value: doc.toJS({ maxAliasCount: MAX_ALIASES }) };
  } catch {
    return undefined;
  }
}

/** RFC 6901. */
function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** What looks otherwise is not repeated: it may be a secret that lost its place. */
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,39}$/;

/** As `tenants[0].roles[2].name`. */
function pathOf(steps: readonly string[]): string {
  const [first, ...rest] = steps.map((step) => (/^\d+$/.test(step) ? Number(step) : NAME.test(step) ? step : '(not a name)'));
  return first === undefined ? '' : joinPath(String(first), rest);
}

/** Where in the text the steps lead to, or the nearest thing above it. */
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

function resolved(doc: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(doc) : node;
}

function rangeOf(node: unknown): number | undefined {
  return isScalar(node) || isCollection(node) ? node.range?.[0] : undefined;
}
