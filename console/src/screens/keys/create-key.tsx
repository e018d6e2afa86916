/** Creates a key, and shows its secret once. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type IssuedApiKey, ProblemError, type ResourceConstraints } from '../../../../client/index.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { SubjectField } from '../explain/subject-field.tsx';
import { ConstraintFields } from '../role/fields.tsx';
import { PermissionPicker } from '../roles/permission-picker.tsx';
import { keysChanged } from './changed.ts';
import styles from './keys.module.css';

const FORM = 'create-key';
const EXPIRIES = ['7', '30', '90', '365', 'never'] as const;
type Expiry = (typeof EXPIRIES)[number];
const FIELDS = [
  ...['/name', '/description', '/scopes', '/user_id', '/rate_limit_rpm'],
  ...['/resource_constraints', '/expires_at', '/expires_in_days'],
];

interface CreateKeyProps {
  readonly onClose: () => void;
  readonly onCreated: (issued: IssuedApiKey) => void;
}

export function CreateKey({ onClose, onCreated }: CreateKeyProps) {
  const { id: tenant, client } = useTenant();
  const queries = useQueryClient();
  const me = useMe();
  // Without the right to manage keys a user makes keys of its own.
  const isManager = useDenied('admin:keys') === undefined;
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const [expiry, setExpiry] = useState<Expiry>('90');
  const [owner, setOwner] = useState<string | undefined>();
  const [rate, setRate] = useState<number | undefined>();
  const [constraints, setConstraints] = useState<ResourceConstraints>({});
  const create = useMutation({
    mutationFn: () =>
      client.apiKeys.create({
        ...(name.trim() === '' ? {} : { name: name.trim() }),
        description: description.trim(),
        scopes,
        ...(expiry === 'never' ? { expires_at: null } : { expires_in_days: Number(expiry) }),
        user_id: isManager ? (owner ?? null) : me.id,
        ...(Object.keys(constraints).length === 0 ? {} : { resource_constraints: constraints }),
        ...(rate === undefined ? {} : { rate_limit_rpm: rate }),
      }),
    onSuccess: async (issued) => {
      onCreated(issued);
      await keysChanged(queries, tenant);
    },
  });
  const errorOf = (pointer: string): string | undefined => fieldError(create.error, pointer);
  const isShown = create.error instanceof ProblemError && FIELDS.some((pointer) => errorOf(pointer) !== undefined);
  const missing = description.trim() === '' || scopes.length === 0 ? text.needs : undefined;
  return (
    <Drawer
      title={text.create}
      onClose={onClose}
      foot={
        <>
          <Button tone="quiet" onPress={onClose}>
            {common.cancel}
          </Button>
          <Button tone="primary" type="submit" form={FORM} disabledReason={missing} isPending={create.isPending}>
            {text.creating}
          </Button>
        </>
      }
    >
      <form
        noValidate
        id={FORM}
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (missing === undefined) create.mutate();
        }}
      >
        {create.isError && !isShown ? <Problem error={create.error} /> : null}
        <div className={styles.pair}>
          <TextField
            label={text.name}
            value={name}
            onChange={setName}
            hint={text.nameHint}
            error={errorOf('/name')}
            maxLength={200}
            isOptional
            autoFocus
          />
          <TextField
            label={text.description}
            value={description}
            onChange={setDescription}
            hint={text.descriptionHint}
            error={errorOf('/description')}
            maxLength={500}
            isRequired
          />
        </div>
        <PermissionPicker label={text.scopes} selected={scopes} onChange={setScopes} error={errorOf('/scopes')} />
        <div className={styles.group}>
          <span>{text.expiry}</span>
          <Segments
            label={text.expiry}
            value={expiry}
            onChange={setExpiry}
            options={EXPIRIES.map((value) => ({ value, label: text.expiries[value] }))}
          />
          {expiry === 'never' ? <Small>{errorOf('/expires_at') ?? text.neverHint}</Small> : null}
          {errorOf('/expires_in_days') === undefined ? null : <Small>{errorOf('/expires_in_days')}</Small>}
        </div>
        {isManager ? (
          <div className={styles.group}>
            <SubjectField kind="user" id={owner} onChange={setOwner} label={text.owner} isOptional />
            <Small>{errorOf('/user_id') ?? text.ownerHint}</Small>
          </div>
        ) : null}
        <NumberField
          label={text.rateLimit}
          value={rate}
          onChange={setRate}
          hint={text.rateHint}
          error={errorOf('/rate_limit_rpm')}
          isOptional
        />
        <div className={styles.form}>
          <SectionHead title={text.constraints} small={text.constraintsSay} />
          <ConstraintFields constraints={constraints} onChange={setConstraints} error={create.error} />
        </div>
      </form>
    </Drawer>
  );
}
