/** /v1/iam/prices: the prices of models, which all tenants share. */

import { shows, TAGGED } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import type { AdminParts } from '../caller/caller.ts';
import { getPrices, type PriceParts, setPrices } from './prices.ts';
import { proposePrices } from './proposal.ts';
import { newPrices, PriceProposal, pricesReport, proposalFilters } from './schemas.ts';

export function priceEndpoints(parts: AdminParts & PriceParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/prices',
      operationId: 'getPrices',
      summary: 'Show the prices of models that are in force.',
      permission: 'usage:read',
      answers: shows('The list in force.', pricesReport, TAGGED),
      run: () => getPrices(parts),
    }),
    callerEndpoint({
      method: 'PUT',
      path: '/v1/iam/prices',
      operationId: 'setPrices',
      summary:
        'Replace the prices of models, as a platform administrator. Requests that the server admits later cost the new prices. Send If-Match, so that the list replaces no list that you have not seen.',
      permission: 'admin:tenants',
      body: newPrices,
      answers: shows('The list in force.', pricesReport, TAGGED),
      refusals: ['precondition_failed'],
      run: ({ caller, body }) => setPrices(parts, caller, body.prices),
    }),
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/prices/proposal',
      operationId: 'proposePrices',
      summary:
        'Compare the table of prices of this release with the list in force, as a platform administrator. Nothing applies until an administrator sets the prices.',
      permission: 'admin:tenants',
      query: proposalFilters,
      answers: shows('The table, filtered, with the price in force for each glob.', PriceProposal),
      run: ({ query }) => proposePrices(parts, query),
    }),
  ];
}
