/** The budgets that count the request, each with its state and the amount that the request sets aside. */

import { Link } from '@tanstack/react-router';
import type { ExplainedBudget } from '../../../../client/index.ts';
import { useCurrency } from '../../api/prices.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Looked } from '../../ui/passage.tsx';
import { Moment } from '../../ui/time.tsx';
import { figureOf } from '../budget/summary.ts';

export function BudgetLines({ budgets }: { readonly budgets: readonly ExplainedBudget[] }) {
  return budgets.map((budget) => (
    <Looked
      key={budget.id}
      holds={budget.action === 'report' ? undefined : !budget.exceeded}
      name={
        <Link to="/budgets/$id" params={{ id: budget.id }}>
          {text.budget(budget.name)}
        </Link>
      }
    >
      <State budget={budget} />
    </Looked>
  ));
}

function State({ budget }: { readonly budget: ExplainedBudget }) {
  const currency = useCurrency();
  const { unit, limit, spent, reserved, needed, action, resets_at: resetsAt } = budget;
  const shown = (amount: string | number): string => figureOf(unit, amount, currency);
  const parts = [
    limit === null || spent === null ? text.amountHidden : text.usedOf(shown(spent), shown(limit)),
    reserved === null || Number(reserved) === 0 ? '' : text.reserved(shown(reserved)),
    text.takes(shown(needed)),
    action === 'report' ? text.onlyReports : '',
  ];
  return (
    <>
      {parts.filter((part) => part !== '').join(', ')}
      {resetsAt === null ? null : (
        <>
          , {text.resets} <Moment time={resetsAt} />
        </>
      )}
    </>
  );
}
