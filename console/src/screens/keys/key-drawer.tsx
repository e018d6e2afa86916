/** One key in full, and what can be done with it. */

import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiKey, IssuedApiKey } from '../../../../client/index.ts';
import { useCatalog } from '../../api/catalog.ts';
import { hasUnsaved } from '../../api/drafts.ts';
import { nameOf, Principal, shownKey } from '../../api/principal.tsx';
import { useDenied, useMe } from '../../api/session.ts';
import { useMoveToTenant } from '../../shell/move-to-tenant.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { type Fact, Facts } from '../../ui/facts.tsx';
import { Id, Note, Skeleton, Tags } from '../../ui/mark.tsx';
import { Notices } from '../../ui/notices.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, Moment, Until } from '../../ui/time.tsx';
import { Budgets } from './budgets.tsx';
import { EditKey } from './edit-key.tsx';
import { KeyActivity } from './key-activity.tsx';
import { KeyPermissions } from './key-permissions.tsx';
import { KeyUsage } from './key-usage.tsx';
import styles from './keys.module.css';
import { useKey } from './queries.ts';
import { RevokeKey } from './revoke-key.tsx';
import { RotateKey } from './rotate-key.tsx';
import type { KeyEdit } from './search.ts';
import { ShownOnce } from './shown-once.tsx';
import { KeyState } from './state.tsx';
import { summaryOf } from './summary.ts';
import { SwitchKey } from './switch-key.tsx';

const ALL_SCOPES = 60;

interface KeyDrawerProps {
  readonly id: string;
  /** The open editor; undefined: none. */
  readonly edited: KeyEdit | undefined;
  readonly onEdit: (part: KeyEdit | undefined) => void;
  readonly onClose: () => void;
}

export function KeyDrawer({ id, edited, onEdit, onClose }: KeyDrawerProps) {
  const found = useKey(id);
  const isMoving = useMoveToTenant(found.data?.data.tenant_id);
  const apiKey = isMoving ? undefined : found.data?.data;
  const [asking, setAsking] = useState<'rotate' | 'revoke' | 'disable' | 'enable'>();
  const [issued, setIssued] = useState<IssuedApiKey>();
  const me = useMe();
  const denied = useDenied('admin:keys');
  const close = (): void => setAsking(undefined);
  // One dialog at a time: the questions take the drawer's place.
  if (issued !== undefined) return <ShownOnce issued={issued} onClose={() => setIssued(undefined)} />;
  if (apiKey !== undefined && asking === 'rotate') {
    return <RotateKey apiKey={apiKey} onClose={close} onRotated={setIssued} />;
  }
  if (apiKey !== undefined && asking === 'revoke') return <RevokeKey apiKey={apiKey} onClose={close} />;
  if (apiKey !== undefined && (asking === 'disable' || asking === 'enable')) {
    return <SwitchKey apiKey={apiKey} action={asking} onClose={close} />;
  }
  const own = apiKey?.user_id === me.id;
  const reason = apiKey === undefined || apiKey.status === 'revoked' ? text.notActive : own ? undefined : denied;
  // Only a key that tokens prove has an editor of its proof.
  const isEditable = edited !== 'proof' || apiKey?.proof !== null;
  // Unsaved input stays, also if the key was revoked or the right was lost: the save shows the refusal.
  if (found.data !== undefined && edited !== undefined && isEditable && (reason === undefined || hasUnsaved())) {
    return <EditKey key={edited} loaded={found.data} part={edited} onClose={() => onEdit(undefined)} />;
  }
  return (
    <Drawer
      title={apiKey === undefined ? text.title : nameOf(apiKey)}
      onClose={onClose}
      foot={
        <>
          <Button tone="danger" disabledReason={reason} onPress={() => setAsking('revoke')}>
            {text.revoke}
          </Button>
          <Button
            disabledReason={reason}
            onPress={() => setAsking(apiKey?.status === 'disabled' ? 'enable' : 'disable')}
          >
            {apiKey?.status === 'disabled' ? text.enable : text.disable}
          </Button>
          {apiKey === undefined || apiKey.proof === null ? (
            <Button disabledReason={reason} onPress={() => setAsking('rotate')}>
              {text.rotate}
            </Button>
          ) : (
            <Button disabledReason={reason ?? denied} onPress={() => onEdit('proof')}>
              {text.editProof}
            </Button>
          )}
          <Button disabledReason={reason} onPress={() => onEdit('edit')}>
            {text.edit}
          </Button>
        </>
      }
    >
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isPending ? <Skeleton width={3} /> : null}
      {apiKey === undefined ? null : <KeyFacts apiKey={apiKey} />}
    </Drawer>
  );
}

function KeyFacts({ apiKey }: { readonly apiKey: ApiKey }) {
  const { meaning } = useCatalog();
  const { id, notices, user_id: owner } = apiKey;
  return (
    <>
      <Notices notices={notices} />
      {apiKey.proof?.ambiguous === true ? <Note tone="care">{text.ambiguous}</Note> : null}
      <p>{summaryOf(apiKey, meaning)}</p>
      <Facts
        facts={[
          { name: text.state, value: <KeyState apiKey={apiKey} /> },
          { name: text.description, value: apiKey.description },
          ...(apiKey.proof === null
            ? [{ name: text.key, value: <Id value={apiKey.prefix} shown={shownKey(apiKey)} /> }]
            : proofFacts(apiKey.proof)),
          { name: text.owner, value: owner === null ? text.tenantItself : <Principal type="user" id={owner} /> },
          { name: text.scopes, value: <Tags values={apiKey.scopes} atMost={ALL_SCOPES} /> },
          { name: text.lastUse, value: <Ago time={apiKey.last_used_at} /> },
          { name: text.expires, value: <Until time={apiKey.expires_at} /> },
          { name: text.created, value: <Moment time={apiKey.created_at} /> },
          { name: text.createdBy, value: <Creator creator={apiKey.created_by} /> },
          { name: text.id, value: <Id value={id} /> },
          ...Object.entries(apiKey.metadata).map(([name, value]) => ({ name, value })),
        ]}
      />
      <p className={styles.ways}>
        {apiKey.status === 'active' && apiKey.proof === null ? (
          <Link to="/connect" search={{ key: id }}>
            {text.connect}
          </Link>
        ) : null}
        <Link to="/explain" search={{ key: id }}>
          {text.explain}
        </Link>
      </p>
      <Budgets apiKey={apiKey} />
      <KeyPermissions apiKey={apiKey} />
      <KeyUsage apiKey={apiKey} />
      <KeyActivity apiKey={apiKey} />
    </>
  );
}

function proofFacts({ issuer, subject, claims }: NonNullable<ApiKey['proof']>): readonly Fact[] {
  const rules = claims.map(({ claim, in: values }) => text.claimIs(claim, text.or(values)));
  return [
    { name: text.proof, value: text.proofSays(subject, issuer) },
    { name: text.proofClaims, value: rules.length === 0 ? null : rules.join('; ') },
  ];
}

function Creator({ creator }: { readonly creator: ApiKey['created_by'] }) {
  const { type, id } = creator;
  return type === 'system' || id === null ? text.system : <Principal type={type} id={id} />;
}
