/** The rest of a budget in its current period. */

import type { Budget } from '../../../../client/index.ts';
import { useCurrency } from '../../api/prices.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Note, Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import styles from './budget.module.css';
import { Left } from './left.tsx';
import { figureOf } from './summary.ts';

export function Now({ budget }: { readonly budget: Budget }) {
  const currency = useCurrency();
  const { unit, limit, state } = budget;
  const isOver = state !== undefined && state.spent !== null && Number(state.spent) > Number(limit);
  const reserved = state?.reserved ?? 0;
  return (
    <section aria-label={text.now} className={styles.now}>
      <SectionHead title={text.now} />
      <Left budget={budget} currency={currency} />
      {Number(reserved) === 0 ? null : <Small>{text.reserved(figureOf(unit, reserved, currency))}</Small>}
      {isOver ? <Note tone="care">{text.over}</Note> : null}
      {state?.resets_at === null ? <Small>{text.neverResets}</Small> : null}
    </section>
  );
}
