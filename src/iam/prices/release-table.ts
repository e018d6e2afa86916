/**
 * The table of prices that the release ships. `scripts/release-prices.ts` writes the file. No check reads it: an administrator
 * accepts prices from it.
 */

import { readFile } from 'node:fs/promises';
import type { PriceRule } from '../../domain/records.ts';
import { parsePrices } from './rules.ts';

/** Prices of the provider that the table does not have: higher ones for long prompts, or lower ones at some hours. */
export type LeftOut = 'tiers' | 'times';

/** A price as the file has it: globs of models, and the amounts for 1,000,000 tokens. */
export type TableRow = readonly [
  models: readonly string[],
  input: string,
  output: string,
  cachedInput?: string | null,
  cacheWrite?: string | null,
  leftOut?: readonly LeftOut[],
];

export interface ReleaseTableFile {
  readonly source: {
    readonly name: string;
    readonly version: string;
    readonly license: string;
    readonly currency: string;
    readonly date: string;
  };
  readonly providers: readonly { readonly id: string; readonly name: string; readonly prices: readonly TableRow[] }[];
}

export interface TablePrice extends PriceRule {
  /** The id of the provider. */
  readonly provider: string;
  readonly leftOut: readonly LeftOut[];
}

export interface ReleaseTable {
  readonly source: ReleaseTableFile['source'];
  readonly providers: readonly { readonly id: string; readonly name: string }[];
  readonly prices: readonly TablePrice[];
}

export const RELEASE_TABLE_FILE = new URL('./release-prices.json', import.meta.url);

export async function readReleaseTable(): Promise<ReleaseTable> {
  const file: ReleaseTableFile = JSON.parse(await readFile(RELEASE_TABLE_FILE, 'utf8'));
  return {
    source: file.source,
    providers: file.providers.map(({ id, name }) => ({ id, name })),
    prices: file.providers.flatMap(({ id, prices }) => {
      const rows = prices.flatMap((row) => row[0].map((models) => ({ models, row })));
      const rules = parsePrices(rows.map(requestOf));
      return rules.map((rule, i) => ({ ...rule, provider: id, leftOut: rows[i]?.row[5] ?? [] }));
    }),
  };
}

function requestOf({ models, row: [, input, output, cachedInput, cacheWrite] }: { models: string; row: TableRow }) {
  return {
    models,
    input,
    output,
    ...(cachedInput == null ? {} : { cached_input: cachedInput }),
    ...(cacheWrite == null ? {} : { cache_write: cacheWrite }),
    per: 1_000_000,
  } as const;
}
