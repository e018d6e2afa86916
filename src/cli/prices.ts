/** `postern prices`: the prices of models, for the operator. */

import { parseDocument } from 'yaml';
import { present } from '../domain/objects.ts';
import type { PriceRule } from '../domain/records.ts';
import { validatorOf } from '../http/validation.ts';
import { invalidFields } from '../iam/caller/refusals.ts';
import { importPrices } from '../iam/prices/prices.ts';
import { changeOf, selectPrices } from '../iam/prices/proposal.ts';
import { readReleaseTable } from '../iam/prices/release-table.ts';
import { byGlob, parsePrices, priceResource } from '../iam/prices/rules.ts';
import { newPrices } from '../iam/prices/schemas.ts';
import { readPrices } from '../store/price-lists.ts';
import { readInput } from './apply-file.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, UsageError } from './arguments.ts';
import { NO_CACHE, withStore } from './with-store.ts';

/** Prints the version and the currency, and one line for each price. */
export async function pricesListCommand(args: Arguments): Promise<number> {
  await withStore(args, async ({ db }, { config }) => {
    const list = await readPrices(db.knex);
    const of = list.setAt === undefined ? 'no list was set yet' : `set at ${list.setAt.toISOString()}`;
    write(`Version ${list.version}, ${of}. ${config.prices.currency} for 1,000,000 tokens.`);
    for (const price of list.prices) write(priceText(price));
  });
  return 0;
}

/**
 * Prints how prices differ from the list in force, and with `--apply` sets them. The exit code is 1 if another list was
 * set while the command ran.
 */
export async function pricesImportCommand(args: Arguments): Promise<number> {
  const [file, ...others] = args.words;
  if (others.length > 0) throw new UsageError('Give at most one file.');
  const [provider, q] = [args.value('provider'), args.value('models')];
  if (file !== undefined && (provider ?? q) !== undefined)
    throw new UsageError('--provider and --models select prices of the table of the release. Omit them with a file.');
  const replaces = args.flag('replace');
  return withStore(args, async ({ db }, { config }) => {
    const { currency } = config.prices;
    const prices = file === undefined ? await tablePrices(currency, provider, q) : await filePrices(file);
    const list = await readPrices(db.knex);
    const changes = differenceOf(list.prices, prices, replaces);
    for (const line of changes) write(line);
    const same = prices.length - changes.filter((line) => !line.startsWith('-')).length;
    write(`${changes.length} changes, ${same} prices as before, in ${currency} for 1,000,000 tokens.`);
    if (changes.length === 0) return 0;
    if (!args.flag('apply')) {
      write('Nothing was changed. Add --apply to set these prices.');
      return 0;
    }
    const set = await importPrices({ db, ...NO_CACHE }, { prices, replaces, seen: list.version });
    if (set === undefined) {
      process.stderr.write(
        'Another list of prices was set while the command ran. Nothing was changed. Run it again.\n',
      );
      return 1;
    }
    write(`Version ${set.version} is in force. Running servers apply it within a second.`);
    return 0;
  });
}

async function tablePrices(
  currency: string,
  provider: string | undefined,
  q: string | undefined,
): Promise<readonly PriceRule[]> {
  const table = await readReleaseTable();
  const { source, providers } = table;
  if (provider !== undefined && !providers.some(({ id }) => id === provider)) {
    throw new UsageError(`The table has no provider ${provider}. It has ${providers.map(({ id }) => id).join(', ')}.`);
  }
  if (source.currency !== currency) {
    throw new UsageError(
      `The table of the release is in ${source.currency}, and prices.currency is ${currency}. Give a file with amounts in ${currency}.`,
    );
  }
  write(`Prices of ${source.name} ${source.version} of ${source.date}. Compare them with those of your contracts.`);
  return selectPrices(table, present({ provider, q }));
}

const validate = validatorOf(newPrices);

/** Reads a file in JSON or YAML with the members of `PUT /v1/iam/prices`. */
async function filePrices(file: string): Promise<readonly PriceRule[]> {
  const document = parseDocument(await readInput(file), { prettyErrors: false });
  const [error] = document.errors;
  if (error !== undefined) throw new Error(`${file} is not valid JSON or YAML (${error.code}).`);
  const checked = validate(document.toJS({ maxAliasCount: 0 }), true);
  if (checked.kind === 'invalid') throw invalidFields(checked.errors);
  return parsePrices(checked.value.prices);
}

function differenceOf(list: readonly PriceRule[], prices: readonly PriceRule[], replaces: boolean): readonly string[] {
  const [current, next] = [byGlob(list), byGlob(prices)];
  const removed = replaces ? list.filter(({ models }) => !next.has(models)) : [];
  return [
    ...removed.map((price) => `- ${priceText(price)}`),
    ...prices.flatMap((price) => {
      const before = current.get(price.models);
      switch (changeOf(price, before)) {
        case 'added':
          return [`+ ${priceText(price)}`];
        case 'changed':
          return [`~ ${priceText(price)}  before: ${before === undefined ? '' : amountsText(before)}`];
        default:
          return [];
      }
    }),
  ];
}

function priceText(price: PriceRule): string {
  return `${printable(price.models)}  ${amountsText(price)}`;
}

function amountsText(price: PriceRule): string {
  const { input, output, cached_input: cached, cache_write: written } = priceResource(price);
  const ofCache = [
    ...(cached === undefined ? [] : [`cached ${cached}`]),
    ...(written === undefined ? [] : [`cache write ${written}`]),
  ];
  return [`input ${input}`, `output ${output}`, ...ofCache].join(', ');
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
