/** The operand of `weekly_hours`: drawn in the grid, or written as windows where it has parts of hours. */

import { useId, useState } from 'react';
import { policies as text } from '../../text/en/policies.ts';
import { Segments } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { CONDITIONS } from './condition-kinds.ts';
import type { Clause } from './draft.ts';
import { hoursOf, windowsOf } from './hours.ts';
import styles from './week-grid.module.css';
import { WeekGrid } from './week-grid.tsx';

interface WeeklyHoursProps {
  readonly clause: Clause;
  readonly effect: 'allow' | 'deny';
  readonly onChange: (clause: Clause) => void;
  readonly zone: string | undefined;
}

export function WeeklyHours({ clause, effect, onChange, zone }: WeeklyHoursProps) {
  const says = useId();
  const [form, setForm] = useState<'grid' | 'text'>('grid');
  const { is, operand } = clause;
  const hours = hoursOf(operand);
  const meaning = is ? 'is' : 'isNot';
  return (
    <>
      <div>
        <Segments
          label={text.hoursAs}
          value={hours === undefined ? 'text' : form}
          onChange={setForm}
          options={[
            { value: 'grid', label: text.asGrid },
            { value: 'text', label: text.asText },
          ]}
        />
      </div>
      {hours === undefined || form === 'text' ? (
        <>
          <TagInput
            label={text.windows}
            values={operand}
            onChange={(windows) => onChange({ ...clause, operand: windows })}
            check={(one) => CONDITIONS.weekly_hours.entryFault(one, false)}
            placeholder="Mon-Fri 08:00-18:00"
            hint={text.windowsHint}
          />
          {hours === undefined ? <Small>{text.notWhole}</Small> : null}
        </>
      ) : (
        <>
          <WeekGrid
            hours={hours}
            onChange={(drawn) => onChange({ ...clause, operand: windowsOf(drawn) })}
            lit={text.lit[meaning][effect]}
            dark={text.dark[meaning][effect]}
            litDenies={is && effect === 'deny'}
            zone={zone}
            describedBy={says}
          />
          <p id={says} className={styles.says} aria-live="polite">
            {operand.length === 0 ? text.darkWeek : operand.join(', ')}
          </p>
        </>
      )}
    </>
  );
}
