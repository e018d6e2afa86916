/** The fullest budgets, with what is left of each. */

import { Link } from '@tanstack/react-router';
import type { Budget } from '../../../../client/index.ts';
import { useBudgets } from '../../api/budgets.ts';
import { useCurrency } from '../../api/prices.ts';
import { spend as text } from '../../text/en/spend.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Left } from '../budget/left.tsx';
import { scopeOf } from '../budget/summary.ts';
import styles from './spend.module.css';

const READ = 100;
const SHOWN = 6;

export function BudgetsLeft() {
  const list = useBudgets({ enabled: true, limit: READ });
  const currency = useCurrency();
  const rows = list.kind === 'loaded' ? list.rows.toSorted((a, b) => fullness(b) - fullness(a)).slice(0, SHOWN) : [];
  const isPart = list.kind === 'loaded' && list.more !== undefined;
  return (
    <section className={styles.budgets}>
      <SectionHead
        title={text.budgets}
        small={rows.length < 2 ? undefined : isPart ? text.budgetsOf(READ) : text.budgetsSay}
        link={<Link to="/budgets">{text.allBudgets}</Link>}
      />
      {list.kind === 'failed' ? <Problem error={list.error} onRetry={list.retry} /> : null}
      {list.kind === 'loading' ? <div aria-busy="true" /> : null}
      {list.kind === 'loaded' && rows.length === 0 ? (
        <p className={styles.none}>
          {text.noBudgets} <Link to="/new-budget">{text.createBudget}</Link>
        </p>
      ) : null}
      <ul className={styles.cards}>
        {rows.map((budget) => (
          <li key={budget.id}>
            <Link to="/budgets/$id" params={{ id: budget.id }}>
              {budget.name}
            </Link>
            <small>{scopeOf(budget)}</small>
            <Left budget={budget} currency={currency} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The spent part of the limit. A budget whose callers have their own amounts comes last. */
function fullness({ limit, state }: Budget): number {
  if (state === undefined || state.spent === null) return -1;
  return Number(limit) === 0 ? 1 : Number(state.spent) / Number(limit);
}
