/** The first steps of a new tenant on one page: its first administrator, its first key, and its first request. */

import { Link } from '@tanstack/react-router';
import { useTenant } from '../../api/session.ts';
import { useTenantName } from '../../shell/tenant-name.ts';
import { onboarding as text } from '../../text/en/onboarding.ts';
import { Page } from '../../ui/page.tsx';
import { FirstAdministrator } from './first-administrator.tsx';
import { FirstKey } from './first-key.tsx';
import { FirstRequest } from './first-request.tsx';
import styles from './onboarding.module.css';
import { Step } from './step.tsx';

export function Onboarding() {
  const { id } = useTenant();
  const name = useTenantName();
  return (
    <Page title={text.title(name)} says={text.says}>
      <ol className={styles.steps}>
        <Step title={text.tenant} isDone>
          <p>
            <b>{name}</b> <code>{id}</code>{' '}
            <Link to="/tenants" search={{ open: id }}>
              {text.toTenant}
            </Link>
          </p>
        </Step>
        <FirstAdministrator />
        <FirstKey />
        <FirstRequest />
      </ol>
    </Page>
  );
}
