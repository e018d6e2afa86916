/**
 * The confirmation before a tenant is suspended, activated or deleted. The dialog shows a rejection with the next step.
 */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { ProblemError, type Tenant } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useTenant } from '../../api/session.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Confirm } from '../../ui/confirm.tsx';
import { Note } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';
import { tenantChanged } from './load.ts';
import styles from './tenants.module.css';

export type AskKind = 'suspend' | 'activate' | 'delete';

interface TenantAskProps {
  readonly tenant: Tenant;
  readonly kind: AskKind;
  readonly onClose: () => void;
}

const TITLES = { suspend: text.suspendTitle, activate: text.activateTitle, delete: text.deleteTitle } as const;

export function TenantAsk({ tenant: { id, name }, kind, onClose }: TenantAskProps) {
  const actingIn = useTenant().id;
  return (
    <Confirm
      title={TITLES[kind](name)}
      action={text[kind]}
      tone={kind === 'activate' ? 'primary' : 'danger'}
      word={kind === 'activate' ? undefined : id}
      perform={(force) => doneTo(kind, id, force)}
      force={{ code: 'would_lock_out', action: text.force }}
      onClose={onClose}
      onDone={() => tenantChanged(actingIn, id)}
      refusal={(error) => (
        <>
          <Problem error={error} />
          {error instanceof ProblemError ? wayOn(error.code, id) : null}
        </>
      )}
    >
      <Says kind={kind} />
    </Confirm>
  );
}

function Says({ kind }: { readonly kind: AskKind }) {
  if (kind === 'activate') return <p>{text.activateSays}</p>;
  const lines = kind === 'suspend' ? text.suspendStops : text.deleteSays;
  return (
    <ul className={styles.says}>
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

function wayOn(code: ProblemError['code'], id: string): ReactNode {
  switch (code) {
    case 'would_lock_out':
      return <Note tone="care">{text.lockOut}</Note>;
    case 'last_admin':
      return <Note>{text.lastAdmin}</Note>;
    case 'in_use':
      return (
        <Note>
          {text.inUse}
          <div className={styles.ways}>
            <Link to="/users" search={{ tenant: id }}>
              {text.itsUsers}
            </Link>
            <Link to="/keys" search={{ tenant: id, status: 'active' }}>
              {text.itsKeys}
            </Link>
          </div>
        </Note>
      );
    default:
      return null;
  }
}

async function doneTo(kind: AskKind, id: string, force: boolean): Promise<void> {
  switch (kind) {
    case 'suspend':
      await client.request('POST', '/v1/iam/tenants/{id}/suspend', { path: { id }, query: force ? { force } : {} });
      return;
    case 'activate':
      await client.tenants.activate(id);
      return;
    case 'delete':
      await client.tenants.delete(id);
      return;
    default:
      kind satisfies never;
  }
}
