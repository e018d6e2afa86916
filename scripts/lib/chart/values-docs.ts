/** Reads the comments of values.yaml: `# -- ` before a value documents it, and with it everything below it. */

import { isMap, isScalar, type Pair, parseDocument } from 'yaml';

export interface DocumentedValue {
  readonly path: readonly string[];
  readonly description: string;
  /** The default, as JSON. */
  readonly value: string;
}

export interface ValuesDocs {
  readonly values: readonly DocumentedValue[];
  /** Values without a comment of their own or above them. */
  readonly undocumented: readonly string[];
}

export function documentValues(text: string): ValuesDocs {
  const doc = parseDocument(text);
  const values: DocumentedValue[] = [];
  const undocumented: string[] = [];
  const walk = (pairs: readonly Pair[], above: readonly string[], firstComment: string | null | undefined): void => {
    for (const [index, { key, value }] of pairs.entries()) {
      const path = [...above, isScalar(key) ? String(key.value) : ''];
      // The parser gives the comment before the first member of a map to the map.
      const before = (isScalar(key) ? key.commentBefore : undefined) ?? (index === 0 ? firstComment : undefined);
      const description = /^ -- (.*)/s
        .exec(before?.split('\n').findLast((line) => line.startsWith(' -- ')) ?? '')?.[1]
        ?.trim();
      if (description !== undefined) {
        values.push({
          path,
          description,
          value: JSON.stringify(isMap(value) || !isScalar(value) ? toJs(value) : value.value),
        });
      } else if (isMap(value) && value.items.length > 0) {
        walk(value.items, path, value.commentBefore);
      } else {
        undocumented.push(path.join('.'));
      }
    }
  };
  const toJs = (node: unknown): unknown =>
    typeof node === 'object' && node !== null && 'toJS' in node && typeof node.toJS === 'function'
      ? node.toJS(doc)
      : node;
  if (isMap(doc.contents)) walk(doc.contents.items, [], doc.commentBefore ?? doc.contents.commentBefore);
  return { values, undocumented };
}
