/** The budget of a request in answers: the member of a denial, and the header that shows how much is left. */

import { formatMoney } from '../domain/money.ts';
import type { BudgetMember } from '../domain/problem-details.ts';
import type { BudgetUnit } from '../domain/records.ts';
import type { BudgetState } from '../metering/admission.ts';
import { headerName } from './header-options.ts';

export const BUDGET_HEADER = headerName('x-postern-budget-remaining');

/** @param showsAmounts whether the caller may see how much was spent */
export function budgetMember(budget: BudgetState, showsAmounts: boolean): BudgetMember {
  const { id, name, unit, period, resetsAt } = budget;
  const member = { id, name, period, resets_at: resetsAt ?? null };
  if (!showsAmounts) return member;
  const { limit, spent, reserved, remaining } = budget;
  return {
    ...member,
    unit,
    limit: amountOf(unit, limit),
    ...(spent === undefined ? {} : { spent: amountOf(unit, spent) }),
    ...(reserved === undefined ? {} : { reserved: amountOf(unit, reserved) }),
    ...(remaining === undefined ? {} : { remaining: amountOf(unit, remaining) }),
  };
}

/** Returns the amount as the API shows it: money as a decimal text. */
function amountOf(unit: BudgetUnit, amount: number): number | string {
  return unit === 'money' ? formatMoney(BigInt(amount)) : amount;
}

/**
 * Returns the value of the header: `"team-a"; remaining=12.50; unit=money; reset=3600`, with the seconds until the
 * amount is reset. The name is a string of structured fields (RFC 9651, section 3.3.3), or a display string (3.3.8) if
 * it has other characters than printable ASCII: `%"caf%c3%a9"`.
 */
export function budgetHeaderValue(
  { name, unit, remaining, resetsAt }: Pick<BudgetState, 'name' | 'unit' | 'remaining' | 'resetsAt'>,
  showsAmounts: boolean,
  nowMs: number,
): string {
  const amount =
    showsAmounts && remaining !== undefined ? `; remaining=${amountOf(unit, remaining)}; unit=${unit}` : '';
  const seconds = resetsAt === undefined ? undefined : Math.max(0, Math.ceil((Date.parse(resetsAt) - nowMs) / 1000));
  return `${quotedName(name)}${amount}${seconds === undefined ? '' : `; reset=${seconds}`}`;
}

const PRINTABLE_ASCII = /^[ -~]*$/;

function quotedName(name: string): string {
  if (PRINTABLE_ASCII.test(name)) return `"${name.replaceAll(/["\\]/g, '\\$&')}"`;
  const escaped = (byte: number): string =>
    byte < 0x20 || byte > 0x7e || byte === 0x25 || byte === 0x22
      ? `%${byte.toString(16).padStart(2, '0')}`
      : String.fromCharCode(byte);
  return `%"${Array.from(Buffer.from(name), escaped).join('')}"`;
}
