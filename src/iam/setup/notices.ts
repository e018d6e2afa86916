/** What roles and policies of a set-up say without any effect: the same notices as the API's. */

import type { CatalogParts } from '../permissions/catalog.ts';
import { BINDS_NO_ONE, type Notice, patternNotices, policyNotices } from '../permissions/notices.ts';
import type { SetupError } from './read.ts';
import type { Setup, WantedPolicy, WantedRole } from './setup.ts';
import type { Step } from './step.ts';

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
  steps: readonly Step[],
): readonly SetupNotice[] {
  const placeOf = ({ tenant, name }: Step): WantedPolicy | undefined => {
    const among = tenant === undefined ? globalPolicies : tenants.find(({ id }) => id === tenant)?.policies;
    return among?.find((policy) => policy.name === name);
  };
  return steps.flatMap((step) => {
    const isUnbound = step.changes.some(({ member, after }) => member === 'applies_to' && after === 'roles');
    if (step.thing !== 'policy' || step.verb !== 'create' || !isUnbound) return [];
    const wanted = placeOf(step);
    return wanted?.attachedRoles === undefined && wanted !== undefined ? placed(wanted.at, [BINDS_NO_ONE]) : [];
  });
}

function placed(at: string, notices: readonly Notice[]): readonly SetupNotice[] {
  return notices.map(({ kind, path, message }) => ({ kind, path: `${at}${path}`, message }));
}
