/** The schemas of prices. Amounts are decimal texts, because no floating point touches them. */

import { type Static, Type } from 'typebox';
import { aResourceName } from '../schema/grammar.ts';
import { component, countOf, described, nullable, shownText } from '../schema/keywords.ts';
import { instant } from '../schema/resource-parts.ts';
import { closed, oneOf, searchText } from '../schema/schemas.ts';

/** As many as the bound on the values of a body admits. */
export const MAX_PRICES = 2500;

const PER = [1, 1000, 1_000_000] as const;
export type Per = (typeof PER)[number];

const amount = (description: string) =>
  Type.String({
    maxLength: 32,
    pattern: '^(0|[1-9][0-9]{0,11})(\\.[0-9]{1,15})?$',
    description,
    examples: ['2.50'],
  });

const amounts = {
  input: amount('The price of prompt tokens.'),
  output: amount('The price of tokens of the answer.'),
  cached_input: Type.Optional(
    amount('The price of prompt tokens that the upstream read from its cache. Default: `input`.'),
  ),
  cache_write: Type.Optional(
    amount('The price of prompt tokens that the upstream wrote to its cache. Default: `input`.'),
  ),
};

const models = Type.String({
  maxLength: 512,
  description: 'The name of a model, or a glob. The most specific one that matches a model counts.',
  examples: ['gpt-4o-*'],
  ...aResourceName,
});

const priceRequest = Type.Object(
  {
    models,
    ...amounts,
    per: Type.Unsafe<Per>({
      type: 'integer',
      enum: [...PER],
      description:
        'The number of tokens that cost the amounts. The price of 1,000,000 tokens may have at most 9 decimal places.',
    }),
  },
  closed,
);
export type PriceRequest = Readonly<Static<typeof priceRequest>>;

export const newPrices = component(
  'NewPrices',
  Type.Object(
    { prices: Type.Array(priceRequest, { maxItems: MAX_PRICES, description: 'The whole list.' }) },
    {
      ...closed,
      examples: [{ prices: [{ models: 'llama-*', input: '0.20', output: '0.60', per: 1_000_000 }] }],
    },
  ),
);

const Price = component(
  'Price',
  Type.Object({
    models,
    ...amounts,
    per: Type.Unsafe<1_000_000>({ type: 'integer', const: 1_000_000, description: 'The number of tokens.' }),
  }),
);
export type PriceResource = Readonly<Static<typeof Price>>;

const version = countOf('Grows by 1 with each list. 0: no list was set yet.');
const currency = Type.String({ description: 'The setting `prices.currency`.', examples: ['USD'] });

export const pricesReport = component(
  'Prices',
  Type.Object({
    version,
    currency,
    set_at: described(nullable(instant), 'The time at which the list was set. Null: no list was set yet.'),
    prices: Type.Array(Price, { description: 'In the order of `models`. A model without a price costs nothing.' }),
  }),
);
export type PricesResource = Readonly<Static<typeof pricesReport>>;

export const proposalFilters = Type.Object(
  {
    provider: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: '^[a-z0-9._-]+$',
        description: 'The id of a provider of the table. Default: all of them. The first one that has a glob counts.',
        examples: ['openai'],
      }),
    ),
    q: searchText('Any part of the glob on models, in any case.'),
  },
  closed,
);
export type ProposalQuery = Readonly<Static<typeof proposalFilters>>;

const ProposedPrice = component(
  'ProposedPrice',
  Type.Object({
    change: described(
      oneOf('added', 'changed', 'unchanged'),
      'The effect on the list in force if the price is accepted.',
    ),
    provider: shownText('The id of the provider.'),
    price: Price,
    current: Type.Unsafe<PriceResource | null>({
      anyOf: [Price, { type: 'null' }],
      description: 'The price in force for the same glob.',
    }),
    left_out: Type.Array(oneOf('tiers', 'times'), {
      description:
        'Prices of the provider that the table does not have: `tiers` are higher ones for long prompts, `times` are lower ones at some hours.',
    }),
  }),
);
export type ProposedPrice = Readonly<Static<typeof ProposedPrice>>;

export const PriceProposal = component(
  'PriceProposal',
  Type.Object({
    version,
    currency,
    source: Type.Object(
      {
        name: shownText('The package that the table was made from.'),
        version: shownText('The version of the package.'),
        license: shownText('The license of the package.'),
        currency: shownText('The currency of the proposed amounts. The server converts none.'),
        date: Type.String({ format: 'date', description: 'The day whose prices the table has.' }),
      },
      { description: 'The origin of the table.' },
    ),
    providers: Type.Array(Type.Object({ id: Type.String(), name: Type.String() }), {
      description: 'Every provider of the table.',
    }),
    data: Type.Array(ProposedPrice, { description: 'The prices that the filters select, in the order of `models`.' }),
  }),
);
export type PriceProposalReport = Readonly<Static<typeof PriceProposal>>;
