/** All of /v1/iam. */

import type { DirectoryTestParts } from '../../admin/directory/test.ts';
import type { ExplainParts } from '../../admin/explain/question.ts';
import type { MeteringParts } from '../../admin/usage/parts.ts';
import { withPatch } from '../patch.ts';
import type { Route } from '../route.ts';
import { keyRoutes } from './api-keys.ts';
import { auditRoutes } from './audit.ts';
import { decisionRoutes } from './decisions.ts';
import { directoryRoutes } from './directory.ts';
import { explainRoutes } from './explain.ts';
import { permissionRoutes } from './permissions.ts';
import { policyRoutes } from './policies.ts';
import { recentDecisionRoutes } from './recent-decisions.ts';
import { roleRoutes } from './roles.ts';
import { tenantRoutes } from './tenants.ts';
import { usageRoutes } from './usage.ts';
import { type UserParts, userRoutes } from './users.ts';

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
