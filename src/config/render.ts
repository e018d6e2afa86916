/** The configuration in force, for people: each setting, its value and where it came from. Secrets are masked. */

import type { AnyKey } from './keys.ts';
import type { Raw } from './parsers.ts';
import type { Problem } from './problems.ts';

/** One setting as it was loaded. */
export interface Setting {
  readonly key: AnyKey;
  /** Undefined = not given, the default holds. */
  readonly raw: Raw | undefined;
  readonly where: Problem['where'];
}

/** One line each: `grpc.listen: 127.0.0.1:9191  # default`. */
export function renderConfig(settings: readonly Setting[]): string {
  const rows = settings
    .toSorted((a, b) => (a.key.path < b.key.path ? -1 : 1))
    .map((setting) => ({ left: `${setting.key.path}: ${shownValue(setting)}`, right: origin(setting) }));
  const width = Math.min(Math.max(...rows.map((row) => row.left.length)), 60);
  return rows.map((row) => `${row.left.padEnd(width)}  # ${row.right}\n`).join('');
}

function shownValue({ key, raw }: Setting): string {
  if (raw === undefined) {
    return key.defaultText ?? '';
  }
  if (key.secret) {
    return '********';
  }
  return raw.kind === 'text' ? raw.text : JSON.stringify(raw.value);
}

function origin({ key, where }: Setting): string {
  switch (where?.kind) {
    case undefined:
      return key.defaultText === undefined ? 'not set' : 'default';
    case 'env':
      return where.name;
    case 'file':
      return where.at === undefined ? where.file : `${where.file}:${where.at.line}`;
    default:
      return where satisfies never;
  }
}
