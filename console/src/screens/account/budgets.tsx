/** The budgets that count the caller's own requests. */

import type { OwnBudget } from '../../../../client/index.ts';
import { useCurrency } from '../../api/prices.ts';
import { account as text } from '../../text/en/account.ts';
import { Facts } from '../../ui/facts.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Left } from '../budget/left.tsx';
import styles from './account.module.css';

export function Budgets({ budgets }: { readonly budgets: readonly OwnBudget[] }) {
  const currency = useCurrency();
  return (
    <section>
      <SectionHead title={text.budgets} />
      <div className={styles.budgets}>
        <Facts
          facts={budgets.map((budget) => ({
            name: budget.name,
            value: <Left budget={leftOf(budget)} currency={currency} />,
          }))}
        />
      </div>
    </section>
  );
}

/** An amount that the caller may not see is absent. */
function leftOf({ unit, limit = 0, spent, reserved, remaining, resets_at: resetsAt }: OwnBudget) {
  const state = { spent: spent ?? null, reserved: reserved ?? null, remaining: remaining ?? null };
  return { unit, limit, per: 'all' as const, state: { starts_at: null, resets_at: resetsAt, ...state } };
}
