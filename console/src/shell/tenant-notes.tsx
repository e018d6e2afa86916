/** Notes about the tenant of the address: it does not exist, it is suspended, or the caller must not act in it. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ProblemError } from '../../../client/index.ts';
import { useMe } from '../api/session.ts';
import { shell } from '../text/en/shell.ts';
import { Button } from '../ui/button.tsx';
import { Empty } from '../ui/mark.tsx';
import { Page } from '../ui/page.tsx';
import styles from './shell.module.css';
import { useTenantRead } from './tenant-name.ts';

export function TenantNotes() {
  const me = useMe();
  const { tenant: wanted } = useSearch({ strict: false });
  const { data } = useTenantRead();
  const isOther = !me.platform_admin && wanted !== undefined && wanted !== me.tenant_id;
  const note = isOther
    ? shell.otherTenant(wanted, me.tenant_id)
    : data?.status === 'suspended'
      ? shell.tenantSuspended
      : undefined;
  return note === undefined ? null : (
    <p className={styles.notice} role="status">
      {note}
    </p>
  );
}

/** Its children, unless the address names a tenant that does not exist. */
export function KnownTenant({ children }: { readonly children: ReactNode }) {
  const me = useMe();
  const navigate = useNavigate();
  const { tenant: wanted } = useSearch({ strict: false });
  const { error } = useTenantRead();
  const isGone = me.platform_admin && wanted !== undefined && error instanceof ProblemError && error.status === 404;
  if (!isGone) return children;
  return (
    <Page title={shell.tenant}>
      <Empty
        title={shell.tenantGone(wanted)}
        action={
          <Button tone="primary" onPress={() => void navigate({ to: '/', search: { tenant: undefined } })}>
            {shell.toOwnTenant(me.tenant_id)}
          </Button>
        }
      >
        {shell.tenantGoneSays}
      </Empty>
    </Page>
  );
}
