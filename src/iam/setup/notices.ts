/** Notices about parts of a setup that have no effect. The API has the same notices about roles and policies. */

import type { CatalogParts } from '../permissions/catalog.ts';
import { BINDS_NO_ONE, type Notice, patternNotices, policyNotices } from '../permissions/notices.ts';
import type { PlanAction } from './action.ts';
import type { Setup, SetupError } from './read.ts';
import type { WantedPolicy, WantedRole } from './rules.ts';

interface SetupNotice extends SetupError {
  readonly kind: Notice['kind'] | 'without_secret';
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

const WITHOUT_SECRET = {
  kind: 'without_secret',
  message: 'This webhook has no secret, so it sends nothing until `postern webhook rotate` gives it one.',
} as const;

/**
 * Returns notices about planned policies that apply to no principal, because the document names no role for them, and
 * about planned webhooks, because a document has no secret.
 */
export function planNotices(
  { globalPolicies = [], tenants }: Setup,
  actions: readonly PlanAction[],
): readonly SetupNotice[] {
  return actions.flatMap((action): readonly SetupNotice[] => {
    const { type, verb, name } = action;
    const among = tenants.find(({ key }) => key === action.tenant);
    if (verb === 'create' && type === 'policy' && isUnbound(action)) {
      const wanted = (action.tenant === undefined ? globalPolicies : among?.policies)?.find(({ key }) => key === name);
      return wanted !== undefined && wanted.attached_roles === undefined ? placed(wanted.at, [BINDS_NO_ONE]) : [];
    }
    if (verb !== 'create' || type !== 'webhook') return [];
    const wanted = among?.webhooks?.find(({ key }) => key === name);
    return wanted === undefined ? [] : [{ ...WITHOUT_SECRET, path: wanted.at }];
  });
}

function isUnbound({ changes }: PlanAction): boolean {
  return changes.some(({ member, after }) => member === 'applies_to' && after === 'roles');
}

function placed(at: string, notices: readonly Notice[]): readonly SetupNotice[] {
  return notices.map(({ kind, path, message }) => ({ kind, path: `${at}${path}`, message }));
}
