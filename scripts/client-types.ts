/** `npm run client:types`: writes client/types.ts, the types of the API as its description has them. */

import { writeFile } from 'node:fs/promises';
import { type AuthHttpParts, authRoutes } from '../src/http/auth/routes.ts';
import { type IamParts, iamRoutes } from '../src/http/iam/routes.ts';
import { jwksRoute, type PublishedKeys } from '../src/http/jwks.ts';
import { describeApi } from '../src/http/openapi/document.ts';
import { openApiRoute } from '../src/http/openapi/route.ts';
import type { Route } from '../src/http/route.ts';
import { typesOfDocument } from './lib/openapi-types.ts';
import type { JsonObject } from './lib/schema-types.ts';

export const FILE = new URL('../client/types.ts', import.meta.url);
const HEAD = '/** The types of the API. Made by `npm run client:types` from its description; not edited by hand. */\n';

/** @throws TypesError when the description holds what the generator does not know */
export function clientTypes(): string {
  const routes = apiRoutes();
  const document: JsonObject = JSON.parse(JSON.stringify(describeApi([...routes, openApiRoute(routes)])));
  return typesOfDocument(document, HEAD);
}

/** As data: none of them runs, so there is nothing behind them. */
function apiRoutes(): readonly Route[] {
  const nothing = '{}';
  const auth: AuthHttpParts = JSON.parse(nothing);
  const iam: IamParts = JSON.parse(nothing);
  const keys: PublishedKeys = JSON.parse(nothing);
  return [...authRoutes(auth), ...iamRoutes(iam), jwksRoute(keys)];
}

if (import.meta.main) await writeFile(FILE, clientTypes());
