/** The list of prices: reading it, and setting another one. */

import type { PriceRule } from '../../domain/records.ts';
import { compareTexts } from '../../domain/text.ts';
import { addPrices, lockPrices, readPrices, type StoredPriceList } from '../../store/price-lists.ts';
import type { Transaction } from '../../store/transaction.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { invalidField } from '../caller/refusals.ts';
import { OPERATOR } from '../change/audit-row.ts';
import { type AuditDraft, change, changeAsSystem } from '../change/change.ts';
import { byGlob, mergePrices, parsePrices, priceResource, samePrice } from './rules.ts';
import { MAX_PRICES, type PriceRequest, type PriceResource, type PricesResource } from './schemas.ts';

/** The parts of use cases of prices and amounts of money, besides the common ones. */
export interface PriceParts {
  readonly prices: { readonly currency: string };
}

const ENTRY = { action: 'prices.update', target: undefined } as const;
/** The largest number of prices that an audit row shows. The list itself stays in the database. */
const MAX_AUDITED = 500;

export async function getPrices(parts: Pick<AdminParts, 'db'> & PriceParts): Promise<PricesResource> {
  return pricesResource(parts, await readPrices(parts.db.knex));
}

/** @throws Refusal `invalid_field`, `precondition_failed` */
export async function setPrices(
  parts: AdminParts & PriceParts,
  caller: Caller,
  requests: readonly PriceRequest[],
): Promise<PricesResource> {
  return change(parts, caller, ENTRY, async ({ trx, audit, checkPreconditions }) => {
    await lockPrices(trx);
    const before = await readPrices(trx);
    checkPreconditions(pricesResource(parts, before));
    return pricesResource(parts, await writePrices(trx, audit, before, parsePrices(requests)));
  });
}

interface Import {
  readonly prices: readonly PriceRule[];
  /** True: prices that are not imported are removed. */
  readonly replaces: boolean;
  /** The version that the operator has seen. */
  readonly seen: number;
}

/**
 * Imports prices for the operator. There is no caller whose permissions count.
 * @returns undefined if another list was set after the one that the operator has seen
 */
export async function importPrices(
  parts: Pick<AdminParts, 'db' | 'feed' | 'flush'>,
  { prices, replaces, seen }: Import,
): Promise<StoredPriceList | undefined> {
  return changeAsSystem(parts, OPERATOR, ENTRY, async (trx, audit) => {
    await lockPrices(trx);
    const before = await readPrices(trx);
    if (before.version !== seen) {
      audit.each = [];
      return undefined;
    }
    const list = replaces ? prices : mergePrices(before.prices, prices);
    if (list.length > MAX_PRICES) {
      throw invalidField('/prices', `The list would have ${list.length} prices, and ${MAX_PRICES} is the maximum.`);
    }
    return writePrices(trx, audit, before, list);
  });
}

async function writePrices(
  trx: Transaction,
  audit: AuditDraft,
  before: StoredPriceList,
  prices: readonly PriceRule[],
): Promise<StoredPriceList> {
  const inOrder = prices.toSorted((a, b) => compareTexts(a.models, b.models));
  const after = await addPrices(trx, before, inOrder);
  // The list belongs to the platform.
  audit.tenant = undefined;
  audit.before = audited(before, after);
  audit.after = audited(after, before);
  return after;
}

/** Returns the prices of a list that the other one does not have. */
function audited(list: StoredPriceList, other: StoredPriceList): object {
  const others = byGlob(other.prices);
  const differing = list.prices.filter((price) => {
    const same = others.get(price.models);
    return same === undefined || !samePrice(price, same);
  });
  return {
    version: list.version,
    prices: list.prices.length,
    differing: differing.length,
    shown: differing.slice(0, MAX_AUDITED).map(priceResource),
  };
}

function pricesResource({ prices: { currency } }: PriceParts, list: StoredPriceList): PricesResource {
  const prices: PriceResource[] = list.prices.map(priceResource);
  return { version: list.version, currency, set_at: list.setAt ?? null, prices };
}
