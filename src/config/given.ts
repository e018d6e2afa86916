/** The values that a file and the environment give to a list of settings. The environment overrides the file. */

import { type ConfigError, joinPath, type ValuePath } from './config-error.ts';
import { type Environment, readEnvironment } from './environment.ts';
import type { ConfigFile } from './file.ts';
import type { Flaw, Raw } from './parsers.ts';
import type { LoadedSetting } from './render.ts';
import type { Setting } from './setting.ts';

export interface Sources {
  /** Undefined = only the environment and the defaults. */
  readonly file?: ConfigFile | undefined;
  readonly env: Environment;
}

interface Found {
  readonly raw: Raw;
  readonly locate: (at: ValuePath) => ConfigError['where'];
}

export class GivenSettings {
  readonly errors: ConfigError[];
  /** The settings that were taken. */
  readonly taken: LoadedSetting[] = [];
  readonly #find: (path: string) => Found | undefined;
  readonly #isWhole: boolean;

  constructor(settings: readonly Setting<unknown>[], { file, env }: Sources) {
    const fromFile = file === undefined ? undefined : { name: file.name, ...file.read(settings) };
    const fromEnv = readEnvironment(settings, env);
    // A secret's file is not needed if the environment has the secret.
    const isNeeded = ({ path }: ConfigError): boolean =>
      !path.endsWith('-file') || !fromEnv.entries.has(path.slice(0, -'-file'.length));
    this.errors = [...(fromFile?.errors.filter(isNeeded) ?? []), ...fromEnv.errors];
    this.#isWhole = fromFile?.isWhole ?? true;
    // `ldap`, as a list in the environment, takes the place of the whole section in the file.
    const isReplaced = (path: string): boolean => fromEnv.entries.has(path.slice(0, Math.max(0, path.indexOf('.'))));
    this.#find = (path) => {
      const variable = fromEnv.entries.get(path);
      if (variable !== undefined) {
        return { raw: variable.raw, locate: () => ({ kind: 'env', name: variable.name }) };
      }
      const entry = fromFile?.entries.get(path);
      if (fromFile === undefined || entry === undefined || isReplaced(path)) return undefined;
      return { raw: entry.raw, locate: (at) => ({ kind: 'file', file: fromFile.name, at: entry.positionOf(at) }) };
    };
  }

  /** Returns the setting's value, or its default if there is none. Reports a wrong value and returns the default. */
  readonly take = <T>(setting: Setting<T>): T => {
    const found = this.#find(setting.path);
    this.taken.push({ setting, raw: found?.raw, where: found?.locate([]) });
    if (found === undefined) return setting.fallback;
    const parsed = setting.parser.parse(found.raw);
    if (parsed.kind === 'value') return parsed.value;
    this.errors.push(...parsed.flaws.map((flaw) => errorOf(setting, flaw, found.locate(flaw.at))));
    return setting.fallback;
  };

  readonly isGiven = (path: string): boolean => this.#find(path) !== undefined;

  /** Reports an error, unless the setting may only be missing because what should have it cannot be read. */
  readonly report = (path: string, message: string, at: ValuePath = []): void => {
    const found = this.#find(path);
    if (!this.#isWhole || (found === undefined && this.#isUnreadable(path))) return;
    this.errors.push({ where: found?.locate(at), path: joinPath(path, at), message });
  };

  /** True if an error about the setting, or about the file that has its secret, was reported already. */
  #isUnreadable(path: string): boolean {
    return this.errors.some((error) => error.path === path || error.path === `${path}-file`);
  }
}

function errorOf(
  { path, secret }: Setting<unknown>,
  { at, expected, got }: Flaw,
  where: ConfigError['where'],
): ConfigError {
  const message = got === undefined ? expected : secret ? `expected ${expected}` : `expected ${expected}, got ${got}`;
  return { where, path: joinPath(path, at), message };
}
