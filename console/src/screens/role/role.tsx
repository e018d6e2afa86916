/** One role: its permissions, its holders and its policies. Built-in roles are read-only. */

import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import type { Role as RoleResource } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Button } from '../../ui/button.tsx';
import { Courses } from '../../ui/courses.tsx';
import { Form } from '../../ui/form.tsx';
import { Note } from '../../ui/mark.tsx';
import { Notices } from '../../ui/notices.tsx';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { DifferenceLine, DifferenceSection } from '../difference/difference.tsx';
import { useDifference } from '../difference/use-difference.ts';
import { DeleteRole } from './delete-role.tsx';
import { orderedConstraints, type RoleFields, RoleForm } from './fields.tsx';
import { readRole, useRole } from './queries.ts';
import styles from './role.module.css';
import { Side } from './side.tsx';

export function Role() {
  const tenant = useTenant();
  const { name } = useParams({ from: '/inside/roles/$name' });
  const loaded = useRole(name);
  const navigate = useNavigate();
  const denied = useDenied('admin:roles');
  const [isDeleting, setDeleting] = useState(false);
  const role = loaded.data?.data;
  const copy = (
    <Button disabledReason={denied} onPress={() => void navigate({ to: '/new-role', search: { from: name } })}>
      {text.copy}
    </Button>
  );
  return (
    <Page
      title={name}
      says={role?.builtin === true ? role.description : undefined}
      crumb={<Link to="/roles">{text.crumb}</Link>}
      actions={
        loaded.isError && role === undefined ? null : (
          <>
            {copy}
            <Button
              tone="danger"
              disabledReason={denied ?? (role?.builtin === true ? text.builtinReason : undefined)}
              onPress={() => setDeleting(true)}
            >
              {text.remove}
            </Button>
          </>
        )
      }
    >
      {loaded.isError && role === undefined ? (
        <Problem error={loaded.error} onRetry={() => void loaded.refetch()} />
      ) : null}
      {loaded.data === undefined ? null : (
        <div className={styles.editor}>
          <Courses
            main={
              loaded.data.data.builtin ? (
                <Builtin role={loaded.data.data} />
              ) : (
                <Editor key={`${tenant.id} ${name}`} loaded={loaded.data} />
              )
            }
            side={<Side role={loaded.data.data} />}
          />
        </div>
      )}
      {isDeleting ? <DeleteRole name={name} onClose={() => setDeleting(false)} /> : null}
    </Page>
  );
}

export function fieldsOf({ description, permissions, resource_constraints: constraints }: RoleResource): RoleFields {
  return { description, permissions, resource_constraints: orderedConstraints(constraints) };
}

/** The part of a role that decisions depend on, as one text. */
function ruleOf({ description: _, ...rule }: RoleFields): string {
  return JSON.stringify(rule);
}

function Builtin({ role }: { readonly role: RoleResource }) {
  return (
    <div className={styles.form}>
      <Note>{text.builtinSays}</Note>
      <RoleForm draft={fieldsOf(role)} set={() => undefined} error={undefined} isReadOnly />
    </div>
  );
}

function Editor({ loaded }: { readonly loaded: Tagged<RoleResource> }) {
  const tenant = useTenant();
  const denied = useDenied('admin:roles');
  const { name } = loaded.data;
  const edit = useEdit<RoleResource, RoleFields>({
    form: `role ${name}`,
    loaded,
    fieldsOf,
    read: () => readRole(tenant, name),
    write: (body, ifMatch) =>
      tagged(tenant.client.send('PUT', '/v1/iam/roles/{name}', { path: { name }, body, ifMatch })),
    onSaved: () => void changed(tenant.id, 'roles'),
  });
  const { draft, set, error } = edit;
  const isRuleChanged = ruleOf(draft) !== ruleOf(fieldsOf(edit.base));
  const difference = useDifference(isRuleChanged ? { roles: [{ name, ...draft }] } : undefined);
  const notices = edit.base.notices?.filter(({ pattern }) => pattern === null || draft.permissions.includes(pattern));
  const noted = (notices ?? []).flatMap(({ pattern }) => pattern ?? []);
  return (
    <Form className={styles.form} onSend={() => edit.save()}>
      <Notices notices={notices} />
      <RoleForm draft={draft} set={set} error={error} noted={noted} />
      <DifferenceSection state={difference} />
      <SaveBar
        work={edit}
        action={text.save}
        saved={text.saved}
        disabledReason={denied ?? (edit.isChanged ? undefined : common.noChange)}
      >
        <DifferenceLine state={difference} />
      </SaveBar>
    </Form>
  );
}
