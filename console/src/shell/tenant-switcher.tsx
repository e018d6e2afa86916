/** The tenant that the caller acts in. Platform administrators change it: a search that loads one page, never all tenants. */

import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Button, Dialog, DialogTrigger, ListBox, ListBoxItem, Popover } from 'react-aria-components';
import { client } from '../api/client.ts';
import { useMe, useTenant } from '../api/session.ts';
import { shell } from '../text/en/shell.ts';
import { SearchField } from '../ui/field.tsx';
import { Icon } from '../ui/icon.tsx';
import { Hidden } from '../ui/mark.tsx';
import overlay from '../ui/overlay.module.css';
import { Problem } from '../ui/problem.tsx';
import { useLate } from '../ui/use-late.ts';
import styles from './shell.module.css';
import switcher from './tenant-switcher.module.css';

export function TenantSwitcher() {
  const me = useMe();
  const tenant = useTenant();
  const { data } = useQuery({
    queryKey: [tenant.id, 'tenant'],
    queryFn: ({ signal }) => client.tenants.get(tenant.id, { signal }),
    retry: false,
  });
  const name = data?.name ?? tenant.id;
  if (!me.platform_admin) {
    return (
      <div className={styles.tenant}>
        <span>{name}</span>
        <code>{tenant.id}</code>
      </div>
    );
  }
  return (
    <DialogTrigger>
      <Button className={styles.tenant}>
        <Hidden>{shell.tenantNow}</Hidden>
        <span>{name}</span>
        <code>{tenant.id}</code>
        <Icon name="down" />
      </Button>
      <Popover placement="bottom start">
        <Dialog aria-label={shell.tenant} className={switcher.dialog}>
          {({ close }) => <Chooser current={tenant.id} onChosen={close} />}
        </Dialog>
      </Popover>
    </DialogTrigger>
  );
}

function Chooser({ current, onChosen }: { readonly current: string; readonly onChosen: () => void }) {
  const [typed, setTyped] = useState('');
  const q = useLate(typed);
  const navigate = useNavigate();
  const found = useQuery({
    queryKey: ['tenants', q],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/tenants', { query: { limit: 20, ...(q === '' ? {} : { q }) }, signal }),
  });
  return (
    <>
      <SearchField label={shell.findTenant} placeholder={shell.findTenant} value={typed} onChange={setTyped} autoFocus />
      {found.isError ? <Problem error={found.error} /> : null}
      <ListBox
        aria-label={shell.tenant}
        className={switcher.list}
        selectionMode="single"
        selectedKeys={[current]}
        items={found.data?.data ?? []}
        renderEmptyState={() => (found.isPending ? null : <p className={switcher.none}>{shell.noTenant}</p>)}
        onAction={(id) => {
          onChosen();
          void navigate({ to: '.', search: (search) => ({ ...search, tenant: String(id) }) });
        }}
      >
        {({ id, name }) => (
          <ListBoxItem id={id} textValue={name} className={overlay.item}>
            {name}
            <small>{id}</small>
          </ListBoxItem>
        )}
      </ListBox>
    </>
  );
}
