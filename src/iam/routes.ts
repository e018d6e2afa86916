/** All of /v1/iam. */

import type { Endpoint } from '../http/endpoint.ts';
import { withPatch } from '../http/patch.ts';
import { keyEndpoints } from './api-keys/routes.ts';
import { auditEndpoints } from './audit/routes.ts';
import { budgetEndpoints } from './budgets/routes.ts';
import { decisionEndpoints, recentDecisionEndpoints } from './decisions/routes.ts';
import { directoryEndpoints } from './directory/routes.ts';
import type { DirectoryTestParts } from './directory/test.ts';
import type { ExplainParts } from './explain/resolve.ts';
import { explainEndpoints } from './explain/routes.ts';
import type { IssuerParts } from './issuers/parts.ts';
import { issuerEndpoints } from './issuers/routes.ts';
import { overviewEndpoints } from './overview/routes.ts';
import { permissionEndpoints } from './permissions/routes.ts';
import { policyEndpoints } from './policies/routes.ts';
import type { PriceParts } from './prices/prices.ts';
import { priceEndpoints } from './prices/routes.ts';
import { roleEndpoints } from './roles/routes.ts';
import { tenantEndpoints } from './tenants/routes.ts';
import type { MeteringParts } from './usage/parts.ts';
import { usageEndpoints } from './usage/routes.ts';
import { type UserParts, userEndpoints } from './users/routes.ts';
import type { WebhookParts } from './webhooks/attempt.ts';
import { webhookEndpoints } from './webhooks/routes.ts';

export type IamParts = UserParts &
  ExplainParts &
  MeteringParts &
  DirectoryTestParts &
  IssuerParts &
  WebhookParts &
  PriceParts;

export function iamEndpoints(parts: IamParts): readonly Endpoint[] {
  const routes = withPatch([
    ...userEndpoints(parts),
    ...roleEndpoints(parts),
    ...policyEndpoints(parts),
    ...tenantEndpoints(parts),
    ...keyEndpoints(parts),
    ...issuerEndpoints(parts),
    ...budgetEndpoints(parts),
    ...webhookEndpoints(parts),
    ...auditEndpoints(parts),
    ...usageEndpoints(parts),
    ...priceEndpoints(parts),
    ...decisionEndpoints(parts),
    ...recentDecisionEndpoints(parts),
    ...explainEndpoints(parts),
    ...directoryEndpoints(parts),
    ...overviewEndpoints(parts),
  ]);
  return [...routes, ...permissionEndpoints(parts, routes)];
}
