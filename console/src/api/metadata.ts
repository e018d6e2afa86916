/** Metadata as rows that can be edited, and what the API takes of it. */

import { metadata as text } from '../text/en/metadata.ts';
import { type Pair, pairsOf } from '../ui/pairs-field.tsx';

export const METADATA_BOUNDS = { atMost: 16, maxName: 64, maxValue: 512 } as const;

export function pairsIn(metadata: Readonly<Record<string, string>>): readonly Pair[] {
  return pairsOf(Object.entries(metadata).map(([name, value]) => ({ name, value })));
}

export function metadataOf(pairs: readonly Pair[]): Readonly<Record<string, string>> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}

/** @param pairs in the order of their names @returns why they cannot be sent; undefined: they can */
export function metadataFault(pairs: readonly Pair[]): string | undefined {
  if (pairs.some(({ name }) => name === '')) return text.withoutName;
  const twice = pairs.find(({ name }, index) => pairs[index - 1]?.name === name);
  return twice === undefined ? undefined : text.twice(twice.name);
}
