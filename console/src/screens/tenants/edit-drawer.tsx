/** One tenant: what it uses, and what may be changed about it. */

import { useQuery } from '@tanstack/react-query';
import type { Tenant } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Button } from '../../ui/button.tsx';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Id, Skeleton, State } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { ratesFault } from '../rates/rates.ts';
import { Limits } from '../usage/limits.tsx';
import { TenantFields } from './fields.tsx';
import { changesOf, formOf, type TenantForm } from './form.ts';
import { tenantChanged } from './load.ts';

const TENANT = '/v1/iam/tenants/{id}';
function readTenant(id: string, signal?: AbortSignal): Promise<Tagged<Tenant>> {
  return tagged(client.send('GET', TENANT, { path: { id }, signal }));
}

interface EditDrawerProps {
  readonly id: string;
  readonly onClose: () => void;
  readonly onAct: (id: string) => void;
}

export function EditDrawer({ id, ...does }: EditDrawerProps) {
  const actingIn = useTenant().id;
  const loaded = useQuery({
    queryKey: [actingIn, 'tenant-held', id],
    queryFn: ({ signal }) => readTenant(id, signal),
    // The form must start from the current values, and no refetch may replace them during the edit.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (loaded.data !== undefined) return <Editor key={id} loaded={loaded.data} {...does} />;
  return (
    <Drawer title={id} onClose={does.onClose}>
      {loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : <Skeleton width={3} />}
    </Drawer>
  );
}

function Editor({ loaded, onClose, onAct }: Omit<EditDrawerProps, 'id'> & { readonly loaded: Tagged<Tenant> }) {
  const actingIn = useTenant().id;
  const { id } = loaded.data;
  const edit = useEdit<Tenant, TenantForm>({
    form: `tenant ${id}`,
    loaded,
    fieldsOf: formOf,
    read: () => readTenant(id),
    write: (changes, ifMatch) =>
      tagged(client.send('PUT', TENANT, { path: { id }, body: changesOf(changes), ifMatch })),
    onSaved: () => void tenantChanged(actingIn, id),
  });
  const missing = ratesFault(edit.draft.rate_limits) ?? (edit.isChanged ? undefined : common.noChange);
  const { name, status, created_at: createdAt, updated_at: updatedAt } = edit.base;
  return (
    <DrawerForm
      title={name}
      work={edit}
      action={common.save}
      saved={text.saved}
      fault={missing}
      comparable={comparable}
      onClose={onClose}
      acts={<Button onPress={() => onAct(id)}>{text.actIn}</Button>}
      above={
        <>
          {' '}
          <Facts
            facts={[
              { name: text.id, value: <Id value={id} shown={id} /> },
              {
                name: text.state,
                value: <State tone={status === 'active' ? 'good' : 'off'}>{text.states[status]}</State>,
              },
              { name: text.created, value: <Moment time={createdAt} /> },
              { name: text.changed, value: <Moment time={updatedAt} /> },
            ]}
          />
          <Limits of={id} />
        </>
      }
    >
      <TenantFields form={edit.draft} onChange={edit.set} error={edit.error} />
    </DrawerForm>
  );
}

/** Without what changes with every save. */
function comparable({ name, status, settings, quotas }: Tenant): unknown {
  return { name, status, settings, quotas };
}
