/** One tenant: what it uses, and what may be changed about it. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ProblemError, type Tenant } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Button } from '../../ui/button.tsx';
import { Diff } from '../../ui/diff.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Id, Note, Skeleton, State } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { Limits } from '../usage/limits.tsx';
import { TenantFields } from './fields.tsx';
import { changesOf, formOf, rebased } from './form.ts';
import { tenantChanged } from './load.ts';
import styles from './tenants.module.css';

const TENANT = '/v1/iam/tenants/{id}';
const FORM = 'tenant';

/** The tenant with what says that it is still as it was. */
interface Held {
  readonly data: Tenant;
  readonly etag: string | undefined;
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
    queryFn: ({ signal }) => client.send('GET', TENANT, { path: { id }, signal }),
    // What is edited must be what is there, and stay as it is under what is typed.
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (loaded.data !== undefined) return <Editor key={id} first={loaded.data} {...does} />;
  return (
    <Drawer title={id} onClose={does.onClose}>
      {loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : <Skeleton width={3} />}
    </Drawer>
  );
}

function Editor({ first, onClose, onAct }: Omit<EditDrawerProps, 'id'> & { readonly first: Held }) {
  const actingIn = useTenant().id;
  const queries = useQueryClient();
  const [held, setHeld] = useState(first);
  const [form, setForm] = useState(() => formOf(first.data));
  const [theirs, setTheirs] = useState<Held>();
  const { id, name, status, created_at: createdAt, updated_at: updatedAt } = held.data;
  const before = formOf(held.data);
  const changes = changesOf(before, form);
  const save = useMutation({
    mutationFn: async () =>
      changes === undefined
        ? held
        : client.send('PUT', TENANT, { path: { id }, body: changes, ...(held.etag === undefined ? {} : { ifMatch: held.etag }) }),
    onSuccess: async (saved) => {
      setHeld(saved);
      setForm(formOf(saved.data));
      await tenantChanged(queries, actingIn, id);
    },
    onError: async (error) => {
      if (isLate(error)) setTheirs(await client.send('GET', TENANT, { path: { id } }));
    },
  });
  const goOn = (from: Held, isKept: boolean): void => {
    setForm(isKept ? rebased(before, form, formOf(from.data)) : formOf(from.data));
    setHeld(from);
    setTheirs(undefined);
    save.reset();
  };
  const hasFieldErrors = save.error instanceof ProblemError && save.error.errors.length > 0;
  return (
    <Drawer
      title={name}
      onClose={onClose}
      foot={
        <>
          <span className={styles.apart}>
            <Button onPress={() => onAct(id)}>{text.actIn}</Button>
          </span>
          <Button onPress={onClose}>{common.close}</Button>
          <Button
            tone="primary"
            type="submit"
            form={FORM}
            disabledReason={changes === undefined ? text.nothingChanged : undefined}
            isPending={save.isPending}
          >
            {common.save}
          </Button>
        </>
      }
    >
      <Facts
        facts={[
          { name: text.id, value: <Id value={id} shown={id} /> },
          { name: text.state, value: <State tone={status === 'active' ? 'good' : 'off'}>{text.states[status]}</State> },
          { name: text.created, value: <Moment time={createdAt} /> },
          { name: text.changed, value: <Moment time={updatedAt} /> },
        ]}
      />
      <Limits of={id} />
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (changes !== undefined) save.mutate();
        }}
      >
        {save.isSuccess && changes === undefined ? (
          <Note tone="good" isLive>
            {text.saved}
          </Note>
        ) : null}
        {save.isError && !hasFieldErrors && !isLate(save.error) ? <Problem error={save.error} /> : null}
        {theirs === undefined ? null : (
          <Note tone="care" isLive>
            {text.faster}
            <Diff before={comparable(held.data)} after={comparable(theirs.data)} />
            <div className={styles.ways}>
              <Button small onPress={() => goOn(theirs, true)}>
                {text.keepMine}
              </Button>
              <Button small onPress={() => goOn(theirs, false)}>
                {text.takeTheirs}
              </Button>
            </div>
          </Note>
        )}
        <TenantFields form={form} onChange={setForm} error={save.error} />
      </form>
    </Drawer>
  );
}

function isLate(error: unknown): boolean {
  return error instanceof ProblemError && error.code === 'precondition_failed';
}

/** Without what changes with every save. */
function comparable({ name, status, settings, quotas }: Tenant): unknown {
  return { name, status, settings, quotas };
}
