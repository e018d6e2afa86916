/**
 * `npm run release-prices [DAY]`: writes the table of prices that the release ships, from the data of the package
 * @pydantic/genai-prices. Run it before a release, and review the difference. Nothing else reads the package.
 *
 * The table has each model's price of text tokens on that day (default: today). If it depends on the hour, the table has
 * the highest one. It has no higher prices of long prompts, and none of images, sound, searches or requests. Models
 * without a price of input tokens are left out. A rule of the package that is a regular expression becomes no glob.
 */

import { readFile, writeFile } from 'node:fs/promises';
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices';
import { isWithinBounds } from '../src/decision/globs.ts';
import { compilePrices, type Price } from '../src/decision/prices.ts';
import type { PriceRule } from '../src/domain/records.ts';
import {
  type LeftOut,
  RELEASE_TABLE_FILE,
  type ReleaseTableFile,
  type TableRow,
} from '../src/iam/prices/release-table.ts';

const PACKAGE = '@pydantic/genai-prices';

/**
 * The providers of the table. A glob of several providers has the price of the first one, unless an administrator
 * chooses the provider: so the makers of models come first.
 */
const PROVIDERS: readonly string[] = [
  ...['openai', 'anthropic', 'google', 'mistral', 'cohere', 'deepseek', 'x-ai', 'moonshotai', 'zhipuai', 'minimax'],
  ...['perplexity', 'voyageai', 'aws', 'azure', 'groq', 'cerebras', 'together', 'fireworks', 'baseten', 'novita'],
  ...['cloudflare', 'ovhcloud', 'openrouter'],
];

interface DatedPrice {
  readonly price: ModelPrice;
  readonly hasTimes: boolean;
}

/** Returns the price from the latest first day that is not after the day, or the highest price of that day's hours. */
function priceOn({ prices }: ModelInfo, day: string): DatedPrice {
  const all = Array.isArray(prices) ? prices : [{ prices }];
  let latest: { readonly from: string; readonly price: ModelPrice } | undefined;
  const ofHours: ModelPrice[] = [];
  for (const { constraint, prices: price } of all) {
    if (constraint?.type === 'time_of_date') ofHours.push(price);
    else {
      const from = constraint?.start_date ?? '';
      if (from <= day && from >= (latest?.from ?? '')) latest = { from, price };
    }
  }
  const inputOf = (price: ModelPrice): number => baseOf(price, 'input_mtok') ?? 0;
  const price = ofHours.reduce((most, one) => (inputOf(one) > inputOf(most) ? one : most), latest?.price ?? {});
  return { price, hasTimes: ofHours.length > 0 };
}

function baseOf(price: ModelPrice, name: string): number | undefined {
  const value = price[name];
  return typeof value === 'object' ? value.base : value;
}

/** Rounded to 9 places: a few amounts of the package are fractions such as 1/12. */
const textOf = (amount: number): string => amount.toFixed(9).replace(/\.?0+$/, '');

/** Returns the globs that match at least the models of the rule, without those of regular expressions. */
function globsOf(match: MatchLogic): readonly string[] {
  if ('or' in match) return match.or.flatMap(globsOf);
  if ('equals' in match) return [match.equals];
  if ('starts_with' in match) return [`${match.starts_with}*`];
  if ('ends_with' in match) return [`*${match.ends_with}`];
  if ('contains' in match) return [`*${match.contains}*`];
  return [];
}

interface Priced {
  readonly models: readonly string[];
  readonly row: TableRow;
}

function pricedModel(model: ModelInfo, day: string): Priced | undefined {
  const { price, hasTimes } = priceOn(model, day);
  const input = baseOf(price, 'input_mtok');
  if (input === undefined) return undefined;
  const cached = baseOf(price, 'cache_read_mtok');
  const write = baseOf(price, 'cache_write_mtok');
  const hasTiers = ['input_mtok', 'output_mtok', 'cache_read_mtok'].some((name) => typeof price[name] === 'object');
  const leftOut: LeftOut[] = [...(hasTiers ? ['tiers' as const] : []), ...(hasTimes ? ['times' as const] : [])];
  const models = [...new Set([...globsOf(model.match), model.id])].filter((glob) => isWithinBounds(glob));
  const amounts = [textOf(input), textOf(baseOf(price, 'output_mtok') ?? 0)] as const;
  const rest = [cached === undefined ? null : textOf(cached), write === undefined ? null : textOf(write)] as const;
  return { models, row: [[], ...amounts, ...rest, leftOut] };
}

const nano = (text: string): number => Math.round(Number(text) * 1e9);

function ruleOf(glob: string, [, input, output, cached, write]: TableRow): PriceRule {
  return {
    models: glob,
    input: nano(input),
    output: nano(output),
    cachedInput: cached == null ? undefined : nano(cached),
    cacheWrite: write == null ? undefined : nano(write),
  };
}

/** Returns the row without the members at its end that have their default. */
function shortened([models, input, output, cached, write, leftOut = []]: TableRow): TableRow {
  if (leftOut.length > 0) return [models, input, output, cached ?? null, write ?? null, leftOut];
  if (write != null) return [models, input, output, cached ?? null, write];
  return cached == null ? [models, input, output] : [models, input, output, cached];
}

const amountsOf = ({ input, output, cachedInput, cacheWrite }: Price): string =>
  [input, output, cachedInput, cacheWrite].join();

/** Returns the rows of a provider: without names that a glob prices in the same way. */
function rowsOf(models: readonly ModelInfo[], day: string): readonly TableRow[] {
  const rows = new Map<string, TableRow>();
  for (const model of models) {
    const priced = pricedModel(model, day);
    for (const glob of priced?.models ?? []) {
      // The first model counts, as in the package. A name of its own has its own price.
      if (priced !== undefined && (!rows.has(glob) || glob === model.id)) rows.set(glob, priced.row);
    }
  }
  const globs = compilePrices({
    version: 0,
    prices: [...rows].filter(([glob]) => glob.includes('*')).map(([glob, row]) => ruleOf(glob, row)),
  });
  const kept = [...rows].filter(([name, row]) => {
    if (name.includes('*')) return true;
    const byGlob = globs.of(name);
    const own = compilePrices({ version: 0, prices: [ruleOf(name, row)] }).of(name);
    return byGlob === undefined || own === undefined || amountsOf(byGlob) !== amountsOf(own);
  });
  return grouped(kept);
}

/** Joins neighbors with the same price, as long as their row fits a line. */
function grouped(priced: readonly (readonly [glob: string, row: TableRow])[]): readonly TableRow[] {
  const rows: TableRow[] = [];
  for (const [glob, row] of priced) {
    const [, ...amounts] = shortened(row);
    const [globs = [], ...before] = rows.at(-1) ?? [];
    const joined: TableRow = [[...globs, glob], ...amounts];
    const joins = JSON.stringify(before) === JSON.stringify(amounts) && lineOf(joined).length < LINE_WIDTH;
    if (joins) rows[rows.length - 1] = joined;
    else rows.push([[glob], ...amounts]);
  }
  return rows;
}

async function main(day: string): Promise<void> {
  const manifest: { readonly version: string; readonly license: string } = JSON.parse(
    await readFile(new URL(`../node_modules/${PACKAGE}/package.json`, import.meta.url), 'utf8'),
  );
  const providers = PROVIDERS.map((id) => {
    const provider = findProvider({ providerId: id });
    if (provider === undefined) throw new Error(`${PACKAGE} has no provider ${id}: update PROVIDERS.`);
    return { id, name: provider.name, prices: rowsOf(provider.models, day) };
  });
  const { version, license } = manifest;
  const table: ReleaseTableFile = {
    source: { name: PACKAGE, version, license, currency: 'USD', date: day },
    providers,
  };
  await writeFile(RELEASE_TABLE_FILE, textOfTable(table));
  const prices = providers.flatMap((provider) => provider.prices.flatMap(([globs]) => globs));
  console.log(`${prices.length} prices of ${providers.length} providers`);
}

const LINE_WIDTH = 120;
const lineOf = (row: TableRow): string => `    ${JSON.stringify(row)}`;

/** One price on a line, with its models, so that a review shows the changed ones. */
function textOfTable({ source, providers }: ReleaseTableFile): string {
  const blocks = providers.map(({ id, name, prices }) => {
    const lines = prices.map(lineOf).join(',\n');
    return `  {"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"prices":[\n${lines}\n  ]}`;
  });
  return `{"source":${JSON.stringify(source)},"providers":[\n${blocks.join(',\n')}\n]}\n`;
}

await main(process.argv[2] ?? new Date().toISOString().slice(0, 10));
