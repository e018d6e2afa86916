/** The budgets of the tenant, and what is left of each. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Budget } from '../../../../client/index.ts';
import { useBudgets } from '../../api/budgets.ts';
import { useCurrency } from '../../api/prices.ts';
import { useDenied } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { type ListColumn, TwoLines } from '../../ui/list.tsx';
import { ListPage, OneOrAll } from '../../ui/list-page.tsx';
import { State, type StateTone } from '../../ui/mark.tsx';
import { Left } from '../budget/left.tsx';
import { type Fill, fillOf, limitOf, scopeOf } from '../budget/summary.ts';
import { BUDGETS_STATES } from './search.ts';

const COLUMNS: readonly ListColumn<Budget>[] = [
  { id: 'name', title: text.name, cell: (budget) => <TwoLines name={budget.name} second={scopeOf(budget)} /> },
  { id: 'state', title: text.state, cell: (budget) => <BudgetState budget={budget} /> },
  { id: 'limit', title: text.limit, cell: (budget) => <Limit budget={budget} /> },
  { id: 'action', title: text.action, rank: 'second', cell: ({ action }) => text.actions[action] },
  { id: 'left', title: text.spent, cell: (budget) => <LeftOf budget={budget} /> },
];

export function Budgets() {
  const search = useSearch({ from: '/inside/budgets' });
  const { q, state } = search;
  const navigate = useNavigate();
  return (
    <ListPage
      texts={text}
      search={search}
      create="/new-budget"
      denied={useDenied('admin:budgets')}
      filters={(set) => (
        <OneOrAll
          label={text.state}
          values={BUDGETS_STATES}
          texts={text.states}
          value={state}
          onChange={(value) => set({ state: value })}
        />
      )}
      list={useBudgets({ q, enabled: state === undefined ? undefined : state === 'enabled' })}
      idOf={({ id }) => id}
      onOpen={({ id }) => void navigate({ to: '/budgets/$id', params: { id } })}
      columns={COLUMNS}
    />
  );
}

const TONES: Readonly<Record<Fill, StateTone>> = {
  enabled: 'good',
  disabled: 'off',
  near: 'care',
  spent: 'deny',
  over: 'deny',
};

export function BudgetState({ budget }: { readonly budget: Budget }) {
  const fill = fillOf(budget);
  return <State tone={TONES[fill]}>{text.shown[fill]}</State>;
}

function Limit({ budget }: { readonly budget: Budget }) {
  return limitOf(budget, useCurrency());
}

function LeftOf({ budget }: { readonly budget: Budget }) {
  return <Left budget={budget} currency={useCurrency()} />;
}
