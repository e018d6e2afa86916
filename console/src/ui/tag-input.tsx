/**
 * A list of short texts: Enter or a comma adds what is typed, Backspace in the empty field removes the last. The form is
 * not sent while the typed text has a fault.
 */

import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from 'react';
import { TextField as AriaTextField, Input } from 'react-aria-components';
import { flushSync } from 'react-dom';
import { common } from '../text/en/common.ts';
import { Chip } from './chip.tsx';
import fieldStyles from './field.module.css';
import { Below, FieldLabel } from './field.tsx';
import styles from './tag-input.module.css';

interface TagInputProps {
  readonly label: string;
  readonly values: readonly string[];
  readonly onChange: (values: readonly string[]) => void;
  /** Returns what is wrong with a text; undefined: nothing. */
  readonly check: (text: string) => string | undefined;
  readonly placeholder?: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
}

export function TagInput({ label, values, onChange, check, placeholder, hint, error }: TagInputProps) {
  const [typed, setTyped] = useState('');
  const text = typed.trim();
  const fault = text === '' ? undefined : check(text);
  const add = (): void => {
    if (text === '' || fault !== undefined) return;
    if (!values.includes(text)) onChange([...values, text]);
    setTyped('');
  };
  const input = useRef<HTMLInputElement>(null);
  const addBefore = useEffectEvent((event: Event): void => {
    flushSync(add);
    if (fault === undefined) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    input.current?.focus();
  });
  // The form sends what is typed too. React calls the handler of the form afterwards, as rendered with the new values.
  useEffect(() => {
    const form = input.current?.form;
    const listen = (event: Event): void => addBefore(event);
    form?.addEventListener('submit', listen, { capture: true });
    return () => form?.removeEventListener('submit', listen, { capture: true });
  }, []);
  return (
    <AriaTextField
      className={fieldStyles.field}
      value={typed}
      onChange={setTyped}
      onBlur={add}
      validationBehavior="aria"
      isInvalid={fault !== undefined || error !== undefined}
      onKeyDown={(event) => {
        if (event.key === 'Backspace' && typed === '') onChange(values.slice(0, -1));
        else if ((event.key === 'Enter' || event.key === ',') && typed !== '') {
          event.preventDefault();
          add();
        } else event.continuePropagation();
      }}
    >
      <FieldLabel>{label}</FieldLabel>
      <div className={styles.tags}>
        {values.map((value) => (
          <Chip
            key={value}
            label={common.removeOf(value)}
            onRemove={() => onChange(values.filter((other) => other !== value))}
          >
            {value}
          </Chip>
        ))}
        <Input ref={input} className={styles.input} placeholder={values.length === 0 ? placeholder : undefined} />
      </div>
      <Below hint={hint} error={fault ?? error} />
    </AriaTextField>
  );
}
