/**
 * What a browser has to fetch for the console: which files a screen is made of, and how many bytes of them the server
 * sends.
 */

import { readFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Rolldown } from 'vite';
import { encoded } from '../../src/http/console/routes.ts';

const CONSOLE = fileURLToPath(new URL('../../console', import.meta.url));
/** Of a first load, with gzip. Fonts are not in it: text is shown before they are there. */
export const MAX_FIRST_LOAD_BYTES = 250_000;

const SHELL = 'shell/shell.tsx';
const SIGN_IN = 'screens/sign-in/sign-in.tsx';
const OVERVIEW = 'screens/overview/overview.tsx';

export interface Sizes {
  /** Bytes. */
  readonly raw: number;
  readonly gzip: number;
  readonly brotli: number;
}

export interface Load extends Sizes {
  readonly name: string;
  /** Paths below /console/. */
  readonly files: readonly string[];
}

export interface ConsoleSize {
  /**
   * All that is fetched before the first screen is usable: of somebody who is not signed in, and of somebody who is.
   */
  readonly first: readonly Load[];
  /** What each other screen adds to the frame around all screens. */
  readonly screens: readonly Load[];
  /** Fetched once they are needed, while the system's fonts stand in. */
  readonly fonts: readonly Load[];
}

/**
 * Builds the console in memory, as `npm run console:build` builds it, and measures it with the server's compression.
 */
export async function measureConsole(): Promise<ConsoleSize> {
  // React has twice the size outside of production.
  process.env['NODE_ENV'] = 'production';
  const outputs = [await build({ root: CONSOLE, logLevel: 'error', build: { write: false } })].flat();
  const files = new Map(
    outputs.flatMap((output) => ('output' in output ? output.output : [])).map((file) => [file.fileName, file]),
  );
  const chunks = [...files.values()].filter((file) => file.type === 'chunk');
  const entry = chunks.find(({ isEntry }) => isEntry);
  if (entry === undefined) throw new Error('The build has no entry.');
  const screenOf = ({ facadeModuleId }: Rolldown.OutputChunk): string =>
    relative(join(CONSOLE, 'src'), facadeModuleId ?? '');
  const lazy = new Map(chunks.filter(({ isDynamicEntry }) => isDynamicEntry).map((chunk) => [screenOf(chunk), chunk]));
  const closure = (module: string): readonly string[] => {
    const chunk = lazy.get(module);
    if (chunk === undefined) throw new Error(`The build has no lazy module ${module}.`);
    return filesOf(chunk, files);
  };
  const icon = 'mark.svg';
  const fonts = [...files.keys()].filter((name) => name.endsWith('.woff2'));
  const everywhere = ['index.html', icon, ...filesOf(entry, files)];

  const known = new Map<string, Promise<Sizes>>();
  const sizeOf = (name: string): Promise<Sizes> => {
    const size = known.get(name) ?? sent(name, files.get(name));
    known.set(name, size);
    return size;
  };
  const load = async (name: string, names: readonly string[]): Promise<Load> => {
    const distinct = [...new Set(names)];
    const sizes = await Promise.all(distinct.map(sizeOf));
    const sum = (pick: (size: Sizes) => number): number => sizes.reduce((total, size) => total + pick(size), 0);
    return {
      name,
      files: distinct,
      raw: sum(({ raw }) => raw),
      gzip: sum(({ gzip }) => gzip),
      brotli: sum(({ brotli }) => brotli),
    };
  };
  const frame = new Set([...everywhere, ...closure(SHELL)]);
  const others = [...lazy.keys()].filter((module) => module !== SHELL).sort((a, b) => a.localeCompare(b));
  return {
    first: await Promise.all([
      load('signed out', [...everywhere, ...closure(SIGN_IN)]),
      load('overview', [...frame, ...closure(OVERVIEW)]),
    ]),
    screens: await Promise.all(
      others.map((module) =>
        load(
          basename(module, '.tsx'),
          closure(module).filter((name) => !frame.has(name)),
        ),
      ),
    ),
    fonts: await Promise.all(fonts.map((name) => load(basename(name), [name]))),
  };
}

type Files = ReadonlyMap<string, Rolldown.OutputChunk | Rolldown.OutputAsset>;

/** A chunk with its styles, and all that it imports. */
function filesOf(chunk: Rolldown.OutputChunk, files: Files): readonly string[] {
  const found = new Set<string>();
  const add = (each: Rolldown.OutputChunk): void => {
    if (found.has(each.fileName)) return;
    found.add(each.fileName);
    for (const style of each.viteMetadata?.importedCss ?? []) found.add(style);
    for (const name of each.imports) {
      const imported = files.get(name);
      if (imported?.type === 'chunk') add(imported);
    }
  };
  add(chunk);
  return [...found];
}

/**
 * As src/http/console sends it: the page and fonts as they are, everything else compressed if the browser takes that.
 */
async function sent(name: string, file: Rolldown.OutputChunk | Rolldown.OutputAsset | undefined): Promise<Sizes> {
  const content =
    file === undefined
      ? await readFile(join(CONSOLE, 'public', name))
      : file.type === 'chunk'
        ? file.code
        : file.source;
  const bytes = Buffer.from(content);
  const raw = bytes.length;
  if (name === 'index.html' || name.endsWith('.woff2')) return { raw, gzip: raw, brotli: raw };
  const [zipped, squeezed] = await Promise.all([encoded(bytes, 'gzip'), encoded(bytes, 'br')]);
  return { raw, gzip: zipped.length, brotli: squeezed.length };
}
