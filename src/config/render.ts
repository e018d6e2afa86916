/** Prints the configuration in force: each setting, its value and its origin. Secrets are masked. */

import type { ConfigError } from './config-error.ts';
import type { Raw } from './parsers.ts';
import type { Setting } from './setting.ts';

export interface LoadedSetting {
  readonly setting: Setting<unknown>;
  /** Undefined = not given, so the default applies. */
  readonly raw: Raw | undefined;
  readonly where: ConfigError['where'];
}

/** One line each: `grpc.listen: 127.0.0.1:9191  # default`. */
export function renderConfig(settings: readonly LoadedSetting[]): string {
  const rows = settings
    .toSorted((a, b) => (a.setting.path < b.setting.path ? -1 : 1))
    .map((one) => ({ left: `${one.setting.path}: ${valueText(one)}`, right: origin(one) }));
  const width = Math.min(Math.max(...rows.map((row) => row.left.length)), 60);
  return rows.map((row) => `${row.left.padEnd(width)}  # ${row.right}\n`).join('');
}

function valueText({ setting, raw }: LoadedSetting): string {
  if (raw === undefined) return setting.defaultText ?? '';
  if (setting.secret) return '********';
  return raw.kind === 'text' ? raw.text : JSON.stringify(raw.value);
}

function origin({ setting, where }: LoadedSetting): string {
  switch (where?.kind) {
    case undefined:
      return setting.defaultText === undefined ? 'not set' : 'default';
    case 'env':
      return where.name;
    case 'file':
      return where.at === undefined ? where.file : `${where.file}:${where.at.line}`;
    default:
      return where satisfies never;
  }
}
