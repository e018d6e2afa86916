/** From when until when: the last hours or days, or two moments. */

import { useState } from 'react';
import { serverNow } from '../../api/clock.ts';
import { audit as text } from '../../text/en/audit.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import styles from './audit.module.css';
import type { AuditSearch } from './search.ts';

const HOUR_MS = 3_600_000;
const SPANS = { hour: HOUR_MS, day: 24 * HOUR_MS, week: 7 * 24 * HOUR_MS, month: 30 * 24 * HOUR_MS } as const;
const NAMES = ['hour', 'day', 'week', 'month'] as const;

interface ChooseTimeProps {
  readonly search: AuditSearch;
  readonly onChoose: (change: Pick<AuditSearch, 'from' | 'to'>) => void;
}

export function ChooseTime({ search, onChoose }: ChooseTimeProps) {
  const [from, setFrom] = useState(localOf(search.from));
  const [to, setTo] = useState(localOf(search.to));
  return (
    <Form className={styles.time} onSend={() => onChoose({ from: instantOf(from), to: instantOf(to) })}>
      <div className={styles.spans}>
        {NAMES.map((name) => (
          <Button
            key={name}
            small
            onPress={() => onChoose({ from: new Date(serverNow() - SPANS[name]).toISOString(), to: undefined })}
          >
            {text.spans[name]}
          </Button>
        ))}
      </div>
      <TextField label={text.from} type="datetime-local" value={from} onChange={setFrom} isOptional />
      <TextField label={text.to} type="datetime-local" value={to} onChange={setTo} isOptional hint={text.toSays} />
      <Button type="submit" tone="primary">
        {text.applyTime}
      </Button>
    </Form>
  );
}

/** As `datetime-local` has it, in the viewer's zone; empty: none. */
function localOf(instant: string | undefined): string {
  const at = new Date(instant ?? '');
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function instantOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}
