/** Budgets in words. */

import type { Budget } from '../../../../client/index.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { money } from '../../ui/money.ts';
import { compact } from '../../ui/number.ts';
import { TARGETS, type Unit } from './draft.ts';

const SHOWN = 3;

/** Returns an amount with its unit: `$12.50`, `1.2M tokens`. */
export function amountOf(unit: Unit, amount: string | number, currency: string | undefined): string {
  return text.summary[unit](unit === 'money' ? money(String(amount), currency) : compact(Number(amount)));
}

/** Returns an amount without the name of its unit. */
export function figureOf(unit: Unit, amount: string | number, currency: string | undefined): string {
  return unit === 'money' ? money(String(amount), currency) : compact(Number(amount));
}

/** Returns the limit with its period: `$100.00 a month`, `500 requests an hour for each key`. */
export function limitOf({ unit, limit, period, per }: Budget, currency: string | undefined): string {
  return [amountOf(unit, limit, currency), text.every[period], text.perSays[per]]
    .filter((part) => part !== '')
    .join(' ');
}

/** Returns whose requests count, and for which models: `roles developer, models gpt-*`. */
export function scopeOf({ applies_to: to, models }: Pick<Budget, 'applies_to' | 'models'>): string {
  const target = TARGETS.find((one) => to[one] !== undefined) ?? 'tenant';
  const parts = [
    target === 'tenant'
      ? text.forTenant
      : target === 'keys'
        ? text.forKeys((to.keys ?? []).length)
        : target === 'users'
          ? text.forUsers((to.users ?? []).length)
          : target === 'roles'
            ? text.forRoles((to.roles ?? []).length, shortList(to.roles ?? []))
            : text.forMetadata(shortList(Object.entries(to.metadata ?? {}).map(([name, value]) => `${name}=${value}`))),
    ...(models === null ? [] : [text.onlyModels(shortList(models))]),
  ];
  return parts.join(', ');
}

function shortList(names: readonly string[]): string {
  return names.length <= SHOWN
    ? words.list(names)
    : text.andMore(names.slice(0, SHOWN).join(', '), names.length - SHOWN);
}

export type Fill = 'enabled' | 'disabled' | 'near' | 'spent' | 'over';

const NEAR = 0.8;

/** Returns how full a budget is. A budget whose callers have their own amounts counts as enabled. */
export function fillOf({ enabled, limit, state }: Budget): Fill {
  if (!enabled) return 'disabled';
  if (state === undefined || state.spent === null) return 'enabled';
  const [of, spent] = [Number(limit), Number(state.spent)];
  if (spent > of) return 'over';
  if (spent >= of) return 'spent';
  return spent >= NEAR * of ? 'near' : 'enabled';
}
