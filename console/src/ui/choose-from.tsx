/**
 * A search field over a short list. The arrow keys move in the list during typing. The caller passes the matching
 * items.
 */

import type { ReactNode } from 'react';
import { Autocomplete, ListBox, ListBoxItem } from 'react-aria-components';
import { classes } from './classes.ts';
import field from './field.module.css';
import { SearchField } from './field.tsx';
import styles from './filter.module.css';
import overlay from './overlay.module.css';

export interface ChooseItem {
  readonly id: string;
  readonly name: string;
  readonly small?: string | undefined;
}

interface ChooseFromProps {
  readonly label: string;
  readonly placeholder: string;
  readonly typed: string;
  readonly onType: (typed: string) => void;
  readonly items: readonly ChooseItem[];
  readonly onChoose: (id: string) => void;
  /** Said in place of the items. */
  readonly empty: ReactNode;
  readonly isMono?: boolean;
}

export function ChooseFrom({
  label,
  placeholder,
  typed,
  onType,
  items,
  onChoose,
  empty,
  isMono = false,
}: ChooseFromProps) {
  return (
    <Autocomplete inputValue={typed} onInputChange={onType}>
      <SearchField label={label} placeholder={placeholder} value={typed} onChange={onType} autoFocus isCombo />
      <ListBox
        aria-label={label}
        className={styles.choices}
        items={items}
        renderEmptyState={() => <p className={styles.none}>{empty}</p>}
        onAction={(id) => onChoose(String(id))}
      >
        {({ id, name, small }) => (
          <ListBoxItem
            id={id}
            textValue={`${name} ${small ?? ''}`}
            className={classes(overlay.item, isMono && field.mono)}
          >
            {name}
            {small === undefined ? null : <small>{small}</small>}
          </ListBoxItem>
        )}
      </ListBox>
    </Autocomplete>
  );
}
