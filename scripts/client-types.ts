/** `npm run client:types`: writes client/types.ts, the types of the API as its description has them. */

import { writeFile } from 'node:fs/promises';
import { describeApi } from '../src/http/openapi/document.ts';
import { openApiEndpoint } from '../src/http/openapi/endpoint.ts';
import { describedEndpoints } from '../src/iam/api-routes.ts';
import { typesOfDocument } from './lib/openapi-types.ts';
import type { JsonObject } from './lib/schema-types.ts';

export const FILE = new URL('../client/types.ts', import.meta.url);
const HEAD = '/** The types of the API. Made by `npm run client:types` from its description; not edited by hand. */\n';

/** @throws TypesError when the description holds what the generator does not know */
export function clientTypes(): string {
  const routes = describedEndpoints();
  const document: JsonObject = JSON.parse(JSON.stringify(describeApi([...routes, openApiEndpoint(routes)])));
  return typesOfDocument(document, HEAD);
}

if (import.meta.main) await writeFile(FILE, clientTypes());
