/** A list of rows of one shape, each with its own fields. */

import { type ReactNode, useRef } from 'react';
import { Button } from './button.tsx';
import { classes } from './classes.ts';
import fieldStyles from './field.module.css';
import { Icon } from './icon.tsx';
import styles from './rows-field.module.css';
import { useRowIds } from './use-row-ids.ts';

interface RowsFieldProps<R> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly onChange: (rows: readonly R[]) => void;
  /** A row that is added. */
  readonly start: R;
  readonly adding: string;
  readonly atMost: number;
  readonly nameOfRow: (n: number) => string;
  readonly removeRow: (n: number) => string;
  /** The grid of one row. */
  readonly rowLook: string | undefined;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** The fields of one row. The button that removes the row follows them. */
  readonly children: (row: R, onChange: (row: R) => void) => ReactNode;
}

export function RowsField<R>(props: RowsFieldProps<R>) {
  const { label, rows, onChange, start, adding, atMost, hint, error } = props;
  const { ids, removeId } = useRowIds(rows.length);
  const whole = useRef<HTMLDivElement>(null);
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      ref={whole}
      role="group"
      aria-label={label}
      className={styles.rows}
      data-fault={error === undefined ? undefined : ''}
    >
      <span className={fieldStyles.label} aria-hidden="true">
        {label}
      </span>
      {rows.map((row, index) => (
        <fieldset
          key={ids[index]}
          className={classes(styles.row, props.rowLook)}
          aria-label={props.nameOfRow(index + 1)}
        >
          {props.children(row, (next) => onChange(rows.map((one, at) => (at === index ? next : one))))}
          <Button
            tone="quiet"
            square
            label={props.removeRow(index + 1)}
            onPress={() => {
              removeId(index);
              // The pressed button goes away, and the one that adds stays.
              whole.current?.querySelector<HTMLElement>('[data-adds] button')?.focus();
              onChange(rows.filter((_, at) => at !== index));
            }}
          >
            <Icon name="close" />
          </Button>
        </fieldset>
      ))}
      {rows.length >= atMost ? null : (
        <div data-adds="">
          <Button small onPress={() => onChange([...rows, start])}>
            <Icon name="plus" size={12} />
            {adding}
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
