/** A field for a whole number, or for none. */

import { NumberField as AriaNumberField, Input } from 'react-aria-components';
import { classes } from './classes.ts';
import styles from './field.module.css';
import { Below, FieldLabel } from './field.tsx';

interface NumberFieldProps {
  readonly label: string;
  /** Undefined: the field is empty. */
  readonly value: number | undefined;
  readonly onChange: (value: number | undefined) => void;
  readonly hint?: string;
  readonly error?: string | undefined;
  readonly placeholder?: string;
  readonly isOptional?: boolean;
}

/** From 0 up; thousands are grouped when the field is left. */
export function NumberField({ label, value, onChange, hint, error, placeholder, isOptional }: NumberFieldProps) {
  return (
    <AriaNumberField
      className={styles.field}
      value={value ?? Number.NaN}
      onChange={(next) => onChange(Number.isNaN(next) ? undefined : next)}
      minValue={0}
      maxValue={Number.MAX_SAFE_INTEGER}
      formatOptions={{ maximumFractionDigits: 0 }}
      isInvalid={error !== undefined}
      isWheelDisabled
    >
      <FieldLabel isOptional={isOptional}>{label}</FieldLabel>
      <Input className={classes(styles.input, styles.number)} placeholder={placeholder} />
      <Below hint={hint} error={error} />
    </AriaNumberField>
  );
}
