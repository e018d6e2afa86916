/** A short list of named texts. A row that is empty does not count. */

import { useState } from 'react';
import { TextField as AriaTextField, Input } from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { classes } from './classes.ts';
import fieldStyles from './field.module.css';
import { Icon } from './icon.tsx';
import styles from './pairs-field.module.css';

export interface Pair {
  readonly name: string;
  readonly value: string;
}

interface PairsFieldProps {
  readonly label: string;
  /** In the order of their names. */
  readonly pairs: readonly Pair[];
  readonly onChange: (pairs: readonly Pair[]) => void;
  readonly atMost: number;
  /** Characters. */
  readonly maxName: number;
  readonly maxValue: number;
  readonly hint?: string;
  readonly error?: string | undefined;
}

interface Row extends Pair {
  readonly id: number;
}

const EMPTY: Pair = { name: '', value: '' };
let lastId = 0;

function rowOf({ name, value }: Pair): Row {
  lastId++;
  return { id: lastId, name, value };
}

/** The pairs that are not empty, in the order of their names. */
export function pairsOf(rows: readonly Pair[]): readonly Pair[] {
  return rows
    .filter(({ name, value }) => name !== '' || value !== '')
    .map(({ name, value }) => ({ name, value }))
    .sort((one, other) => (one.name < other.name ? -1 : one.name > other.name ? 1 : 0));
}

export function PairsField({ label, pairs, onChange, atMost, maxName, maxValue, hint, error }: PairsFieldProps) {
  const [rows, setRows] = useState(() => pairs.map(rowOf));
  // Pairs that come from elsewhere, such as another caller's change, take the place of the rows.
  const isOwn = JSON.stringify(pairsOf(rows)) === JSON.stringify(pairs);
  const [elsewhere, setElsewhere] = useState(pairs);
  if (!isOwn && elsewhere !== pairs) {
    setElsewhere(pairs);
    setRows(pairs.map(rowOf));
  }
  const change = (next: readonly Row[]): void => {
    const changed = pairsOf(next);
    setRows([...next]);
    setElsewhere(changed);
    onChange(changed);
  };
  const set = (id: number, part: Partial<Pair>): void =>
    change(rows.map((row) => (row.id === id ? { ...row, ...part } : row)));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      role="group"
      aria-label={label}
      className={fieldStyles.field}
      data-fault={error === undefined ? undefined : ''}
    >
      <span className={fieldStyles.label} aria-hidden="true">
        {label}
        <span className={fieldStyles.optional}>{common.optional}</span>
      </span>
      {rows.map(({ id, name, value }, index) => (
        <div key={id} className={styles.row}>
          <Part
            label={common.pairName(index + 1)}
            value={name}
            onChange={(text) => set(id, { name: text })}
            maxLength={maxName}
          />
          <Part
            label={common.pairValue(index + 1)}
            value={value}
            onChange={(text) => set(id, { value: text })}
            maxLength={maxValue}
          />
          <Button
            tone="quiet"
            square
            label={common.removeOf(name === '' ? common.pairName(index + 1) : name)}
            onPress={() => change(rows.filter((row) => row.id !== id))}
          >
            <Icon name="close" />
          </Button>
        </div>
      ))}
      {rows.length >= atMost ? null : (
        <div>
          <Button small onPress={() => setRows([...rows, rowOf(EMPTY)])}>
            <Icon name="plus" />
            {common.addPair}
          </Button>
        </div>
      )}
      {error === undefined ? (
        <span className={fieldStyles.hint}>{hint}</span>
      ) : (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      )}
    </div>
  );
}

interface PartProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (text: string) => void;
  readonly maxLength: number;
}

function Part({ label, value, onChange, maxLength }: PartProps) {
  return (
    <AriaTextField aria-label={label} value={value} onChange={onChange} maxLength={maxLength} autoComplete="off">
      <Input className={classes(fieldStyles.input, fieldStyles.mono)} placeholder={label} />
    </AriaTextField>
  );
}
