/** How much of a budget is left: a bar, its numbers and the time of its reset. */

import type { Budget } from '../../../../client/index.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Bar } from '../../ui/bar.tsx';
import { distance, useNow } from '../../ui/time.tsx';
import styles from './budget.module.css';
import { figureOf } from './summary.ts';

interface LeftProps {
  readonly budget: Pick<Budget, 'unit' | 'limit' | 'per' | 'state'>;
  readonly currency: string | undefined;
}

export function Left({ budget: { unit, limit, per, state }, currency }: LeftProps) {
  const now = useNow();
  if (state === undefined) return null;
  const { spent, reserved, remaining, resets_at: resetsAt } = state;
  const resets =
    resetsAt === null ? null : (
      <time dateTime={resetsAt} title={`${resetsAt.replace('T', ' ').slice(0, 16)} UTC`}>
        {`${text.resetsIn} ${distance(Date.parse(resetsAt) - now)}`}
      </time>
    );
  if (spent === null || remaining === null) {
    return (
      <span className={styles.left}>
        <small>
          {per === 'all' ? text.notShown : text.eachOwn[per]}
          {resets === null ? null : ', '}
          {resets}
        </small>
      </span>
    );
  }
  const shown = (amount: string | number): string => figureOf(unit, amount, currency);
  return (
    <span className={styles.left}>
      <b>{text.ofLimit(shown(spent), shown(limit))}</b>
      <Bar used={Number(spent)} limit={Number(limit)} reserved={Number(reserved ?? 0)} />
      <small>
        {Number(remaining) === 0 ? text.none : text.leftOf(shown(remaining))}
        {resets === null ? null : ', '}
        {resets}
      </small>
    </span>
  );
}
