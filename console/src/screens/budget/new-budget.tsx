/** Creates a budget, with what it would have done last month beside the form. */

import { Link, useNavigate } from '@tanstack/react-router';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Courses } from '../../ui/courses.tsx';
import { Form } from '../../ui/form.tsx';
import { Page } from '../../ui/page.tsx';
import { SaveBar } from '../../ui/save-bar.tsx';
import styles from './budget.module.css';
import { faultOf, NEW_BUDGET, newBudgetOf } from './draft.ts';
import { BudgetForm } from './fields.tsx';
import { Preview } from './preview.tsx';

export function NewBudget() {
  const { id: tenant, client } = useTenant();
  const navigate = useNavigate();
  const denied = useDenied('admin:budgets');
  const create = useCreation({
    form: 'new budget',
    start: NEW_BUDGET,
    send: (fields) => client.request('POST', '/v1/iam/budgets', { body: newBudgetOf(fields) }),
    onCreated: async (budget) => {
      await changed(tenant, 'budgets');
      void navigate({ to: '/budgets/$id', params: { id: budget.id } });
    },
  });
  const { draft, set, error } = create;
  const fault = faultOf(draft);
  return (
    <Page title={text.create} crumb={<Link to="/budgets">{text.crumb}</Link>}>
      <div className={styles.editor}>
        <Courses
          main={
            <Form noValidate className={styles.form} fault={fault} onSend={() => create.save()}>
              <BudgetForm draft={draft} set={set} error={error} isNew />
              <SaveBar
                work={create}
                action={text.creating}
                disabledReason={denied ?? fault}
                onClose={() => void navigate({ to: '/budgets' })}
              />
            </Form>
          }
          side={<Preview draft={draft} fault={denied ?? fault} />}
        />
      </div>
    </Page>
  );
}
