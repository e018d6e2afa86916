/**
 * Exported names that several files of src declare. A reader who meets such a name must first find out which one is
 * meant.
 */

import type { SourceFile } from './import-rules.ts';

const DECLARATION =
  /^export (?:declare )?(?:abstract )?(?:async )?(?:function\*?|class|interface|type|const|let) (?<name>[A-Za-z_$][\w$]*)/gm;

export interface SharedName {
  readonly name: string;
  readonly files: readonly string[];
}

/** Returns the names that more than one file declares, with their files, in the order of the names. */
export function sharedNames(files: readonly SourceFile[]): readonly SharedName[] {
  const declaring = new Map<string, Set<string>>();
  for (const { path, text } of files) {
    for (const match of text.matchAll(DECLARATION)) {
      const name = match.groups?.['name'] ?? '';
      const known = declaring.get(name) ?? new Set();
      declaring.set(name, known.add(path));
    }
  }
  return [...declaring]
    .filter(([, paths]) => paths.size > 1)
    .map(([name, paths]) => ({ name, files: [...paths].sort((left, right) => (left < right ? -1 : 1)) }))
    .sort((left, right) => (left.name < right.name ? -1 : 1));
}
