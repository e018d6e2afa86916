/** Notices about parts of a setup that have no effect. The API has the same notices. */

import type { CatalogParts } from '../permissions/catalog.ts';
import { BINDS_NO_ONE, type Notice, patternNotices, policyNotices } from '../permissions/notices.ts';
import type { PlanAction } from './action.ts';
import type { WantedPolicy } from './policies.ts';
import type { Setup, SetupError } from './read.ts';
import type { WantedRole } from './roles.ts';

interface SetupNotice extends SetupError {
  readonly kind: Notice['kind'];
}

/** Returns the notices in the order of the document, each with a JSON pointer into it. */
export function setupNotices(parts: CatalogParts, { globalPolicies = [], tenants }: Setup): readonly SetupNotice[] {
  const ofRole = ({ at, permissions = [] }: WantedRole) =>
    placed(at, patternNotices(parts, permissions, '/permissions'));
  const ofPolicy = ({ at, actions = [], applies_to = 'roles', attached_roles: roles }: WantedPolicy) =>
    placed(
      at,
      policyNotices(parts, {
        actions,
        // If the document does not name the roles, only the database knows the audience.
        applies_to: roles === undefined ? 'everyone' : applies_to,
        attached_roles: roles ?? [],
      }),
    );
  return [
    ...globalPolicies.flatMap(ofPolicy),
    ...tenants.flatMap(({ roles = [], policies = [] }) => [...roles.flatMap(ofRole), ...policies.flatMap(ofPolicy)]),
  ];
}

/** Returns notices about planned policies that apply to no principal, because the document names no role for them. */
export function unboundNotices(
  { globalPolicies = [], tenants }: Setup,
  actions: readonly PlanAction[],
): readonly SetupNotice[] {
  const placeOf = ({ tenant, name }: PlanAction): WantedPolicy | undefined => {
    const among = tenant === undefined ? globalPolicies : tenants.find(({ key }) => key === tenant)?.policies;
    return among?.find((policy) => policy.key === name);
  };
  return actions.flatMap((action) => {
    const isUnbound = action.changes.some(({ member, after }) => member === 'applies_to' && after === 'roles');
    if (action.type !== 'policy' || action.verb !== 'create' || !isUnbound) return [];
    const wanted = placeOf(action);
    return wanted !== undefined && wanted.attached_roles === undefined ? placed(wanted.at, [BINDS_NO_ONE]) : [];
  });
}

function placed(at: string, notices: readonly Notice[]): readonly SetupNotice[] {
  return notices.map(({ kind, path, message }) => ({ kind, path: `${at}${path}`, message }));
}
