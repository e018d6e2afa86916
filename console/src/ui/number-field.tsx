/** A field for a whole number, or for none. */

import { useState } from 'react';
import { TextField as AriaTextField, Input } from 'react-aria-components';
import { classes } from './classes.ts';
import styles from './field.module.css';
import { Below, FieldLabel, validationBehavior } from './field.tsx';
import { count } from './number.ts';

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

const MAX_DIGITS = 15;

/**
 * A field for integers from 0. Each keystroke changes the value. The field groups thousands while it has no focus, and
 * accepts only digits.
 */
export function NumberField({ label, value, onChange, hint, error, placeholder, isOptional }: NumberFieldProps) {
  const [hasFocus, setFocus] = useState(false);
  return (
    <AriaTextField
      className={styles.field}
      value={value === undefined ? '' : hasFocus ? String(value) : count(value)}
      onChange={(text) => {
        const digits = text.replaceAll(/[\s,_']/g, '');
        if (/^\d*$/.test(digits) && digits.length <= MAX_DIGITS) onChange(digits === '' ? undefined : Number(digits));
      }}
      onFocusChange={setFocus}
      inputMode="numeric"
      autoComplete="off"
      isInvalid={error === undefined ? undefined : true}
      validationBehavior={validationBehavior(error)}
    >
      <FieldLabel isOptional={isOptional}>{label}</FieldLabel>
      <Input className={classes(styles.input, styles.number)} placeholder={placeholder} />
      <Below hint={hint} error={error} />
    </AriaTextField>
  );
}
