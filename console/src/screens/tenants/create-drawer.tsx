import { useQueryClient } from '@tanstack/react-query';
import { ProblemError } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useCreation } from '../../api/edit.ts';
import { useTenant } from '../../api/session.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { TextField } from '../../ui/field.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { fieldError, sentenceOf } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { ratesFault } from '../rates/rates.ts';
import { TenantFields } from './fields.tsx';
import { EMPTY, newTenantOf, type TenantForm } from './form.ts';
import { tenantChanged } from './load.ts';
import styles from './tenants.module.css';

interface CreateDrawerProps {
  readonly onClose: () => void;
  readonly onCreated: (id: string) => void;
}

const FORM = 'new-tenant';

interface NewTenantForm extends TenantForm {
  readonly id: string;
}

const START: NewTenantForm = { ...EMPTY, id: '' };

export function CreateDrawer({ onClose, onCreated }: CreateDrawerProps) {
  const actingIn = useTenant().id;
  const queries = useQueryClient();
  const create = useCreation({
    form: 'new tenant',
    start: START,
    send: ({ id, ...form }) => client.tenants.create(newTenantOf(id.trim(), form)),
    onCreated: async (tenant) => {
      await tenantChanged(queries, actingIn, tenant.id);
      onCreated(tenant.id);
    },
  });
  const { draft, set, error } = create;
  const fault = ratesFault(draft.rate_limits);
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const idError = isTaken ? sentenceOf(error) : fieldError(error, '/id');
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={<SaveBar work={create} form={FORM} action={text.create} disabledReason={fault} onClose={onClose} />}
    >
      <form
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (fault === undefined) create.save();
        }}
      >
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
      </form>
    </Drawer>
  );
}
