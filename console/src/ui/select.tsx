/** One of several choices, in a list that opens. */

import { Select as AriaSelect, Button, ListBox, ListBoxItem, Popover, SelectValue } from 'react-aria-components';
import { classes } from './classes.ts';
import combo from './combo-box.module.css';
import styles from './field.module.css';
import { FieldLabel } from './field.tsx';
import { Icon } from './icon.tsx';
import overlay from './overlay.module.css';

interface SelectProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly options: readonly { readonly value: T; readonly label: string }[];
  readonly isMono?: boolean;
  /** The label is only for readers of the screen. */
  readonly isLabelHidden?: boolean;
}

export function Select<T extends string>({
  label,
  value,
  onChange,
  options,
  isMono = false,
  isLabelHidden = false,
}: SelectProps<T>) {
  return (
    <AriaSelect
      className={styles.field}
      {...(isLabelHidden ? { 'aria-label': label } : {})}
      selectedKey={value}
      onSelectionChange={(key) => {
        const chosen = options.find((option) => option.value === key);
        if (chosen !== undefined) onChange(chosen.value);
      }}
    >
      {isLabelHidden ? null : <FieldLabel>{label}</FieldLabel>}
      <Button className={classes(styles.input, styles.select, isMono && styles.mono)}>
        <SelectValue />
        <Icon name="down" />
      </Button>
      <Popover className={combo.popover} offset={4}>
        <ListBox className={classes(overlay.menu, combo.list)}>
          {options.map((option) => (
            <ListBoxItem
              key={option.value}
              id={option.value}
              textValue={option.label}
              className={classes(overlay.item, isMono && styles.mono)}
            >
              {option.label}
            </ListBoxItem>
          ))}
        </ListBox>
      </Popover>
    </AriaSelect>
  );
}
