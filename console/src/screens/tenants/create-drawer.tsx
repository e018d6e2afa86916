import { client } from '../../api/client.ts';
import { useCreation } from '../../api/edit.ts';
import { useTenant } from '../../api/session.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { TextField } from '../../ui/field.tsx';
import { fieldError, isTaken, sentenceOf } from '../../ui/problem.tsx';
import { ratesFault } from '../rates/rates.ts';
import { TenantFields } from './fields.tsx';
import { EMPTY, newTenantOf, type TenantForm } from './form.ts';
import { tenantChanged } from './load.ts';

interface CreateDrawerProps {
  readonly onClose: () => void;
  readonly onCreated: (id: string) => void;
}

interface NewTenantForm extends TenantForm {
  readonly id: string;
}

const START: NewTenantForm = { ...EMPTY, id: '' };

export function CreateDrawer({ onClose, onCreated }: CreateDrawerProps) {
  const actingIn = useTenant().id;
  const create = useCreation({
    form: 'new tenant',
    start: START,
    send: ({ id, ...form }) => client.tenants.create(newTenantOf(id.trim(), form)),
    onCreated: async (tenant) => {
      await tenantChanged(actingIn, tenant.id);
      onCreated(tenant.id);
    },
  });
  const { draft, set, error } = create;
  const fault = ratesFault(draft.rate_limits);
  const idError = isTaken(error) ? sentenceOf(error) : fieldError(error, '/id');
  return (
    <DrawerForm title={text.create} work={create} action={text.create} fault={fault} onClose={onClose}>
      <TenantFields form={draft} onChange={set} error={error}>
        <TextField
          label={text.id}
          value={draft.id}
          onChange={(id) => set({ id })}
          hint={text.idHint}
          error={idError}
          maxLength={63}
          isMono
          isRequired
          autoFocus
        />
      </TenantFields>
    </DrawerForm>
  );
}
