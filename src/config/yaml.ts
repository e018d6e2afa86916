/** Errors and positions of a YAML file, for the configuration and for setup files. */

import { type Document, isAlias, type LineCounter, type YAMLError } from 'yaml';
import { systemCode } from '../domain/errors.ts';
import type { ConfigError, Position } from './config-error.ts';

/**
 * Values are maps, lists and scalars of JSON. Every other tag is a warning, which the readers reject: an ordered map or a
 * set would have no members, and the text after `!secret` would be the value.
 */
export const YAML_OPTIONS = { prettyErrors: false, resolveKnownTags: false } as const;

export function fileError(file: string, message: string, at?: Position): ConfigError {
  return { where: { kind: 'file', file, at }, path: '', message };
}

export function readFailure(error: unknown): string {
  const code = systemCode(error) ?? 'unknown error';
  if (code === 'ENOENT') return 'the file does not exist';
  return code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'expected UTF-8 text' : `the file cannot be read (${code})`;
}

/** Does not use the message of the YAML parser: it quotes the file, which may have secrets. */
export function syntaxError(
  file: string,
  { code, pos }: Pick<YAMLError, 'code' | 'pos'>,
  positionAt: (offset: number) => Position,
): ConfigError {
  const message = code === 'DUPLICATE_KEY' ? 'this key appears twice in the same map' : `not valid YAML here (${code})`;
  return fileError(file, message, positionAt(pos[0]));
}

export function filePosition(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset);
  return { line, column: col };
}

/** Returns the node that an alias refers to, and any other node itself. */
export function resolved(doc: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(doc) : node;
}
