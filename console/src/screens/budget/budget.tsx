/** One budget: its members, what is left of it, and what has spent it. */

import { Link, useParams } from '@tanstack/react-router';
import type { Budget as BudgetResource } from '../../../../client/index.ts';
import { readBudget, useBudget } from '../../api/budgets.ts';
import { changed } from '../../api/changed.ts';
import { type Tagged, useEdit } from '../../api/edit.ts';
import { tagged } from '../../api/one.ts';
import { useCurrency } from '../../api/prices.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { common } from '../../text/en/common.ts';
import { Courses } from '../../ui/courses.tsx';
import { Form } from '../../ui/form.tsx';
import { Small } from '../../ui/mark.tsx';
import { Notices } from '../../ui/notices.tsx';
import { Page } from '../../ui/page.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import { Unloaded } from '../../ui/unloaded.tsx';
import { Actions } from './actions.tsx';
import styles from './budget.module.css';
import { type BudgetFields, changesOf, faultOf, fieldsOf, startsOver } from './draft.ts';
import { BudgetForm } from './fields.tsx';
import { Now } from './now.tsx';
import { Preview } from './preview.tsx';
import { Side } from './side.tsx';
import { limitOf, scopeOf } from './summary.ts';

export function Budget() {
  const tenant = useTenant();
  const { id } = useParams({ from: '/inside/budgets/$id' });
  const currency = useCurrency();
  const loaded = useBudget(id);
  const crumb = <Link to="/budgets">{text.crumb}</Link>;
  if (loaded.data === undefined) return <Unloaded query={loaded} title={text.crumb} crumb={crumb} />;
  const budget = loaded.data.data;
  return (
    <Page
      title={budget.name}
      says={`${limitOf(budget, currency)}, ${scopeOf(budget)}`}
      crumb={crumb}
      actions={<Actions budget={budget} />}
    >
      <Notices notices={budget.notices} />
      <Now budget={budget} />
      <div className={styles.editor}>
        <Editor key={`${tenant.id} ${id}`} loaded={loaded.data} />
      </div>
    </Page>
  );
}

function Editor({ loaded }: { readonly loaded: Tagged<BudgetResource> }) {
  const tenant = useTenant();
  const denied = useDenied('admin:budgets');
  const { id } = loaded.data;
  const edit = useEdit<BudgetResource, BudgetFields>({
    form: `budget ${id}`,
    loaded,
    fieldsOf,
    read: () => readBudget(tenant, id),
    write: (changes, ifMatch) =>
      tagged(tenant.client.send('PUT', '/v1/iam/budgets/{id}', { path: { id }, body: changesOf(changes), ifMatch })),
    onSaved: () => void changed(tenant.id, 'budgets'),
  });
  const { draft, set, error } = edit;
  const fault = faultOf(draft);
  return (
    <Courses
      main={
        <Form noValidate className={styles.form} fault={fault} onSend={() => edit.save()}>
          <BudgetForm draft={draft} set={set} error={error} isNew={false} />
          <SaveBar
            work={edit}
            action={text.save}
            saved={text.saved}
            disabledReason={denied ?? fault ?? (edit.isChanged ? undefined : common.noChange)}
            comparable={comparable}
          >
            {edit.isChanged && startsOver(draft, fieldsOf(edit.base)) ? <Small>{text.startsOver}</Small> : null}
          </SaveBar>
        </Form>
      }
      side={
        <>
          <Side budget={loaded.data} />
          <Preview draft={draft} fault={denied ?? fault} />
        </>
      }
    />
  );
}

/** Leaves out the amounts, which change by themselves, so that a conflict does not show them. */
function comparable({ state: _, ...rest }: BudgetResource) {
  return rest;
}
