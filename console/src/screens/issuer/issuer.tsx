/** One issuer: its members, the keys that it has now, what it grants, and the test of a token. */

import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import type { Issuer as IssuerResource } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { readIssuer, useIssuer } from '../../api/issuers.ts';
import { isName } from '../../api/names.ts';
import { tagged } from '../../api/one.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Courses } from '../../ui/courses.tsx';
import { Form } from '../../ui/form.tsx';
import { Small } from '../../ui/mark.tsx';
import { NameField } from '../../ui/name-field.tsx';
import { Page } from '../../ui/page.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { Unloaded } from '../../ui/unloaded.tsx';
import { Actions } from './actions.tsx';
import { changesOf, faultOf, fieldsOf, type IssuerFields } from './draft.ts';
import { IssuerForm } from './fields.tsx';
import styles from './issuer.module.css';
import { Side } from './side.tsx';
import { TestToken } from './test-token.tsx';

export function Issuer() {
  const tenant = useTenant();
  const { id } = useParams({ from: '/inside/issuers/$id' });
  const { open } = useSearch({ from: '/inside/issuers/$id' });
  const navigate = useNavigate({ from: '/issuers/$id' });
  const loaded = useIssuer(id);
  const issuer = loaded.data?.data;
  const crumb = <Link to="/issuers">{text.crumb}</Link>;
  const show = (drawer: 'test' | undefined): void =>
    void navigate({ search: (before) => ({ ...before, open: drawer }) });
  if (loaded.data === undefined || issuer === undefined)
    return <Unloaded query={loaded} title={text.crumb} crumb={crumb} />;
  return (
    <Page
      title={issuer.name}
      says={issuer.issuer}
      crumb={crumb}
      actions={<Actions issuer={issuer} onTest={() => show('test')} />}
    >
      <div className={styles.editor}>
        <Editor key={`${tenant.id} ${id}`} loaded={loaded.data} />
      </div>
      {open === 'test' ? <TestToken issuer={issuer} onClose={() => show(undefined)} /> : null}
    </Page>
  );
}

function Editor({ loaded }: { readonly loaded: Tagged<IssuerResource> }) {
  const tenant = useTenant();
  const denied = useDenied('admin:issuers');
  const [secret, setSecret] = useState('');
  const { id } = loaded.data;
  const edit = useEdit<IssuerResource, IssuerFields>({
    form: `issuer ${id}`,
    loaded,
    fieldsOf,
    read: () => readIssuer(tenant, id),
    write: async ({ kind: _, ...changes }, ifMatch) => {
      const body = changesOf(changes, secret);
      return tagged(tenant.client.send('PUT', '/v1/iam/issuers/{id}', { path: { id }, body, ifMatch }));
    },
    onSaved: () => {
      setSecret('');
      void changed(tenant.id, 'issuers');
    },
  });
  const { draft, set, error } = edit;
  const malformed = isName(draft.name) ? undefined : text.nameFault;
  const needsSecret = draft.sso?.replaces === true && secret === '' ? text.faults.secret : undefined;
  const fault = malformed ?? faultOf(draft) ?? needsSecret;
  return (
    <Courses
      main={
        <Form noValidate className={styles.form} fault={fault} onSend={() => edit.save()}>
          <NameField value={draft.name} onChange={(name) => set({ name })} error={error} texts={text} />
          <IssuerForm draft={draft} set={set} error={error} secret={secret} onSecret={setSecret} id={id} />
          <SaveBar
            work={edit}
            action={text.save}
            saved={text.saved}
            disabledReason={denied ?? fault ?? (edit.isChanged ? undefined : common.noChange)}
            comparable={comparable}
          >
            {edit.isChanged ? <Small>{text.widens}</Small> : null}
          </SaveBar>
        </Form>
      }
      side={<Side issuer={loaded.data} users={draft.users} />}
    />
  );
}

/** Leaves out the state of the keys, which changes by itself, so that a conflict does not show it. */
function comparable({ keys: _, ...rest }: IssuerResource) {
  return rest;
}
