/** What roles and policies of a set-up say without any effect: the same notices as the API's. */

import type { CatalogParts } from '../permissions/catalog.ts';
import { BINDS_NO_ONE, type Notice, patternNotices, policyNotices } from '../permissions/notices.ts';
import type { PlanAction } from './action.ts';
import type { SetupError } from './read.ts';
import type { Setup, WantedPolicy, WantedRole } from './setup.ts';

export interface SetupNotice extends SetupError {
  readonly kind: Notice['kind'];
}

/** Returns the notices in the order of the document, each with a JSON pointer into it. */
export function setupNotices(parts: CatalogParts, { globalPolicies = [], tenants }: Setup): readonly SetupNotice[] {
  const ofRole = ({ at, permissions = [] }: WantedRole) =>
    placed(at, patternNotices(parts, permissions, '/permissions'));
  const ofPolicy = ({ at, actions = [], appliesTo, attachedRoles }: WantedPolicy) =>
    placed(
      at,
      policyNotices(parts, {
        actions,
        // Whom a policy binds whose roles the document does not name, the database knows.
        applies_to: attachedRoles === undefined ? 'everyone' : (appliesTo ?? 'roles'),
        attached_roles: attachedRoles ?? [],
      }),
    );
  return [
    ...globalPolicies.flatMap(ofPolicy),
    ...tenants.flatMap(({ roles = [], policies = [] }) => [...roles.flatMap(ofRole), ...policies.flatMap(ofPolicy)]),
  ];
}

/** Returns notices of the policies that a plan makes and that bind no one, because the document names no role for them. */
export function unboundNotices(
  { globalPolicies = [], tenants }: Setup,
  actions: readonly PlanAction[],
): readonly SetupNotice[] {
  const placeOf = ({ tenant, name }: PlanAction): WantedPolicy | undefined => {
    const among = tenant === undefined ? globalPolicies : tenants.find(({ id }) => id === tenant)?.policies;
    return among?.find((policy) => policy.name === name);
  };
  return actions.flatMap((action) => {
    const isUnbound = action.changes.some(({ member, after }) => member === 'applies_to' && after === 'roles');
    if (action.type !== 'policy' || action.verb !== 'create' || !isUnbound) return [];
    const wanted = placeOf(action);
    return wanted?.attachedRoles === undefined && wanted !== undefined ? placed(wanted.at, [BINDS_NO_ONE]) : [];
  });
}

function placed(at: string, notices: readonly Notice[]): readonly SetupNotice[] {
  return notices.map(({ kind, path, message }) => ({ kind, path: `${at}${path}`, message }));
}
