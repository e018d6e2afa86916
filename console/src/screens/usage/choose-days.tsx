/** The days that are shown in place of a month. */

import { useState } from 'react';
import { usage as text } from '../../text/en/usage.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import { type Days, lastDays, lengthOf, MAX_DAYS } from './month.ts';
import styles from './usage.module.css';

const SPANS = [7, 30, 90, 365] as const;

interface ChooseDaysProps {
  readonly now: number;
  readonly days: Days;
  readonly onChoose: (days: Days) => void;
}

export function ChooseDays({ now, days, onChoose }: ChooseDaysProps) {
  const [from, setFrom] = useState(days.from);
  const [to, setTo] = useState(days.to);
  const length = lengthOf({ from, to });
  const wrong =
    Number.isNaN(length) || length < 1 ? text.daysBackwards : length > MAX_DAYS ? text.daysMany(MAX_DAYS) : undefined;
  return (
    <Form className={styles.choose} fault={wrong} onSend={() => onChoose({ from, to })}>
      <div className={styles.spans}>
        {SPANS.map((span) => (
          <Button key={span} small onPress={() => onChoose(lastDays(span, now))}>
            {text.lastDays(span)}
          </Button>
        ))}
      </div>
      <TextField label={text.from} type="date" value={from} onChange={setFrom} isRequired />
      <TextField label={text.to} type="date" value={to} onChange={setTo} hint={text.toSays} isRequired />
      <Button type="submit" tone="primary" disabledReason={wrong}>
        {text.showDays}
      </Button>
    </Form>
  );
}
