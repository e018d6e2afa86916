/** All of /v1/iam. */

import { withPatch } from '../http/patch.ts';
import type { Route } from '../http/route.ts';
import { keyRoutes } from './api-keys/routes.ts';
import { auditRoutes } from './audit/routes.ts';
import { recentDecisionRoutes } from './decisions/recent-routes.ts';
import { decisionRoutes } from './decisions/routes.ts';
import { directoryRoutes } from './directory/routes.ts';
import type { DirectoryTestParts } from './directory/test.ts';
import type { ExplainParts } from './explain/question.ts';
import { explainRoutes } from './explain/routes.ts';
import { permissionRoutes } from './permissions/routes.ts';
import { policyRoutes } from './policies/routes.ts';
import { roleRoutes } from './roles/routes.ts';
import { tenantRoutes } from './tenants/routes.ts';
import type { MeteringParts } from './usage/parts.ts';
import { usageRoutes } from './usage/routes.ts';
import { type UserParts, userRoutes } from './users/routes.ts';

export type IamParts = UserParts & ExplainParts & MeteringParts & DirectoryTestParts;

export function iamRoutes(parts: IamParts): readonly Route[] {
  const routes = withPatch([
    ...userRoutes(parts),
    ...roleRoutes(parts),
    ...policyRoutes(parts),
    ...tenantRoutes(parts),
    ...keyRoutes(parts),
    ...auditRoutes(parts),
    ...usageRoutes(parts),
    ...decisionRoutes(parts),
    ...recentDecisionRoutes(parts),
    ...explainRoutes(parts),
    ...directoryRoutes(parts),
  ]);
  return [...routes, ...permissionRoutes(parts, routes)];
}
