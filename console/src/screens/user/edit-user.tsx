/** Changes what is written about a user and the roles given by hand. Only changed members are sent, with the ETag. */

import { useState } from 'react';
import type { User } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { METADATA_BOUNDS, metadataFault, metadataOf, pairsIn } from '../../api/metadata.ts';
import { tagged } from '../../api/one.ts';
import { useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { metadata as metadataText } from '../../text/en/metadata.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { users as text } from '../../text/en/users.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import { TextField } from '../../ui/field.tsx';
import { type Pair, PairsField } from '../../ui/pairs-field.tsx';
import { fieldError, isTaken } from '../../ui/problem.tsx';
import { type RateFields, rateMembers, ratesFault, ratesOf } from '../rates/rates.ts';
import { RatesField } from '../rates/rates-field.tsx';
import { RolePicker } from '../users/role-picker.tsx';
import { IdentitiesField, type Identity } from './identities-field.tsx';
import { readUser } from './queries.ts';

interface Fields {
  readonly email: string;
  readonly name: string;
  readonly department: string;
  readonly roles: readonly string[];
  readonly rate_limits: readonly RateFields[];
  readonly metadata: readonly Pair[];
  readonly identities: readonly Identity[];
}

/** Roles in one order, so that taking one away and giving it again is no change. */
function fieldsOf({ email, name, department, roles, rate_limits: rates, metadata, identities }: User): Fields {
  return {
    email: email ?? '',
    name,
    department: department ?? '',
    roles: roles.toSorted(),
    rate_limits: ratesOf(rates ?? []),
    metadata: pairsIn(metadata),
    identities: identities.map(({ issuer, subject }) => ({ issuer, subject })),
  };
}

export function EditUser({ loaded, onClose }: { readonly loaded: Tagged<User>; readonly onClose: () => void }) {
  const tenant = useTenant();
  const isOwn = useMe().id === loaded.data.id;
  const [password, setPassword] = useState('');
  const { id } = loaded.data;
  const edit = useEdit<User, Fields>({
    form: `user ${id}`,
    loaded,
    fieldsOf,
    read: () => readUser(tenant, id),
    write: async ({ department, metadata, rate_limits: rates, ...changes }, ifMatch) => {
      const body = {
        ...changes,
        ...(department === undefined ? {} : { department: department === '' ? null : department }),
        ...(rates === undefined ? {} : { rate_limits: rateMembers(rates) }),
        ...(metadata === undefined ? {} : { metadata: metadataOf(metadata) }),
        ...(isOwn && (changes.email !== undefined || changes.identities !== undefined)
          ? { current_password: password }
          : {}),
      };
      return tagged(tenant.client.send('PUT', '/v1/iam/users/{id}', { path: { id }, body, ifMatch }));
    },
    onSaved: () => {
      setPassword('');
      void changed(tenant.id, 'users', id);
    },
  });
  const { draft, set, error } = edit;
  const { source, name, directory_roles: directory, issuer_roles: issuers } = loaded.data;
  const given = [
    ...(directory.length === 0 ? [] : [text.directoryRolesSay(words.list(directory))]),
    ...(issuers.length === 0 ? [] : [text.issuerRolesSay(words.list(issuers))]),
  ];
  const isIdentityPart = draft.identities.some(({ issuer, subject }) => issuer === '' || subject === '');
  const fault = isIdentityPart ? text.identityNeeds : (ratesFault(draft.rate_limits) ?? metadataFault(draft.metadata));
  const isKept = source === 'ldap';
  const before = fieldsOf(edit.base);
  const isProofChanged =
    draft.email !== before.email || JSON.stringify(draft.identities) !== JSON.stringify(before.identities);
  const errorOf = (pointer: string): string | undefined => fieldError(error, pointer);
  return (
    <DrawerForm
      title={text.editOf(name)}
      work={edit}
      action={common.save}
      fault={fault ?? (edit.isChanged ? undefined : common.noChange)}
      onClose={onClose}
    >
      <TextField
        label={text.name}
        value={draft.name}
        onChange={(value) => set({ name: value })}
        error={errorOf('/name')}
        hint={isKept ? text.keptByDirectory : undefined}
        isDisabled={isKept}
        maxLength={200}
        isRequired
      />
      <TextField
        label={text.email}
        type="email"
        value={draft.email}
        onChange={(value) => set({ email: value })}
        error={isTaken(error) ? text.emailTaken : errorOf('/email')}
        hint={isKept ? text.keptByDirectory : undefined}
        isDisabled={isKept}
        autoComplete="off"
        maxLength={254}
        isRequired={source === 'local'}
      />
      {isOwn && isProofChanged ? (
        <TextField
          label={text.currentPassword}
          type="password"
          value={password}
          onChange={setPassword}
          error={errorOf('/current_password')}
          hint={text.currentPasswordHint}
          autoComplete="current-password"
          isRequired
        />
      ) : null}
      <TextField
        label={text.department}
        value={draft.department}
        onChange={(value) => set({ department: value })}
        error={errorOf('/department')}
        maxLength={200}
        isOptional
      />
      <RolePicker
        label={text.roles}
        note={text.byHand}
        selected={draft.roles}
        onChange={(roles) => set({ roles: roles.toSorted() })}
        error={errorOf('/roles')}
        below={given.length === 0 ? undefined : given.join(' ')}
      />
      <RatesField
        level="user"
        rates={draft.rate_limits}
        onChange={(rates) => set({ rate_limits: rates })}
        error={errorOf('/rate_limits')}
      />
      <PairsField
        label={metadataText.label}
        hint={metadataText.hint}
        pairs={draft.metadata}
        onChange={(metadata) => set({ metadata })}
        error={metadataFault(draft.metadata) ?? errorOf('/metadata')}
        {...METADATA_BOUNDS}
      />
      <IdentitiesField
        identities={draft.identities}
        onChange={(identities) => set({ identities })}
        error={errorOf('/identities')}
      />
    </DrawerForm>
  );
}
