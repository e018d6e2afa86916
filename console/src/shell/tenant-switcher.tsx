/**
 * The tenant that the caller acts in. Platform administrators change it: a search that loads one page, never all
 * tenants.
 */

import { useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { Autocomplete, Button, Dialog, DialogTrigger, ListBox, ListBoxItem, Popover } from 'react-aria-components';
import { useMe, useTenant } from '../api/session.ts';
import { useFoundTenants } from '../api/tenants.ts';
import { common } from '../text/en/common.ts';
import { shell } from '../text/en/shell.ts';
import { SearchField } from '../ui/field.tsx';
import { Icon } from '../ui/icon.tsx';
import { Hidden, State } from '../ui/mark.tsx';
import overlay from '../ui/overlay.module.css';
import { Problem } from '../ui/problem.tsx';
import { useSearchText } from '../ui/use-search-text.ts';
import styles from './shell.module.css';
import { useTenantName, useTenantRead } from './tenant-name.ts';
import switcher from './tenant-switcher.module.css';

const PAGE = 20;

export function TenantSwitcher() {
  const me = useMe();
  const { id } = useTenant();
  const name = useTenantName();
  const isSuspended = useTenantRead().data?.status === 'suspended';
  const shown = (
    <>
      <span>{name}</span>
      {name === id ? null : <code>{id}</code>}
      {isSuspended ? <State tone="off">{shell.suspended}</State> : null}
    </>
  );
  if (!me.platform_admin) return <div className={styles.tenant}>{shown}</div>;
  return (
    <DialogTrigger>
      <Button className={styles.tenant}>
        <Hidden>{shell.tenantNow}</Hidden>
        {shown}
        <Icon name="down" />
      </Button>
      <Popover placement="bottom start">
        <Dialog aria-label={shell.tenant} className={switcher.dialog}>
          {({ close }) => <Chooser current={id} onChosen={close} />}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

/** The arrows walk through the list while the caller types. */
function Chooser({ current, onChosen }: { readonly current: string; readonly onChosen: () => void }) {
  const [typed, setTyped] = useState('');
  const found = useFoundTenants(useSearchText(typed), PAGE);
  const actIn = useActIn();
  const rows = found.data?.rows ?? [];
  return (
    <Autocomplete inputValue={typed} onInputChange={setTyped}>
      <SearchField
        label={shell.findTenant}
        placeholder={shell.findTenant}
        value={typed}
        onChange={setTyped}
        autoFocus
        isCombo
      />
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      <ListBox
        aria-label={shell.tenant}
        className={switcher.list}
        selectionMode="single"
        selectedKeys={[current]}
        items={rows}
        renderEmptyState={() =>
          found.isError ? null : <p className={switcher.none}>{found.isPending ? common.loading : shell.noTenant}</p>
        }
        onSelectionChange={(chosen) => {
          // The one that is pressed; none if it was the current one already.
          const [id = current] = chosen === 'all' ? [] : chosen;
          onChosen();
          actIn(String(id));
        }}
      >
        {({ id, name, status }) => (
          <ListBoxItem id={id} textValue={`${name} ${id}`} className={overlay.item}>
            <span className={switcher.name}>{name}</span>
            {status === 'suspended' ? <State tone="off">{shell.suspended}</State> : null}
            <small>{id}</small>
          </ListBoxItem>
        )}
      </ListBox>
      {found.data?.hasMore ? <p className={switcher.more}>{shell.moreTenants(PAGE)}</p> : null}
    </Autocomplete>
  );
}

/** Opens the same screen of another tenant, without the search and the open resource, which belong to this tenant. */
export function useActIn(): (tenant: string) => void {
  const navigate = useNavigate();
  const params = useParams({ strict: false });
  const isDetail = Object.keys(params).length > 0;
  return (tenant) => void navigate({ to: isDetail ? '..' : '.', search: { tenant } });
}
