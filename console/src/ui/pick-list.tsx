/**
 * A choice of several from a list that is searched: what is chosen stands above it, and the list shows what the search
 * finds.
 */

import { type ReactNode, useId } from 'react';
import { ListBox, ListBoxItem, type Selection } from 'react-aria-components';
import { common } from '../text/en/common.ts';
import { Button } from './button.tsx';
import { Chip } from './chip.tsx';
import { classes } from './classes.ts';
import fieldStyles from './field.module.css';
import { SearchField } from './field.tsx';
import { Icon } from './icon.tsx';
import { Tag } from './mark.tsx';
import styles from './pick-list.module.css';

export interface PickItem {
  readonly id: string;
  readonly says?: ReactNode;
  /** At the right: a count, or why the item need not be chosen. */
  readonly end?: ReactNode;
  /** True: another chosen item contains it. */
  readonly isCovered?: boolean;
}

interface PickListProps {
  readonly label: string;
  /** Beside the label. */
  readonly note?: ReactNode;
  readonly error?: string | undefined;
  readonly below?: ReactNode;
  readonly placeholder: string;
  readonly typed: string;
  readonly onType: (typed: string) => void;
  readonly items: readonly PickItem[];
  readonly selected: readonly string[];
  readonly onChange: (selected: readonly string[]) => void;
  readonly empty: string;
  /** Loads the next page; undefined: there is none. */
  readonly more?: (() => void) | undefined;
  readonly isLoadingMore?: boolean;
  readonly isReadOnly?: boolean;
}

export function PickList(props: PickListProps) {
  const { label, note, error, below, items, selected, onChange, isReadOnly = false } = props;
  const id = useId();
  return (
    <fieldset
      className={fieldStyles.field}
      aria-describedby={error === undefined ? undefined : id}
      data-fault={error === undefined ? undefined : ''}
    >
      <legend className={styles.legend}>
        <span className={fieldStyles.label}>{label}</span>
        {note === undefined ? null : <span className={fieldStyles.optional}>{note}</span>}
      </legend>
      {selected.length === 0 ? null : (
        <div className={styles.chosen}>
          {selected.map((one) =>
            isReadOnly ? (
              <Tag key={one}>{one}</Tag>
            ) : (
              <Chip
                key={one}
                label={common.removeOf(one)}
                onRemove={() => onChange(selected.filter((other) => other !== one))}
              >
                {one}
              </Chip>
            ),
          )}
        </div>
      )}
      {isReadOnly ? null : (
        <>
          <SearchField
            label={common.searchIn(label)}
            placeholder={props.placeholder}
            value={props.typed}
            onChange={props.onType}
          />
          <ListBox
            aria-label={label}
            className={styles.list}
            selectionMode="multiple"
            selectedKeys={selected}
            onSelectionChange={(chosen) => onChange(withShown(selected, items, chosen))}
            items={items}
            escapeKeyBehavior="none"
            renderEmptyState={() => <span className={styles.empty}>{props.empty}</span>}
          >
            {(item) => (
              <ListBoxItem
                id={item.id}
                textValue={item.id}
                className={classes(styles.item, item.isCovered && styles.covered)}
              >
                {({ isSelected }) => (
                  <>
                    <span className={styles.box}>
                      <Icon name={item.isCovered && !isSelected ? 'dash' : 'check'} size={12} />
                    </span>
                    <code>{item.id}</code>
                    <span className={styles.says}>{item.says}</span>
                    <span className={styles.end}>{item.end}</span>
                  </>
                )}
              </ListBoxItem>
            )}
          </ListBox>
        </>
      )}
      {error === undefined ? null : (
        <span id={id} className={fieldStyles.error}>
          {error}
        </span>
      )}
      {below === undefined ? null : <div className={fieldStyles.hint}>{below}</div>}
      {props.more === undefined || isReadOnly ? null : (
        <div>
          <Button small onPress={props.more} isPending={props.isLoadingMore ?? false}>
            {common.more}
          </Button>
        </div>
      )}
    </fieldset>
  );
}

/** Keeps what is chosen but not shown, and the order in which it was chosen. */
function withShown(selected: readonly string[], items: readonly PickItem[], chosen: Selection): readonly string[] {
  const shown = new Set(items.map(({ id }) => id));
  const isChosen = (id: string): boolean => chosen === 'all' || chosen.has(id);
  const kept = selected.filter((id) => !shown.has(id) || isChosen(id));
  const known = new Set(kept);
  return [...kept, ...items.flatMap(({ id }) => (isChosen(id) && !known.has(id) ? [id] : []))];
}
