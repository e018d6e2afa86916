/** A month to step through, or any days. */

import { usage as text } from '../../text/en/usage.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { Filter } from '../../ui/filter.tsx';
import { Icon } from '../../ui/icon.tsx';
import { ChooseDays } from './choose-days.tsx';
import { type Days, daysName, daysOfMonth, monthName, monthOf, shifted } from './month.ts';
import type { UsageSearch } from './search.ts';
import styles from './usage.module.css';

type Span = Pick<UsageSearch, 'period' | 'from' | 'to'>;

/** The days of the address, by default those of the current month. @param now the time that the tenant's clock shows */
export function daysIn({ period, from, to }: Span, now: number): Days {
  if (from !== undefined && to !== undefined) return { from, to };
  return daysOfMonth(period ?? monthOf(now));
}

interface ChooseSpanProps {
  readonly now: number;
  readonly search: Span;
  readonly days: Days;
  readonly onChange: (change: Span) => void;
}

export function ChooseSpan({ now, search: { period: chosen, from, to }, days, onChange }: ChooseSpanProps) {
  const period = chosen ?? monthOf(now);
  const isMonth = from === undefined || to === undefined;
  return (
    <>
      {isMonth ? (
        <div className={styles.month}>
          <Button tone="quiet" square label={text.before} onPress={() => onChange({ period: shifted(period, -1) })}>
            <span className={styles.back}>
              <Icon name="right" />
            </span>
          </Button>
          <strong aria-live="polite">{monthName(period)}</strong>
          <Button tone="quiet" square label={text.after} onPress={() => onChange({ period: shifted(period, 1) })}>
            <Icon name="right" />
          </Button>
        </div>
      ) : (
        <Chip label={text.clearDays} onRemove={() => onChange({ from: undefined, to: undefined })}>
          {daysName(days)}
        </Chip>
      )}
      <Filter label={text.days} title={text.chooseDays}>
        {(close) => (
          <ChooseDays
            now={now}
            days={days}
            onChoose={(wanted) => {
              close();
              onChange(wanted);
            }}
          />
        )}
      </Filter>
    </>
  );
}
