/** Creates a policy, empty or as another one is. */

import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { ProblemError } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { isName } from '../../api/names.ts';
import { usePolicy, useTenantZone } from '../../api/policies.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Courses } from '../../ui/courses.tsx';
import { Checkbox } from '../../ui/field.tsx';
import { Form } from '../../ui/form.tsx';
import { Small } from '../../ui/mark.tsx';
import { NameField } from '../../ui/name-field.tsx';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { DifferenceLine, DifferenceSection } from '../difference/difference.tsx';
import { TryRequest } from '../difference/try-request.tsx';
import { useDifference } from '../difference/use-difference.ts';
import { EMPTY_POLICY, faultOf, fieldsOf, newPolicyOf, type PolicyFields } from './draft.ts';
import { PolicyForm } from './fields.tsx';
import { LockOut } from './lock-out.tsx';
import styles from './policy.module.css';
import { Words } from './words.tsx';

/** In a comparison of a policy that has no name yet. */
const UNNAMED = 'new-policy-without-a-name';

export function NewPolicy() {
  const { from } = useSearch({ from: '/inside/new-policy' });
  return (
    <Page title={text.create} crumb={<Link to="/policies">{text.crumb}</Link>}>
      {from === undefined ? <NewForm key="empty" start={EMPTY_POLICY} /> : <Copy key={from} from={from} />}
    </Page>
  );
}

function Copy({ from }: { readonly from: string }) {
  const loaded = usePolicy(from);
  if (loaded.data !== undefined) return <NewForm start={fieldsOf(loaded.data.data)} />;
  return loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : null;
}

function NewForm({ start }: { readonly start: PolicyFields }) {
  const { id: tenant, client } = useTenant();
  const tenantZone = useTenantZone();
  const navigate = useNavigate();
  const denied = useDenied('admin:policies');
  const { platform_admin: isPlatformAdmin } = useMe();
  const create = useCreation({
    form: 'new policy',
    start: { ...start, name: '', global: false },
    send: ({ name, global, ...fields }, query) =>
      client.request('POST', '/v1/iam/policies', { body: newPolicyOf(name, fields, global), query }),
    onCreated: async (policy) => {
      await changed(tenant, 'policies');
      void navigate({ to: '/policies/$name', params: { name: policy.name } });
    },
  });
  const { draft, set, error } = create;
  const { name, global: isGlobal, ...fields } = draft;
  const zone = isGlobal ? undefined : tenantZone;
  const isLockOut = error instanceof ProblemError && error.code === 'would_lock_out';
  const wrongName = name === '' ? text.nameNeeded : isName(name) ? undefined : text.nameFault;
  const fault = faultOf(draft);
  const proposal = { policies: [newPolicyOf(wrongName === undefined ? name : UNNAMED, fields, isGlobal)] };
  const difference = useDifference(draft.actions.length === 0 ? undefined : proposal, fault);
  return (
    <div className={styles.editor}>
      <Courses
        main={
          <Form className={styles.form} fault={wrongName ?? fault} onSend={() => create.save()}>
            <NameField value={name} onChange={(value) => set({ name: value })} error={error} texts={text} autoFocus />
            {isPlatformAdmin ? (
              <div>
                <Checkbox isSelected={isGlobal} onChange={(global) => set({ global })}>
                  {text.global}
                </Checkbox>
                <Small>{text.globalSays}</Small>
              </div>
            ) : null}
            <PolicyForm draft={draft} set={set} error={error} isGlobal={isGlobal} zone={zone} />
            <DifferenceSection state={difference} isGlobal={isGlobal} />
            <SaveBar
              work={create}
              action={text.creating}
              disabledReason={denied ?? wrongName ?? fault}
              refusal={isLockOut ? <LockOut error={error} onForce={() => create.save({ force: true })} /> : undefined}
              onClose={() => void navigate({ to: '/policies' })}
            >
              <DifferenceLine state={difference} />
              <Small>{text.saveSays}</Small>
            </SaveBar>
          </Form>
        }
        side={
          <>
            <section>
              <Words draft={draft} zone={zone} />
              {isGlobal ? null : <Small>{text.platformAdmins}</Small>}
            </section>
            <TryRequest proposal={proposal} fault={fault} />
          </>
        }
      />
    </div>
  );
}
