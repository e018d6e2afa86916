/**
 * The parts of the suite. A test file belongs to the first part in this list whose marker it imports, directly or by way of other
 * files: what a test needs is what it imports, so no list of files has to be kept.
 */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const ROOT = join(import.meta.dirname, '..');

interface Part {
  readonly name: string;
  /** Files of the project, folders with a slash at the end, or modules of Node. */
  readonly markers: readonly string[];
}

/** In the order in which they run: the longest files first, so that no worker is left with one of them at the end. */
export const PARTS = [
  { name: 'console', markers: ['test/console/support/browser.ts'] },
  { name: 'processes', markers: ['test/server/support/postern.ts', 'test/support/demo.ts'] },
  { name: 'directory', markers: ['test/directory/servers/'] },
  { name: 'envoy', markers: ['test/support/envoy.ts'] },
  { name: 'http', markers: ['src/http/server.ts'] },
  { name: 'database', markers: ['test/support/database.ts', 'src/store/embedded/embedded.ts'] },
  { name: 'deploy-lint', markers: ['scripts/', 'test/mesh/support/', 'node:child_process'] },
  { name: 'unit', markers: ['test/'] },
] as const satisfies readonly Part[];

export type PartName = (typeof PARTS)[number]['name'];

/** Returns the test files of each part that has any, as paths from the project's folder. */
export function filesOfParts(): ReadonlyMap<PartName, readonly string[]> {
  const graph = new ImportGraph();
  const names = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => name.endsWith('.test.ts')).map((name) => `test/${name.split(sep).join('/')}`);
  return Map.groupBy(files.sort(), (file) => partOf(file, graph));
}

function partOf(file: string, graph: ImportGraph): PartName {
  const needs = [...graph.reachedFrom(file)];
  const part = PARTS.find(({ markers }) =>
    markers.some((marker) => needs.some((need) => (marker.endsWith('/') ? need.startsWith(marker) : need === marker))),
  );
  return part?.name ?? 'unit';
}

const IMPORT = /^(?:import|export)\b(?!\s+type\b)[^'";]*?(?:\bfrom\s+)?'([^'\n]+)'/gm;

/** What the files of the project import from each other at run time. Type imports leave no trace there and do not count. */
class ImportGraph {
  readonly #imports = new Map<string, readonly string[]>();

  reachedFrom(file: string): ReadonlySet<string> {
    const reached = new Set<string>();
    const open = [file];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      // What a program does with the machine is its own matter; the needs of a test show in the files of the tests.
      if (!next.startsWith('node:')) open.push(...this.#importsOf(next));
    }
    return reached;
  }

  #importsOf(file: string): readonly string[] {
    const known = this.#imports.get(file);
    if (known !== undefined) return known;
    const text = readFileSync(join(ROOT, file), 'utf8');
    const isTest = file.startsWith('test/');
    const imports = [...text.matchAll(IMPORT)].flatMap(([, specifier = '']) => {
      if (specifier.startsWith('node:')) return isTest ? [specifier] : [];
      if (!specifier.startsWith('.')) return [];
      const path = join(dirname(join(ROOT, file)), specifier);
      return path.endsWith('.ts') && existsSync(path) ? [relative(ROOT, path).split(sep).join('/')] : [];
    });
    this.#imports.set(file, imports);
    return imports;
  }
}
