/** Names with values, such as metadata: one row each, and a row to add another. */

import { useRef, useState } from 'react';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { Small } from './mark.tsx';
import styles from './pairs-field.module.css';

interface PairsFieldProps {
  readonly label: string;
  readonly nameLabel: string;
  readonly valueLabel: string;
  readonly addLabel: string;
  readonly hint: string;
  readonly pairs: Readonly<Record<string, string>>;
  /** Not called with a row whose name is empty or used twice. */
  readonly onChange: (pairs: Readonly<Record<string, string>>) => void;
  readonly repeated: string;
  readonly error?: string | undefined;
  readonly maxPairs: number;
  readonly maxName: number;
  readonly maxValue: number;
}

interface Line {
  readonly id: number;
  readonly name: string;
  readonly value: string;
}

/** The caller gives it another `key` when other pairs are to be edited. */
export function PairsField({ pairs, onChange, error, maxPairs, maxName, maxValue, ...texts }: PairsFieldProps) {
  const nextId = useRef(0);
  const lineOf = (name: string, value: string): Line => ({ id: nextId.current++, name, value });
  const [lines, setLines] = useState<readonly Line[]>(() => Object.entries(pairs).map(([name, value]) => lineOf(name, value)));
  const change = (next: readonly Line[]): void => {
    setLines(next);
    onChange(Object.fromEntries(next.filter(({ name }) => name !== '').map(({ name, value }) => [name, value])));
  };
  const set = (id: number, part: Partial<Line>): void =>
    change(lines.map((line) => (line.id === id ? { ...line, ...part } : line)));
  return (
    <fieldset className={styles.pairs}>
      <legend>
        {texts.label} <span>{common.optional}</span>
      </legend>
      {lines.map(({ id, name, value }, index) => (
        <div key={id} className={styles.line}>
          <TextField
            label={`${texts.nameLabel} ${index + 1}`}
            value={name}
            onChange={(text) => set(id, { name: text })}
            error={name !== '' && lines.some((other) => other.id < id && other.name === name) ? texts.repeated : undefined}
            maxLength={maxName}
            isMono
          />
          <TextField
            label={`${texts.valueLabel} ${index + 1}`}
            value={value}
            onChange={(text) => set(id, { value: text })}
            maxLength={maxValue}
          />
          <Button
            small
            tone="quiet"
            label={common.removeOf(name === '' ? `${texts.nameLabel} ${index + 1}` : name)}
            onPress={() => change(lines.filter((line) => line.id !== id))}
          >
            {common.remove}
          </Button>
        </div>
      ))}
      <div>
        <Button
          small
          disabledReason={lines.length < maxPairs ? undefined : texts.hint}
          onPress={() => setLines([...lines, lineOf('', '')])}
        >
          {texts.addLabel}
        </Button>
      </div>
      <Small>{texts.hint}</Small>
      {error === undefined ? null : <p role="alert">{error}</p>}
    </fieldset>
  );
}
