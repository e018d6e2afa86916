/** One policy: its editor, what it says in words, whom it binds, and what a change would do. */

import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useState } from 'react';
import { type Policy as PolicyResource, ProblemError } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { readPolicy, usePolicy, useTenantZone } from '../../api/policies.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { Courses } from '../../ui/courses.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Form } from '../../ui/form.tsx';
import { Small } from '../../ui/mark.tsx';
import { Notices } from '../../ui/notices.tsx';
import { Page, SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { Moment } from '../../ui/time.tsx';
import { DifferenceLine, DifferenceSection } from '../difference/difference.tsx';
import { TryRequest } from '../difference/try-request.tsx';
import { useDifference } from '../difference/use-difference.ts';
import { DeletePolicy } from './delete-policy.tsx';
import { faultOf, fieldsOf, newPolicyOf, type PolicyFields, ruleOf } from './draft.ts';
import { PolicyForm } from './fields.tsx';
import { LockOut } from './lock-out.tsx';
import styles from './policy.module.css';
import { Reported } from './reported.tsx';
import { Words } from './words.tsx';

export function Policy() {
  const { name } = useParams({ from: '/inside/policies/$name' });
  const tenant = useTenant();
  const navigate = useNavigate();
  const loaded = usePolicy(name);
  const [isDeleting, setDeleting] = useState(false);
  const policy = loaded.data?.data;
  const denied = useMayNotWrite(policy?.global === true);
  return (
    <Page
      title={name}
      says={policy?.global === true ? `${text.global}. ${text.globalSays}` : undefined}
      crumb={<Link to="/policies">{text.crumb}</Link>}
      actions={
        loaded.isError && policy === undefined ? null : (
          <>
            <Button
              disabledReason={denied}
              onPress={() => void navigate({ to: '/new-policy', search: { from: name } })}
            >
              {text.copy}
            </Button>
            <Button tone="danger" disabledReason={denied} onPress={() => setDeleting(true)}>
              {text.removePolicy}
            </Button>
          </>
        )
      }
    >
      {loaded.isError && policy === undefined ? (
        <Problem error={loaded.error} onRetry={() => void loaded.refetch()} />
      ) : null}
      {loaded.data === undefined ? null : <Editor key={`${tenant.id} ${name}`} loaded={loaded.data} denied={denied} />}
      {isDeleting && policy !== undefined ? <DeletePolicy policy={policy} onClose={() => setDeleting(false)} /> : null}
    </Page>
  );
}

/** Why the caller may not write the policy; undefined: nothing is known against it. */
function useMayNotWrite(isGlobal: boolean): string | undefined {
  const denied = useDenied('admin:policies');
  const { platform_admin: isPlatformAdmin } = useMe();
  return denied ?? (isGlobal && !isPlatformAdmin ? text.globalReason : undefined);
}

interface EditorProps {
  readonly loaded: Tagged<PolicyResource>;
  readonly denied: string | undefined;
}

function Editor({ loaded, denied }: EditorProps) {
  const tenant = useTenant();
  const zone = useTenantZone();
  const { name, global: isGlobal } = loaded.data;
  const edit = useEdit<PolicyResource, PolicyFields>({
    form: `policy ${name}`,
    loaded,
    fieldsOf,
    read: () => readPolicy(tenant, name),
    write: (body, ifMatch, query) =>
      tagged(
        tenant.client.send('PUT', '/v1/iam/policies/{name}', {
          path: { name },
          query,
          body,
          ifMatch,
        }),
      ),
    onSaved: () => void changed(tenant.id, 'policies'),
  });
  const { base: saved, draft, set, error } = edit;
  const fault = faultOf(draft);
  const proposal = { policies: [newPolicyOf(name, draft, isGlobal)] };
  const isRuleChanged = ruleOf(draft) !== ruleOf(fieldsOf(saved));
  const difference = useDifference(isRuleChanged ? proposal : undefined, fault);
  const isLockOut = error instanceof ProblemError && error.code === 'would_lock_out';
  return (
    <div className={styles.editor}>
      <Courses
        main={
          <Form className={styles.form} fault={fault} onSend={() => edit.save()}>
            <Notices notices={saved.notices} />
            <PolicyForm
              draft={draft}
              set={set}
              error={error}
              isGlobal={isGlobal}
              zone={isGlobal ? undefined : zone}
              stored={saved.conditions}
            />
            <DifferenceSection state={difference} isGlobal={isGlobal} />
            <SaveBar
              work={edit}
              action={text.save}
              saved={text.saved[saved.mode]}
              disabledReason={denied ?? (edit.isChanged ? fault : common.noChange)}
              refusal={isLockOut ? <LockOut error={error} onForce={() => edit.save({ force: true })} /> : undefined}
            >
              <DifferenceLine state={difference} />
            </SaveBar>
          </Form>
        }
        side={
          <>
            <section>
              <Words draft={draft} zone={isGlobal ? undefined : zone} />
              {isGlobal ? null : <Small>{text.platformAdmins}</Small>}
            </section>
            {saved.mode === 'report' ? <Reported policy={saved} /> : null}
            <TryRequest proposal={proposal} fault={fault} />
            <section>
              <SectionHead title={text.facts} />
              <Facts
                facts={[
                  { name: text.created, value: <Moment time={saved.created_at} /> },
                  { name: text.updated, value: <Moment time={saved.updated_at} /> },
                ]}
              />
            </section>
          </>
        }
      />
    </div>
  );
}
