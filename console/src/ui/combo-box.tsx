/** A field that suggests: what the server found for the typed text, or a short list of its own. */

import type { ReactNode } from 'react';
import { ComboBox as AriaComboBox, Button, Input, ListBox, ListBoxItem, Popover } from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { classes } from './classes.ts';
import combo from './combo-box.module.css';
import styles from './field.module.css';
import { Below, FieldLabel, validationBehavior } from './field.tsx';
import { Icon } from './icon.tsx';
import overlay from './overlay.module.css';

export interface ComboItem {
  readonly id: string;
  readonly name: string;
  readonly small?: string | undefined;
}

interface ComboBoxProps {
  readonly label: string;
  readonly items: readonly ComboItem[];
  /** The text in the field. */
  readonly typed: string;
  readonly onType: (typed: string) => void;
  /** Called with an item of the list, and with undefined when the text names none of them any more. */
  readonly onChoose: (item: ComboItem | undefined) => void;
  readonly chosen?: string | undefined;
  /** Any text is taken, not only an item of the list. */
  readonly isFree?: boolean;
  /** Said in place of the items. */
  readonly says?: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly placeholder?: string;
  readonly isMono?: boolean;
  readonly isOptional?: boolean;
  readonly isRequired?: boolean;
}

/** Shows `items` without a search of its own; the caller passes the matching ones. */
export function ComboBox(props: ComboBoxProps) {
  const { label, items, typed, onType, onChoose, chosen, isFree = false, says, hint, error, isMono = false } = props;
  return (
    <AriaComboBox
      className={styles.field}
      items={items}
      inputValue={typed}
      onInputChange={onType}
      selectedKey={chosen ?? null}
      onSelectionChange={(key) => onChoose(key === null ? undefined : items.find(({ id }) => id === key))}
      allowsCustomValue={isFree}
      allowsEmptyCollection={says !== undefined}
      menuTrigger="focus"
      isInvalid={error === undefined ? undefined : true}
      validationBehavior={validationBehavior(error)}
      isRequired={props.isRequired}
    >
      <FieldLabel isOptional={props.isOptional}>{label}</FieldLabel>
      <div className={combo.box}>
        <Input className={classes(styles.input, isMono && styles.mono)} placeholder={props.placeholder} />
        <Button className={combo.open} aria-label={common.all}>
          <Icon name="down" />
        </Button>
      </div>
      <Below hint={hint} error={error} />
      <Popover className={combo.popover} offset={4}>
        <ListBox<ComboItem>
          className={classes(overlay.menu, combo.list)}
          renderEmptyState={() => (says === undefined ? null : <p className={combo.says}>{says}</p>)}
        >
          {({ id, name, small }) => (
            <ListBoxItem id={id} textValue={name} className={classes(overlay.item, isMono && styles.mono)}>
              {name}
              {small === undefined ? null : <small>{small}</small>}
            </ListBoxItem>
          )}
        </ListBox>
      </Popover>
    </AriaComboBox>
  );
}
