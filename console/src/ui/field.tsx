/** Fields of forms: each with its label, what to write, and what is wrong with what was written. */

import type { ReactNode } from 'react';
import {
  Checkbox as AriaCheckbox,
  SearchField as AriaSearchField,
  TextField as AriaTextField,
  Button,
  FieldError,
  Input,
  Label,
  Text,
  TextArea,
  ToggleButton,
  ToggleButtonGroup,
} from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { classes } from './classes.ts';
import styles from './field.module.css';
import { Icon } from './icon.tsx';

interface TextFieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly name?: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly type?: 'text' | 'email' | 'password' | 'date' | 'datetime-local';
  readonly autoComplete?: string;
  readonly isRequired?: boolean;
  readonly isOptional?: boolean;
  readonly isMono?: boolean;
  readonly isDisabled?: boolean;
  readonly autoFocus?: boolean;
  readonly placeholder?: string;
  /** More than one: a field of several lines. */
  readonly rows?: number;
  readonly maxLength?: number;
}

export function TextField(props: TextFieldProps) {
  const { label, value, onChange, hint, error, isOptional, isMono = false, placeholder, rows = 1 } = props;
  const input = { className: classes(styles.input, isMono && styles.mono), placeholder };
  return (
    <AriaTextField
      className={styles.field}
      value={value}
      onChange={onChange}
      isInvalid={error === undefined ? undefined : true}
      validationBehavior={validationBehavior(error)}
      type={props.type ?? 'text'}
      isRequired={props.isRequired}
      isDisabled={props.isDisabled}
      name={props.name}
      autoComplete={props.autoComplete}
      autoFocus={props.autoFocus}
      maxLength={props.maxLength}
    >
      <FieldLabel isOptional={isOptional}>{label}</FieldLabel>
      {rows > 1 ? <TextArea {...input} rows={rows} /> : <Input {...input} />}
      <Below hint={hint} error={error} />
    </AriaTextField>
  );
}

/**
 * While a field shows the server's refusal, the browser must not treat the field as invalid: it would not submit the
 * form again.
 */
export function validationBehavior(error: string | undefined): 'native' | 'aria' {
  return error === undefined ? 'native' : 'aria';
}

export function FieldLabel({
  children,
  isOptional,
}: {
  readonly children: ReactNode;
  readonly isOptional?: boolean | undefined;
}) {
  return (
    <Label className={styles.label}>
      {children}
      {isOptional ? <span className={styles.optional}>{common.optional}</span> : null}
    </Label>
  );
}

/** The text under a field: the error, or the hint if there is none, and why the browser does not submit the field. */
export function Below({ hint, error }: { readonly hint?: ReactNode; readonly error?: string | undefined }) {
  if (error !== undefined) return <FieldError className={styles.error}>{error}</FieldError>;
  return (
    <>
      <FieldError className={styles.error}>
        {({ validationDetails, defaultChildren }) =>
          validationDetails.valueMissing ? common.required : defaultChildren
        }
      </FieldError>
      {hint === undefined ? null : (
        <Text slot="description" className={styles.hint}>
          {hint}
        </Text>
      )}
    </>
  );
}

interface SearchFieldProps {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly autoFocus?: boolean;
  /** It chooses from a list that is open below it. */
  readonly isCombo?: boolean;
}

/** The ARIA attributes of a field whose list is always open. */
export const OPEN_COMBO = { role: 'combobox', 'aria-expanded': true, 'aria-haspopup': 'listbox' } as const;

/** Its label is read, not shown: the placeholder says what it searches. */
export function SearchField({
  label,
  placeholder,
  value,
  onChange,
  autoFocus = false,
  isCombo = false,
}: SearchFieldProps) {
  return (
    <AriaSearchField
      aria-label={label}
      value={value}
      onChange={onChange}
      className={styles.search}
      autoFocus={autoFocus}
    >
      <Icon name="search" />
      <Input className={styles.input} placeholder={placeholder} data-search="" {...(isCombo ? OPEN_COMBO : {})} />
      <Button className={styles.clear}>
        <Icon name="close" size={12} />
      </Button>
    </AriaSearchField>
  );
}

interface CheckboxProps {
  readonly children?: ReactNode;
  readonly label?: string;
  readonly isSelected?: boolean;
  readonly onChange?: (isSelected: boolean) => void;
  readonly isDisabled?: boolean;
  readonly slot?: string;
}

export function Checkbox({ children, label, isSelected, onChange, isDisabled = false, slot }: CheckboxProps) {
  return (
    <AriaCheckbox
      className={styles.check}
      isDisabled={isDisabled}
      aria-label={label}
      isSelected={isSelected}
      onChange={onChange}
      {...(slot === undefined ? {} : { slot })}
    >
      {({ isIndeterminate }) => (
        <>
          <span className={styles.box}>
            <Icon name={isIndeterminate ? 'dash' : 'check'} size={12} />
          </span>
          {children}
        </>
      )}
    </AriaCheckbox>
  );
}

interface SegmentsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly options: readonly { readonly value: T; readonly label: string }[];
}

/** One of a few choices, all of them shown. */
export function Segments<T extends string>({ label, value, onChange, options }: SegmentsProps<T>) {
  return (
    <ToggleButtonGroup
      aria-label={label}
      className={styles.segments}
      selectionMode="single"
      disallowEmptySelection
      selectedKeys={[value]}
      onSelectionChange={(keys) => {
        const chosen = options.find((option) => keys.has(option.value));
        if (chosen !== undefined) onChange(chosen.value);
      }}
    >
      {options.map((option) => (
        <ToggleButton key={option.value} id={option.value} className={styles.segment}>
          {option.label}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}
