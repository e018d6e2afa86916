/** Creates a policy, empty or as another one is. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { ProblemError } from '../../../../client/index.ts';
import { isPolicyName, policiesChanged, usePolicy, useTenantZone } from '../../api/policies.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { common } from '../../text/en/common.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { Courses } from '../../ui/courses.tsx';
import { Checkbox, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { fieldError, Problem } from '../../ui/problem.tsx';
import { Refused } from '../users/refused.tsx';
import { Affected } from './affected.tsx';
import { EMPTY_POLICY, faultOf, fieldsOf, newPolicyOf, type PolicyFields } from './draft.ts';
import { PolicyForm, SHOWN_AT_FIELDS } from './fields.tsx';
import { LockOut } from './lock-out.tsx';
import styles from './policy.module.css';
import { Simulation } from './simulation.tsx';
import { Words } from './words.tsx';

/** In a simulation of a policy that has no name yet. */
const UNNAMED = 'new-policy-without-a-name';

export function NewPolicy() {
  const { from } = useSearch({ from: '/inside/new-policy' });
  return (
    <Page title={text.create} crumb={<Link to="/policies">{text.crumb}</Link>}>
      {from === undefined ? <Form key="empty" start={EMPTY_POLICY} /> : <Copy key={from} from={from} />}
    </Page>
  );
}

function Copy({ from }: { readonly from: string }) {
  const loaded = usePolicy(from);
  if (loaded.data !== undefined) return <Form start={fieldsOf(loaded.data.data)} />;
  return loaded.isError ? <Problem error={loaded.error} onRetry={() => void loaded.refetch()} /> : null;
}

function Form({ start }: { readonly start: PolicyFields }) {
  const { id: tenant, client } = useTenant();
  const tenantZone = useTenantZone();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const denied = useDenied('admin:policies');
  const { platform_admin: isPlatformAdmin } = useMe();
  const [name, setName] = useState('');
  const [draft, setDraft] = useState(start);
  const [isGlobal, setGlobal] = useState(false);
  const zone = isGlobal ? undefined : tenantZone;
  const create = useMutation({
    mutationFn: (force: boolean) =>
      client.request('POST', '/v1/iam/policies', {
        body: newPolicyOf(name, draft, isGlobal),
        ...(force ? { query: { force } } : {}),
      }),
    onSuccess: async (policy) => {
      await policiesChanged(queries, tenant);
      void navigate({ to: '/policies/$name', params: { name: policy.name } });
    },
  });
  const { error } = create;
  const isTaken = error instanceof ProblemError && error.code === 'already_exists';
  const isLockOut = error instanceof ProblemError && error.code === 'would_lock_out';
  const malformed = name === '' || isPolicyName(name) ? undefined : text.nameFault;
  const fault = faultOf(draft);
  const isAtField = ['/name', ...SHOWN_AT_FIELDS].some((pointer) => fieldError(error, pointer) !== undefined);
  return (
    <div className={styles.editor}>
      <Courses
        main={
          <form
            className={styles.form}
            onSubmit={(event) => {
              event.preventDefault();
              if (isPolicyName(name) && fault === undefined) create.mutate(false);
            }}
          >
            <TextField
              label={text.name}
              value={name}
              onChange={(value) => {
                setName(value);
                if (isTaken) create.reset();
              }}
              hint={text.nameHint}
              error={malformed ?? (isTaken ? text.nameTaken : fieldError(error, '/name'))}
              maxLength={63}
              autoComplete="off"
              isMono
              isRequired
              autoFocus
            />
            {isPlatformAdmin ? (
              <div>
                <Checkbox isSelected={isGlobal} onChange={setGlobal}>
                  {text.global}
                </Checkbox>
                <Small>{text.globalSays}</Small>
              </div>
            ) : null}
            <PolicyForm
              draft={draft}
              set={(change) => setDraft((before) => ({ ...before, ...change }))}
              error={error}
              isGlobal={isGlobal}
              zone={zone}
            />
            {isLockOut ? <LockOut error={error} onForce={() => create.mutate(true)} /> : null}
            {create.isError && !isTaken && !isAtField && !isLockOut ? <Refused error={error} /> : null}
            <div className={classes(styles.foot, styles.save)}>
              <Button
                tone="primary"
                type="submit"
                disabledReason={denied ?? (name === '' ? text.nameNeeded : malformed) ?? fault}
                isPending={create.isPending}
              >
                {text.creating}
              </Button>
              <Button tone="quiet" onPress={() => void navigate({ to: '/policies' })}>
                {common.cancel}
              </Button>
              <Small>{text.saveSays}</Small>
            </div>
          </form>
        }
        side={
          <>
            <section>
              <Words draft={draft} zone={zone} />
            </section>
            <Affected {...draft} isGlobal={isGlobal} />
            <Simulation proposal={newPolicyOf(isPolicyName(name) ? name : UNNAMED, draft, isGlobal)} fault={fault} />
          </>
        }
      />
    </div>
  );
}
