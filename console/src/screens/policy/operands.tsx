/** The operands of conditions: days, a time span, networks and a time zone. */

import { useId, useState } from 'react';
import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';
import { policies as text } from '../../text/en/policies.ts';
import { classes } from '../../ui/classes.ts';
import { ComboBox } from '../../ui/combo-box.tsx';
import fieldStyles from '../../ui/field.module.css';
import { TextField } from '../../ui/field.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { CONDITIONS } from './condition-kinds.ts';
import styles from './conditions.module.css';
import { type Clause, isTimezone } from './draft.ts';
import { DAYS, timeOf } from './hours.ts';
import { isAddress, networkWith } from './networks.ts';

export interface ClauseProps {
  readonly clause: Clause;
  readonly effect: 'allow' | 'deny';
  readonly onChange: (clause: Clause) => void;
  readonly error: string | undefined;
  readonly zone: string | undefined;
}

export function Days({ clause, onChange }: ClauseProps) {
  return (
    <ToggleButtonGroup
      aria-label={text.days}
      className={classes(fieldStyles.segments, styles.days)}
      selectionMode="multiple"
      selectedKeys={clause.operand}
      onSelectionChange={(keys) => onChange({ ...clause, operand: DAYS.filter((day) => keys.has(day)) })}
    >
      {DAYS.map((day) => (
        <ToggleButton key={day} id={day} className={fieldStyles.segment}>
          {day}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

export function Times({ clause, onChange }: ClauseProps) {
  const [start = '', end = ''] = clause.operand;
  const fault = (value: string, isEnd: boolean): string | undefined => CONDITIONS.time.entryFault(value, isEnd);
  const from = timeOf(start, false);
  const to = timeOf(end, true);
  return (
    <div className={styles.two}>
      <TextField
        label={text.start}
        value={start}
        onChange={(value) => onChange({ ...clause, operand: [value, end] })}
        error={fault(start, false)}
        hint={text.startHint}
        maxLength={5}
        isMono
      />
      <TextField
        label={text.end}
        value={end}
        onChange={(value) => onChange({ ...clause, operand: [start, value] })}
        error={fault(end, true)}
        hint={from !== undefined && to !== undefined && to < from ? text.overMidnight : text.endHint}
        maxLength={5}
        isMono
      />
    </div>
  );
}

export function Networks({ clause, onChange, error }: ClauseProps) {
  const [address, setAddress] = useState('');
  const id = useId();
  const { is, operand } = clause;
  const tried = address.trim();
  const found = networkWith(operand, tried);
  const isOdd = tried !== '' && !isAddress(tried);
  return (
    <div className={styles.two}>
      <TagInput
        label={text.networks}
        values={operand}
        onChange={(networks) => onChange({ ...clause, operand: networks })}
        check={(one) => CONDITIONS.ip_address.entryFault(one, false)}
        placeholder="10.20.0.0/16"
        hint={text.networksHint}
        error={error}
      />
      <div aria-describedby={id}>
        <TextField
          label={text.doesItMatch}
          value={address}
          onChange={setAddress}
          placeholder="10.20.14.9"
          error={isOdd ? text.noAddress : undefined}
          hint={tried === '' ? text.tryAddress : undefined}
          isMono
        />
        <p id={id} className={styles.result} aria-live="polite">
          {tried === '' || isOdd ? null : (
            <>
              <b>{(found !== undefined) === is ? text.yes : text.no}</b>{' '}
              {found === undefined ? text.isInNone(tried) : text.isIn(tried, found)},{' '}
              {(found !== undefined) === is ? text.holds : text.holdsNot}
            </>
          )}
        </p>
      </div>
    </div>
  );
}

const SHOWN_ZONES = 40;

interface ZoneProps {
  readonly value: string | undefined;
  readonly onChange: (zone: string | undefined) => void;
  readonly error: string | undefined;
  readonly zone: string | undefined;
}

export function Zone({ value, onChange, error, zone }: ZoneProps) {
  const q = (value ?? '').trim().toLowerCase();
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  const found = known.filter((name) => name.toLowerCase().replaceAll('_', ' ').includes(q.replaceAll('_', ' ')));
  return (
    <div className={styles.zone}>
      <ComboBox
        label={text.zone}
        items={found.slice(0, SHOWN_ZONES).map((name) => ({ id: name, name }))}
        typed={value ?? ''}
        onType={(typed) => onChange(typed === '' ? undefined : typed)}
        onChoose={(item) => (item === undefined ? undefined : onChange(item.id))}
        chosen={known.find((name) => name === value)}
        isFree
        says={text.noZone}
        hint={text.zoneHint(zone)}
        placeholder={zone ?? 'Europe/Berlin'}
        error={value !== undefined && !isTimezone(value) ? text.faults.timezone : error}
        isOptional
      />
    </div>
  );
}
