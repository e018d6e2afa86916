/** Errors of a configuration, each with its position. No error ever quotes a secret. */

import { editDistance } from '../domain/text.ts';

/** A position in a file. Both numbers start at 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface ConfigError {
  /** The file and position, or the environment variable; undefined if the error is that a setting is missing. */
  readonly where:
    | { readonly kind: 'file'; readonly file: string; readonly at: Position | undefined }
    | { readonly kind: 'env'; readonly name: string }
    | undefined;
  /** For example `grpc.listen` or `routes[2].path`; empty if the error concerns the whole file. */
  readonly path: string;
  /** The expected value and, unless it is secret, the given one. */
  readonly message: string;
}

/** The part of a path inside a list: `[2].path` of `routes[2].path`. */
const IN_LIST = /\[.*$/s;

/** One line, such as `postern.yaml:12:11: grpc.listen: expected host:port or unix:/path, got 99999`. */
export function formatConfigError({ where, path, message }: ConfigError): string {
  const at = path === '' ? message : `${path}: ${message}`;
  switch (where?.kind) {
    case undefined:
      return at;
    case 'env':
      return `${where.name}${IN_LIST.exec(path)?.[0] ?? ''}: ${message}`;
    case 'file':
      return where.at === undefined
        ? `${where.file}: ${at}`
        : `${where.file}:${where.at.line}:${where.at.column}: ${at}`;
    default:
      return where satisfies never;
  }
}

/** The names and indexes that lead from a value to a part of it. */
export type ValuePath = readonly (string | number)[];

export function joinPath(path: string, below: ValuePath): string {
  return path + below.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
}

const MAX_DISTANCE = 2;

/** Names the candidate with the fewest wrong, missing or extra letters, at most two; empty if none is that close. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  let best: string | undefined;
  let bestDistance = MAX_DISTANCE + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name, candidate, bestDistance);
    if (distance < bestDistance) {
      [best, bestDistance] = [candidate, distance];
    }
  }
  return best === undefined ? '' : `; did you mean ${best}?`;
}
