/** The caller's own account: what they are, their sessions, their password. */

import { useMe } from '../../api/session.ts';
import { account as text } from '../../text/en/account.ts';
import { Facts } from '../../ui/facts.tsx';
import { Id, Small, Tags } from '../../ui/mark.tsx';
import { Page, SectionHead } from '../../ui/page.tsx';
import styles from './account.module.css';
import { Budgets } from './budgets.tsx';
import { ChangePassword } from './change-password.tsx';
import { Sessions } from './sessions.tsx';

export function Account() {
  const me = useMe();
  return (
    <Page title={text.title} says={me.name}>
      <div className={styles.sections}>
        <section>
          <Facts
            facts={[
              { name: text.email, value: me.email },
              { name: text.tenant, value: me.tenant_id },
              { name: text.roles, value: me.roles.length === 0 ? text.none : me.roles.join(', ') },
              { name: text.id, value: <Id value={me.id} /> },
            ]}
          />
        </section>
        <section>
          <SectionHead title={text.permissions} small={text.permissionsSay} />
          <Tags values={me.permissions} atMost={60} />
        </section>
        {me.budgets.length === 0 ? null : <Budgets budgets={me.budgets} />}
        <section>
          <Sessions />
        </section>
        <section>
          <SectionHead title={text.password} />
          {me.source === 'local' ? <ChangePassword /> : <Small>{text.passwordElsewhere}</Small>}
        </section>
      </div>
    </Page>
  );
}
