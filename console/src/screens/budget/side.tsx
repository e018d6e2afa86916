/** Beside the editor: the keys and models that have spent the budget, and its record. */

import type { ReactNode } from 'react';
import type { Budget } from '../../../../client/index.ts';
import { useCurrency } from '../../api/prices.ts';
import { Principal } from '../../api/principal.tsx';
import { budgets as text } from '../../text/en/budgets.ts';
import { Facts } from '../../ui/facts.tsx';
import { Id, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Moment } from '../../ui/time.tsx';
import { BudgetState } from '../budgets/budgets.tsx';
import styles from './budget.module.css';
import { figureOf } from './summary.ts';

export function Side({ budget }: { readonly budget: Budget }) {
  const currency = useCurrency();
  const { unit, state, per } = budget;
  const shown = (amount: string | number): string => figureOf(unit, amount, currency);
  return (
    <>
      {per === 'all' ? null : (
        <Sums
          title={per === 'key' ? text.byKey : text.byUser}
          rows={(state?.callers ?? []).map(({ id, spent }) => ({
            id,
            name: <Principal type={per === 'key' ? 'api_key' : 'user'} id={id} />,
            amount: shown(spent),
          }))}
        />
      )}
      {per !== 'all' || state?.by_key === undefined ? null : (
        <Sums
          title={text.byKey}
          rows={state.by_key.map(({ key_id: key, user_id: user, spent }) => ({
            id: `${key} ${user}`,
            name: <SpentBy apiKey={key} user={user} />,
            amount: shown(spent),
          }))}
        />
      )}
      {state?.by_model === undefined ? null : (
        <Sums
          title={text.byModel}
          rows={state.by_model.map(({ model, spent }) => ({
            id: model,
            name: model === '' ? text.noModel : <code>{model}</code>,
            amount: shown(spent),
          }))}
        />
      )}
      <section>
        <SectionHead title={text.record} />
        <Facts
          facts={[
            { name: text.state, value: <BudgetState budget={budget} /> },
            { name: text.created, value: <Moment time={budget.created_at} /> },
            { name: text.changed, value: <Moment time={budget.updated_at} /> },
            { name: text.id, value: <Id value={budget.id} /> },
          ]}
        />
      </section>
    </>
  );
}

function SpentBy({ apiKey, user }: { readonly apiKey: string | null; readonly user: string | null }) {
  if (apiKey !== null) return <Principal type="api_key" id={apiKey} />;
  return user === null ? text.noKeyUsed : <Principal type="user" id={user} />;
}

interface Sum {
  readonly id: string;
  readonly name: ReactNode;
  readonly amount: string;
}

function Sums({ title, rows }: { readonly title: string; readonly rows: readonly Sum[] }) {
  return (
    <section aria-label={title}>
      <SectionHead title={title} />
      {rows.length === 0 ? (
        <Small>{text.nothingSpent}</Small>
      ) : (
        <ul className={styles.sums}>
          {rows.map(({ id, name, amount }) => (
            <li key={id}>
              <span>{name}</span>
              <span>{amount}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
