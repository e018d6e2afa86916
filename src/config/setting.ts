/** A setting: its name, parser, default and documentation. Tables of settings give the types of their values. */

import type { Parser } from './parsers.ts';

export interface Setting<T> {
  /** The name in the file, such as `http.trusted-proxies`. */
  readonly path: string;
  readonly parser: Parser<T>;
  /** The default as an operator would write it; undefined = no value by default. */
  readonly defaultText: string | undefined;
  readonly fallback: T;
  /** Never shown. It may also come from the file that `POSTERN_…_FILE` names. */
  readonly secret: boolean;
  /** One or more sentences. */
  readonly help: string;
  /** An accepted value for the documentation, as the environment has it. */
  readonly example: string;
  /** True if the Helm chart sets it, so that the chart's `config` rejects it. */
  readonly setByChart: boolean;
}

interface Options {
  /** Default: the setting's default. */
  readonly example?: string;
  readonly setByChart?: boolean;
}

/** A setting with a default, which its parser must accept. */
export function setting<T>(
  path: string,
  parser: Parser<T>,
  defaultText: string,
  help: string,
  { example = defaultText, setByChart = false }: Options = {},
): Setting<T> {
  const parsed = parser.parse({ kind: 'text', text: defaultText });
  if (parsed.kind === 'flaws') throw new Error(`the default of ${path} is not an allowed value`);
  return { path, parser, defaultText, fallback: parsed.value, secret: false, help, example, setByChart };
}

export function optional<T>(
  path: string,
  parser: Parser<T>,
  example: string,
  help: string,
  { setByChart = false }: Pick<Options, 'setByChart'> = {},
): Setting<T | undefined> {
  return { path, parser, defaultText: undefined, fallback: undefined, secret: false, help, example, setByChart };
}

export function secret<T>(path: string, parser: Parser<T>, example: string, help: string): Setting<T | undefined> {
  return { ...optional(path, parser, example, help), secret: true };
}

interface SettingTable {
  readonly [name: string]: Setting<unknown> | SettingTable;
}

/** The values of a table's settings, in the table's shape. */
export type ValuesOf<T> = {
  readonly [K in keyof T]: T[K] extends Setting<infer V> ? V : ValuesOf<T[K]>;
};

type Take = <T>(setting: Setting<T>) => T;

/** @param take returns the value of one setting */
export function valuesOf<T extends SettingTable>(table: T, take: Take): ValuesOf<T>;
export function valuesOf(table: SettingTable, take: Take): object {
  return Object.fromEntries(
    Object.entries(table).map(([name, entry]) => [name, isSetting(entry) ? take(entry) : valuesOf(entry, take)]),
  );
}

export function settingsOf(table: SettingTable): readonly Setting<unknown>[] {
  return Object.values(table).flatMap((entry) => (isSetting(entry) ? [entry] : settingsOf(entry)));
}

function isSetting(entry: Setting<unknown> | SettingTable): entry is Setting<unknown> {
  return typeof entry['path'] === 'string';
}

/** `http.trusted-proxies` -> `POSTERN_HTTP_TRUSTED_PROXIES` */
export function envName(path: string): string {
  return `POSTERN_${path.replace(/[.-]/g, '_').toUpperCase()}`;
}
