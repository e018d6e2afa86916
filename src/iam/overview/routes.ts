/** /v1/iam/overview */

import { shows } from '../../http/answers.ts';
import { callerEndpoint, type Endpoint } from '../../http/endpoint.ts';
import { type OverviewParts, readOverview } from './read.ts';
import { Overview } from './schemas.ts';

export function overviewEndpoints(parts: OverviewParts): readonly Endpoint[] {
  return [
    callerEndpoint({
      method: 'GET',
      path: '/v1/iam/overview',
      operationId: 'getOverview',
      summary:
        "Show the tenant's tokens of the month, its latest denials and changes, and the users, rules and keys that need care. Each part needs the permission of its own endpoint, and is absent without it.",
      permission: 'any',
      answers: shows('The parts that the caller may read.', Overview),
      run: ({ caller }) => readOverview(parts, caller),
    }),
  ];
}
