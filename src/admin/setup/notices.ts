/** What roles and policies of a set-up say without any effect: the same notices as the API's. */

import type { CatalogParts } from '../permissions/catalog.ts';
import { patternNotices, policyNotices } from '../permissions/notices.ts';
import type { SetupError } from './read.ts';
import type { Setup, WantedPolicy, WantedRole } from './setup.ts';

/** Returns the notices in the order of the document, each with a JSON pointer into it. */
export function setupNotices(parts: CatalogParts, { globalPolicies = [], tenants }: Setup): readonly SetupError[] {
  const ofRole = ({ at, permissions }: WantedRole) => placed(at, patternNotices(parts, permissions, '/permissions'));
  const ofPolicy = ({ at, actions, appliesTo, attachedRoles }: WantedPolicy) =>
    placed(at, policyNotices(parts, { actions, applies_to: appliesTo, attached_roles: attachedRoles }));
  return [
    ...globalPolicies.flatMap(ofPolicy),
    ...tenants.flatMap(({ roles = [], policies = [] }) => [...roles.flatMap(ofRole), ...policies.flatMap(ofPolicy)]),
  ];
}

function placed(at: string, notices: readonly SetupError[]): readonly SetupError[] {
  return notices.map(({ path, message }) => ({ path: `${at}${path}`, message }));
}
