/** The tables of docs/api.md: endpoints of management and error codes. */

import { ERROR_CODES, ERRORS } from '../../../src/domain/errors.ts';
import type { Endpoint } from '../../../src/http/endpoint.ts';
import { describedEndpoints } from '../../../src/iam/api-routes.ts';
import { table, tableCell } from './markdown.ts';

export function endpointTable(): string {
  const rows = describedEndpoints()
    .filter(({ path }) => path.startsWith('/v1/iam/'))
    .map((endpoint) => [requestOf(endpoint), endpoint.needs ?? 'any credential', actionOf(endpoint)]);
  return table(['request', 'permission', 'what it does'], rows);
}

export function errorTable(): string {
  const rows = ERROR_CODES.map((code) => [
    String(ERRORS[code].status),
    `\`${code}\``,
    tableCell(ERRORS[code].explanation),
  ]);
  return table(['status', 'code', 'when'], rows);
}

function requestOf({ method, path }: Endpoint): string {
  return `\`${method} ${path.replace(/:(\w+)/g, '{$1}')}\``;
}

function actionOf({ method, summary }: Endpoint): string {
  return method === 'PATCH' ? 'The same as `PUT`.' : tableCell(summary);
}
