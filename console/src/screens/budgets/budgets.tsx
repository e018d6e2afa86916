/** The budgets of the tenant, and what is left of each. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Budget } from '../../../../client/index.ts';
import { useBudgets } from '../../api/budgets.ts';
import { useCurrency } from '../../api/prices.ts';
import { useDenied } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Button } from '../../ui/button.tsx';
import { SearchField, Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { State, type StateTone } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { useTyped } from '../../ui/use-typed.ts';
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
  const denied = useDenied('admin:budgets');
  const { q: searched, state } = useSearch({ from: '/inside/budgets' });
  const navigate = useNavigate({ from: '/budgets' });
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const list = useBudgets({ q: searched, enabled: state === undefined ? undefined : state === 'enabled' });
  const isFiltered = searched !== undefined || state !== undefined;
  const showAll = (): void => {
    setTyped('');
    void navigate({ search: (before) => ({ ...before, q: undefined, state: undefined }) });
  };
  const create = (
    <Button tone="primary" disabledReason={denied} onPress={() => void navigate({ to: '/new-budget', search: {} })}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} says={text.says} actions={create}>
      <Tools>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Segments
          label={text.state}
          value={state ?? 'all'}
          onChange={(value) =>
            void navigate({ search: (before) => ({ ...before, state: value === 'all' ? undefined : value }) })
          }
          options={(['all', ...BUDGETS_STATES] as const).map((value) => ({ value, label: text.states[value] }))}
        />
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={({ id }) => id}
        onOpen={({ id }) => void navigate({ to: '/budgets/$id', params: { id } })}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={COLUMNS}
      />
    </Page>
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
