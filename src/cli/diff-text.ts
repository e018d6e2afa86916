/** The text of the difference that a setup makes: one line for each box of requests. */

import type { DifferenceBox } from '../iam/explain/difference-schemas.ts';
import type { SetupDifference, TenantDifference } from '../iam/setup/rules-difference.ts';
import { printable } from './apply-plan.ts';

export function differenceText({ tenants, left }: SetupDifference): string {
  const shown = tenants.filter(({ unchanged, management }) => !unchanged || !management.unchanged);
  const rest = left === 0 ? '' : `A global policy changes, and ${left} more tenants were not compared.\n`;
  if (shown.length === 0) {
    return `\nDifference: no request of the users and keys of today would be newly allowed or denied.\n${rest}`;
  }
  return `\n${shown.map(tenantText).join('\n')}${rest}`;
}

function tenantText({ tenant, affected, complete, reason = '', ...lists }: TenantDifference): string {
  const lines = [
    ...lists.newly_allowed.map((box) => boxText('newly allowed', box)),
    ...lists.management.newly_allowed.map((box) => boxText('newly allowed, management', box)),
    ...lists.newly_denied.map((box) => boxText('newly denied', box)),
    ...lists.management.newly_denied.map((box) => boxText('newly denied, management', box)),
  ];
  const incomplete = complete ? '' : `  not complete: ${printable(reason)}\n`;
  return `Difference in ${tenant}: ${counted(affected)} affected.\n${lines.join('')}${incomplete}`;
}

function counted({ users, keys }: { readonly users: number; readonly keys: number }): string {
  return `${users} ${users === 1 ? 'user' : 'users'} and ${keys} ${keys === 1 ? 'key' : 'keys'}`;
}

function boxText(change: string, box: DifferenceBox): string {
  const { principals, permissions, recent_requests: requests } = box;
  const { roles, without_roles: without } = principals;
  const parts = [
    `${change}: ${permissions.join(' or ')}${box.self ? ' on oneself' : ''}`,
    namesText(box),
    ...(box.addresses === undefined ? [] : [`from ${box.addresses.join(', ')}`]),
    ...(box.week === undefined ? [] : [`at ${box.week.join(', ')} in ${box.timezone ?? 'UTC'}`]),
    `for ${counted(principals)}${roles.length === 0 ? '' : ` with ${roles.join(', ')}`}${without.length === 0 ? '' : ` without ${without.join(', ')}`}`,
    `by the ${box.by_kind} ${box.by}`,
    ...(requests === null || requests === 0 ? [] : [`${requests} requests in 7 days`]),
  ];
  return `  ${printable(parts.filter((part) => part !== '').join('; '))}\n`;
}

function namesText({ resources, except }: DifferenceBox): string {
  const of = (names: DifferenceBox['resources']): string =>
    Object.entries(names)
      .flatMap(([kind, list = []]) => list.map((name) => `${kind}/${name}`))
      .join(', ');
  const [inside, outside] = [of(resources), of(except)];
  if (inside === '') return '';
  return `on ${inside}${outside === '' ? '' : ` except ${outside}`}`;
}
