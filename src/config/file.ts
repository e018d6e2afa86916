/** Reads the YAML file into one entry per setting, each with its line. Knows which settings exist and nothing about their values. */

import { readFileSync, statSync } from 'node:fs';
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { ALL_KEYS } from './keys.ts';
import { didYouMean } from './nearest.ts';
import type { Raw } from './parsers.ts';
import type { Problem, Steps } from './problems.ts';
import { readSecret, SECRET_FILE_EXPECTED } from './secret-file.ts';

export interface FileEntry {
  readonly raw: Raw;
  /** The line of what the steps lead to, or of the nearest thing above it. */
  readonly lineOf: (steps: Steps) => number;
}

export interface FileContent {
  readonly entries: ReadonlyMap<string, FileEntry>;
  readonly problems: readonly Problem[];
}

const MAX_BYTES = 1_048_576;
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,23}(\.[A-Za-z][A-Za-z0-9_-]{0,23}){0,4}$/;
const PATHS: ReadonlySet<string> = new Set(ALL_KEYS.map((key) => key.path));
/** Where a secret's own setting is told to be read from a file: `ldap.bind-password-file`. */
const SECRET_FILES: ReadonlyMap<string, string> = new Map(
  ALL_KEYS.filter((key) => key.secret).map((key) => [`${key.path}-file`, key.path]),
);
/** Every beginning of a path: `grpc`, `grpc.tls`. */
const SECTIONS: ReadonlySet<string> = new Set(
  [...PATHS].flatMap((path) =>
    path.split('.').flatMap((_, index, parts) => (index === 0 ? [] : [parts.slice(0, index).join('.')])),
  ),
);

export function readConfigFile(file: string): FileContent {
  const fail = (message: string): FileContent => ({
    entries: new Map(),
    problems: [{ where: { kind: 'file', file, line: undefined }, path: '', message }],
  });
  try {
    const { size } = statSync(file);
    return size > MAX_BYTES
      ? fail(`expected a file of at most 1 MiB, got ${size} bytes`)
      : readYaml(file, readFileSync(file, 'utf8'));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return fail(code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${code})`);
  }
}

function readYaml(file: string, text: string): FileContent {
  const lines = new LineCounter();
  const doc = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset: number | undefined): number => lines.linePos(offset ?? 0).line;
  // The parser's own messages quote the file, and what they quote may be a secret.
  const problems: Problem[] = doc.errors.map((error) => ({
    where: { kind: 'file', file, line: lineAt(error.pos[0]) },
    path: '',
    message: error.code === 'DUPLICATE_KEY' ? 'this key appears twice in the same map' : `not valid YAML here (${error.code})`,
  }));
  if (doc.errors.some((error) => error.code !== 'DUPLICATE_KEY')) {
    return { entries: new Map(), problems };
  }
  const walk = new Walk(file, doc, lineAt);
  if (isMap(doc.contents)) {
    walk.map(doc.contents, '');
  } else if (!isEmpty(doc.contents)) {
    walk.report(doc.contents, '', 'expected a map of settings');
  }
  return { entries: walk.entries, problems: [...problems, ...walk.problems] };
}

/** A key as problems may quote it: what does not look like a setting's name may be a secret that lost its place. */
function nameOf(key: unknown): string {
  const name = isScalar(key) ? String(key.value) : '';
  return NAME.test(name) ? name : '(not a name)';
}

function isEmpty(node: unknown): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null);
}

/** Walks down the maps. A key may hold dots: `http.listen: …` says the same as `http: {listen: …}`. */
class Walk {
  readonly entries = new Map<string, FileEntry>();
  readonly problems: Problem[] = [];
  readonly #file: string;
  readonly #doc: Document;
  readonly #lineAt: (offset: number | undefined) => number;

  constructor(file: string, doc: Document, lineAt: (offset: number | undefined) => number) {
    this.#file = file;
    this.#doc = doc;
    this.#lineAt = lineAt;
  }

  map(map: YAMLMap, prefix: string): void {
    for (const { key, value } of map.items) {
      const path = prefix + nameOf(key);
      const node = this.#resolve(value);
      if (isAlias(value) && node === undefined) {
        this.report(key, path, 'this alias has no anchor');
      } else {
        this.#pair(key, path, node);
      }
    }
  }

  report(node: unknown, path: string, message: string): void {
    this.problems.push({ where: { kind: 'file', file: this.#file, line: this.#lineOf(node) }, path, message });
  }

  #pair(key: unknown, path: string, node: Node | undefined): void {
    // A setting that may be a map of settings or a list of such maps.
    if (SECTIONS.has(path) && !(PATHS.has(path) && isSeq(node))) {
      if (isMap(node)) {
        this.map(node, `${path}.`);
      } else if (!isEmpty(node)) {
        this.report(key, path, 'expected a map of settings');
      }
    } else if (SECRET_FILES.has(path)) {
      this.#secretFile(key, path, node);
    } else if (!PATHS.has(path)) {
      this.report(key, path, `unknown key${didYouMean(path, [...PATHS, ...SECTIONS])}`);
    } else if (this.entries.has(path)) {
      this.report(key, path, `set twice: also in line ${this.entries.get(path)?.lineOf([])}`);
    } else if (node !== undefined && !isEmpty(node)) {
      this.#entry(key, path, node);
    }
  }

  /** The content of the file that is named stands for the setting itself. */
  #secretFile(key: unknown, path: string, node: Node | undefined): void {
    const own = SECRET_FILES.get(path) ?? '';
    const content = isScalar(node) && typeof node.value === 'string' ? readSecret(node.value) : undefined;
    if (this.entries.has(own)) {
      this.report(key, path, `set this or ${own}, not both`);
    } else if (content === undefined) {
      this.report(key, path, SECRET_FILE_EXPECTED);
    } else {
      this.entries.set(own, { raw: { kind: 'text', text: content }, lineOf: () => this.#lineOf(key) });
    }
  }

  #entry(key: unknown, path: string, node: Node): void {
    const raw = this.#rawOf(node);
    if (raw === undefined) {
      this.report(key, path, 'too many aliases');
      return;
    }
    const lineOf = (steps: Steps): number => {
      let line = this.#lineOf(key);
      let inner: unknown = node;
      for (const step of steps) {
        inner = isCollection(inner) ? this.#resolve(inner.get(step, true)) : undefined;
        line = inner === undefined ? line : this.#lineOf(inner);
      }
      return line;
    };
    this.entries.set(path, { raw, lineOf });
  }

  /** A scalar as it was written: a number keeps its digits. Undefined when aliases would grow it beyond measure. */
  #rawOf(node: Node): Raw | undefined {
    if (isScalar(node)) {
      return { kind: 'text', text: typeof node.value === 'string' ? node.value : (node.source ?? String(node.value)) };
    }
    try {
      return { kind: 'data', value: node.toJS(this.#doc, { maxAliasCount: 100 }) };
    } catch {
      return undefined;
    }
  }

  #resolve(node: unknown): Node | undefined {
    const target = isAlias(node) ? node.resolve(this.#doc) : node;
    return isScalar(target) || isCollection(target) ? target : undefined;
  }

  #lineOf(node: unknown): number {
    return this.#lineAt(isScalar(node) || isCollection(node) ? node.range?.[0] : 0);
  }
}
