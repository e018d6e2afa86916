/** One key in full, and what can be done with it. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiKey, IssuedApiKey } from '../../../../client/index.ts';
import { nameOf, Principal } from '../../api/principal.tsx';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { Button } from '../../ui/button.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Id, Skeleton, Tags } from '../../ui/mark.tsx';
import { Notices } from '../../ui/notices.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, Moment, Until } from '../../ui/time.tsx';
import { summaryOf } from '../roles/summary.ts';
import { RevokeKey } from './revoke-key.tsx';
import { RotateKey } from './rotate-key.tsx';
import { ShownOnce } from './shown-once.tsx';
import { KeyState } from './state.tsx';

const ALL_SCOPES = 60;

export function KeyDrawer({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const { id: tenant, client } = useTenant();
  const found = useQuery({ queryKey: [tenant, 'key', id], queryFn: ({ signal }) => client.apiKeys.get(id, { signal }) });
  const [asking, setAsking] = useState<'rotate' | 'revoke'>();
  const [issued, setIssued] = useState<IssuedApiKey>();
  const me = useMe();
  const denied = useDenied('admin:keys');
  const close = (): void => setAsking(undefined);
  // One dialog at a time: the questions take the drawer's place.
  if (issued !== undefined) return <ShownOnce issued={issued} onClose={() => setIssued(undefined)} />;
  if (found.data !== undefined && asking === 'rotate') {
    return (
      <RotateKey
        apiKey={found.data}
        onClose={close}
        onRotated={(rotated) => {
          close();
          setIssued(rotated);
        }}
      />
    );
  }
  if (found.data !== undefined && asking === 'revoke') return <RevokeKey apiKey={found.data} onClose={close} />;
  const own = found.data?.user_id === me.id;
  const reason = found.data === undefined || found.data.status === 'revoked' ? text.notActive : own ? undefined : denied;
  return (
    <Drawer
      title={found.data === undefined ? text.title : nameOf(found.data)}
      onClose={onClose}
      foot={
        <>
          <Button tone="danger" disabledReason={reason} onPress={() => setAsking('revoke')}>
            {text.revoke}
          </Button>
          <Button disabledReason={reason} onPress={() => setAsking('rotate')}>
            {text.rotate}
          </Button>
        </>
      }
    >
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isPending ? <Skeleton width={3} /> : null}
      {found.data === undefined ? null : <KeyFacts apiKey={found.data} />}
    </Drawer>
  );
}

function KeyFacts({ apiKey }: { readonly apiKey: ApiKey }) {
  const { id, notices, user_id: owner } = apiKey;
  return (
    <>
      <Notices notices={notices} />
      <p>{summaryOf(apiKey.scopes, apiKey.resource_constraints)}</p>
      <Facts
        facts={[
          { name: text.state, value: <KeyState apiKey={apiKey} /> },
          { name: text.description, value: apiKey.description },
          { name: text.key, value: <Id value={apiKey.prefix} shown={`${apiKey.prefix}…${apiKey.last_four}`} /> },
          { name: text.owner, value: owner === null ? text.tenantItself : <Principal type="user" id={owner} /> },
          { name: text.scopes, value: <Tags values={apiKey.scopes} atMost={ALL_SCOPES} /> },
          { name: text.rateLimit, value: apiKey.rate_limit_rpm?.toLocaleString('en') ?? text.noRateLimit },
          { name: text.lastUse, value: <Ago time={apiKey.last_used_at} /> },
          { name: text.expires, value: <Until time={apiKey.expires_at} /> },
          { name: text.created, value: <Moment time={apiKey.created_at} /> },
          { name: text.id, value: <Id value={id} /> },
          ...Object.entries(apiKey.metadata).map(([name, value]) => ({ name, value })),
        ]}
      />
      <p>
        <Link to="/explain" search={{ key: id }}>
          {text.explain}
        </Link>
      </p>
    </>
  );
}
