import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ProblemError } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { fieldError, Problem, sentenceOf } from '../../ui/problem.tsx';
import { TenantFields } from './fields.tsx';
import { EMPTY, newTenantOf } from './form.ts';
import { tenantChanged } from './load.ts';
import styles from './tenants.module.css';

interface CreateDrawerProps {
  readonly onClose: () => void;
  readonly onCreated: (id: string) => void;
}

const FORM = 'new-tenant';

export function CreateDrawer({ onClose, onCreated }: CreateDrawerProps) {
  const actingIn = useTenant().id;
  const queries = useQueryClient();
  const [id, setId] = useState('');
  const [form, setForm] = useState(EMPTY);
  const create = useMutation({
    mutationFn: () => client.tenants.create(newTenantOf(id.trim(), form)),
    onSuccess: async (tenant) => {
      await tenantChanged(queries, actingIn, tenant.id);
      onCreated(tenant.id);
    },
  });
  const { error } = create;
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const idError = isTaken ? sentenceOf(error) : fieldError(error, '/id');
  const isShownInPlace = idError !== undefined || (error instanceof ProblemError && error.errors.length > 0);
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={
        <>
          <Button onPress={onClose}>{common.cancel}</Button>
          <Button tone="primary" type="submit" form={FORM} isPending={create.isPending}>
            {text.create}
          </Button>
        </>
      }
    >
      <form
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          create.mutate();
        }}
      >
        {error === null || isShownInPlace ? null : <Problem error={error} />}
        <TenantFields form={form} onChange={setForm} error={error}>
          <TextField
            label={text.id}
            value={id}
            onChange={setId}
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
