/** Shows only the users who hold one role. */

import { useState } from 'react';
import { Button, Dialog, DialogTrigger, ListBox, ListBoxItem, Popover } from 'react-aria-components';
import { useRoles } from '../../api/roles.ts';
import { common } from '../../text/en/common.ts';
import { users as text } from '../../text/en/users.ts';
import buttonStyles from '../../ui/button.module.css';
import { Button as PlainButton } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { SearchField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import overlay from '../../ui/overlay.module.css';
import { Problem } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';
import styles from './users.module.css';

interface RoleFilterProps {
  readonly role: string | undefined;
  readonly onChange: (role: string | undefined) => void;
}

export function RoleFilter({ role, onChange }: RoleFilterProps) {
  if (role !== undefined) {
    return (
      <Chip label={text.clearRole} onRemove={() => onChange(undefined)}>
        {text.roleIs(role)}
      </Chip>
    );
  }
  return (
    <DialogTrigger>
      <Button className={buttonStyles.button}>
        {text.role}
        <Icon name="down" />
      </Button>
      <Popover placement="bottom start">
        <Dialog aria-label={text.chooseRole} className={styles.chooser}>
          {({ close }) => (
            <RoleChooser
              onChoose={(chosen) => {
                close();
                onChange(chosen);
              }}
            />
          )}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

/** A search over the tenant's roles. A press chooses. */
export function RoleChooser({ onChoose }: { readonly onChoose: (role: string) => void }) {
  const [typed, setTyped] = useState('');
  const list = useRoles(useSearchText(typed));
  if (list.kind === 'failed') return <Problem error={list.error} onRetry={list.retry} />;
  return (
    <>
      <SearchField label={text.chooseRole} placeholder={text.pickRoles} value={typed} onChange={setTyped} autoFocus />
      <ListBox
        aria-label={text.roles}
        className={styles.choices}
        items={list.kind === 'loaded' ? list.rows : []}
        renderEmptyState={() => <p className={styles.none}>{list.kind === 'loading' ? common.loading : text.noRole}</p>}
        onAction={(name) => onChoose(String(name))}
      >
        {({ name, description }) => (
          <ListBoxItem id={name} textValue={name} className={overlay.item}>
            {name}
            <small>{description}</small>
          </ListBoxItem>
        )}
      </ListBox>
      {list.kind === 'loaded' && list.more !== undefined ? (
        <PlainButton small onPress={list.more} isPending={list.isLoadingMore}>
          {common.more}
        </PlainButton>
      ) : null}
    </>
  );
}
