/** Reads the YAML file into one entry per setting, each with its position. It does not parse values. */

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
  visit,
  type YAMLMap,
} from 'yaml';
import { type ConfigError, didYouMean, type Position, type ValuePath } from './config-error.ts';
import { readSecret, SECRET_FILE_EXPECTED, utf8Text } from './files.ts';
import type { Raw } from './parsers.ts';
import type { Setting } from './setting.ts';
import { fileError, filePosition, readFailure, resolved, syntaxError, YAML_OPTIONS } from './yaml.ts';

interface FileEntry {
  readonly raw: Raw;
  /** Returns the position of a part of the value, or of the nearest value above it. */
  readonly positionOf: (at: ValuePath) => Position;
}

/** This module and the YAML parser load only if there is a file. */
export interface ConfigFile {
  readonly name: string;
  read(settings: readonly Setting<unknown>[]): FileContent;
}

interface FileContent {
  readonly entries: ReadonlyMap<string, FileEntry>;
  readonly errors: readonly ConfigError[];
  /** False if the file could not be read or is not YAML, so that it has no entries. */
  readonly isWhole: boolean;
}

const MAX_BYTES = 1_048_576;
const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,23}(\.[A-Za-z][A-Za-z0-9_-]{0,23}){0,4}$/;

class Names {
  readonly paths: ReadonlySet<string>;
  /** The name for a secret's file, to the secret's own: `ldap.bind-password-file` to `ldap.bind-password`. */
  readonly secretFiles: ReadonlyMap<string, string>;
  /** Every beginning of a path: `grpc`, `grpc.tls`. */
  readonly sections: ReadonlySet<string>;

  constructor(settings: readonly Setting<unknown>[]) {
    this.paths = new Set(settings.map(({ path }) => path));
    this.secretFiles = new Map(settings.flatMap(({ path, secret }) => (secret ? [[`${path}-file`, path]] : [])));
    this.sections = new Set(
      [...this.paths].flatMap((path) =>
        path.split('.').flatMap((_, index, parts) => (index === 0 ? [] : [parts.slice(0, index).join('.')])),
      ),
    );
  }
}

/** Reads the file once, because it may be a pipe. */
export function configFile(name: string): ConfigFile {
  const failed = (message: string): ConfigFile => ({
    name,
    read: () => ({ entries: new Map(), errors: [fileError(name, message)], isWhole: false }),
  });
  try {
    const { size } = statSync(name);
    if (size > MAX_BYTES) return failed(`expected a file of at most 1 MiB, got ${size} bytes`);
    const text = utf8Text(readFileSync(name));
    return { name, read: (settings) => readYaml(new Names(settings), name, text) };
  } catch (error) {
    return failed(readFailure(error));
  }
}

function readYaml(names: Names, file: string, text: string): FileContent {
  const lines = new LineCounter();
  const doc = parseDocument(text, { ...YAML_OPTIONS, lineCounter: lines });
  const positionAt = (offset: number | undefined): Position => filePosition(lines, offset ?? 0);
  const broken = [...doc.errors, ...doc.warnings];
  const errors = broken.map((error) => syntaxError(file, error, positionAt));
  if (broken.some((error) => error.code !== 'DUPLICATE_KEY')) {
    return { entries: new Map(), errors, isWhole: false };
  }
  // A tenant `007` or a password of digits is a text, also in a list. The parser of a number reads its text.
  visit(doc, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'number') node.value = node.source ?? node.value;
    },
  });
  const walk = new Walk(names, file, doc, positionAt);
  if (isMap(doc.contents)) {
    walk.map(doc.contents, '');
  } else if (!isEmpty(doc.contents)) {
    walk.report(doc.contents, '', 'expected a map of settings');
  }
  return { entries: walk.entries, errors: [...errors, ...walk.errors], isWhole: true };
}

/** A key as errors may quote it. A key that does not look like a setting's name may be a misplaced secret. */
function nameOf(key: unknown): string {
  const name = isScalar(key) ? String(key.value) : '';
  return NAME.test(name) ? name : '(not a name)';
}

function isEmpty(node: unknown): boolean {
  return node === null || node === undefined || (isScalar(node) && node.value === null);
}

/** Walks down the maps. A key may have dots: `http.listen: …` is the same as `http: {listen: …}`. */
class Walk {
  readonly entries = new Map<string, FileEntry>();
  readonly errors: ConfigError[] = [];
  readonly #names: Names;
  readonly #file: string;
  readonly #doc: Document;
  readonly #positionAt: (offset: number | undefined) => Position;

  constructor(names: Names, file: string, doc: Document, positionAt: (offset: number | undefined) => Position) {
    this.#names = names;
    this.#file = file;
    this.#doc = doc;
    this.#positionAt = positionAt;
  }

  map(map: YAMLMap, prefix: string): void {
    const seen = new Set<string>();
    for (const { key, value } of map.items) {
      // The parser has reported a key that appears twice in one map.
      const name = isScalar(key) ? String(key.value) : undefined;
      if (name !== undefined && seen.has(name)) continue;
      if (name !== undefined) seen.add(name);
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
    this.errors.push({ where: { kind: 'file', file: this.#file, at: this.#positionOf(node) }, path, message });
  }

  #pair(key: unknown, path: string, node: Node | undefined): void {
    const { paths, sections, secretFiles } = this.#names;
    const ownPath = secretFiles.get(path);
    // `ldap` is a section or a list of such maps.
    if (sections.has(path) && !(paths.has(path) && isSeq(node))) {
      if (isMap(node)) {
        this.map(node, `${path}.`);
      } else if (!isEmpty(node)) {
        this.report(key, path, 'expected a map of settings');
      }
    } else if (ownPath !== undefined) {
      this.#secretFile(key, path, ownPath, node);
    } else if (!paths.has(path)) {
      this.report(key, path, `unknown key${didYouMean(path, [...paths, ...sections])}`);
    } else if (this.entries.has(path)) {
      this.report(key, path, `set twice: also in line ${this.entries.get(path)?.positionOf([]).line}`);
    } else if (node !== undefined && !isEmpty(node)) {
      this.#entry(key, path, node);
    }
  }

  /** Sets the secret to the content of the named file. */
  #secretFile(key: unknown, path: string, own: string, node: Node | undefined): void {
    const content = isScalar(node) && typeof node.value === 'string' ? readSecret(node.value) : undefined;
    if (this.entries.has(own)) {
      this.report(key, path, `set this or ${own}, not both`);
    } else if (content === undefined) {
      this.report(key, path, SECRET_FILE_EXPECTED);
    } else {
      this.entries.set(own, { raw: { kind: 'text', text: content }, positionOf: () => this.#positionOf(key) });
    }
  }

  #entry(key: unknown, path: string, node: Node): void {
    const raw = this.#rawOf(node);
    if (raw === undefined) {
      this.report(key, path, 'too many aliases');
      return;
    }
    const positionOf = (at: ValuePath): Position => {
      let position = this.#positionOf(key);
      let inner: unknown = node;
      for (const step of at) {
        inner = isCollection(inner) ? this.#resolve(inner.get(step, true)) : undefined;
        position = inner === undefined ? position : this.#positionOf(inner);
      }
      return position;
    };
    this.entries.set(path, { raw, positionOf });
  }

  /** Returns a scalar as it was written. Returns undefined for more than 100 aliases. */
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
    const target = resolved(this.#doc, node);
    return isScalar(target) || isCollection(target) ? target : undefined;
  }

  #positionOf(node: unknown): Position {
    return this.#positionAt(isScalar(node) || isCollection(node) ? node.range?.[0] : 0);
  }
}
