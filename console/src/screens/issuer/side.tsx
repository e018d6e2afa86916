/** Beside the editor: what the issuer grants, its keys and their age, what refers to it, and its record. */

import { useMutation } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Issuer } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { keysHealth } from '../../api/keys-health.ts';
import { useList } from '../../api/list.ts';
import { nameOf } from '../../api/principal.tsx';
import { useDenied, useTenant } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Id, Note, Skeleton, Small, Tags } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Ago, Moment, useNow } from '../../ui/time.tsx';
import { IssuerState, KeysState } from '../issuers/issuers.tsx';
import type { UsersFields } from './draft.ts';
import { Grants } from './grants.tsx';
import styles from './issuer.module.css';

const KIDS = 8;

interface SideProps {
  readonly issuer: Issuer;
  /** The draft's. */
  readonly users: UsersFields | undefined;
}

export function Side({ issuer, users }: SideProps) {
  return (
    <>
      <Keys issuer={issuer} />
      <Grants users={users} />
      <Bound issuer={issuer} />
      <section>
        <SectionHead title={text.facts} />
        <Facts
          facts={[
            { name: text.state, value: <IssuerState issuer={issuer} /> },
            { name: text.kind, value: text.kinds[issuer.kind] },
            {
              name: text.revokedBefore,
              value: issuer.revoked_before === null ? text.notRevoked : <Moment time={issuer.revoked_before} />,
            },
            { name: text.created, value: <Moment time={issuer.created_at} /> },
            { name: text.changed, value: <Moment time={issuer.updated_at} /> },
            { name: text.id, value: <Id value={issuer.id} /> },
          ]}
        />
      </section>
    </>
  );
}

function Keys({ issuer }: { readonly issuer: Issuer }) {
  const { id: tenant, client } = useTenant();
  const denied = useDenied('admin:issuers');
  const now = useNow();
  const health = keysHealth(issuer, now);
  const { id, keys } = issuer;
  const refresh = useMutation({
    mutationFn: () => client.request('POST', '/v1/iam/issuers/{id}/refresh', { path: { id } }),
    onSettled: () => changed(tenant, 'issuers'),
  });
  return (
    <section aria-label={text.keyState}>
      <SectionHead title={text.keyState} />
      <div className={styles.stack}>
        <Facts
          facts={[
            { name: text.state, value: <KeysState kind={health.kind} /> },
            { name: text.count, value: keys.count },
            { name: text.kids, value: keys.kids.length === 0 ? null : <Tags values={keys.kids} atMost={KIDS} /> },
            {
              name: keys.pasted ? text.pastedAt : text.fetchedAt,
              value: keys.fetched_at === null ? null : <Ago time={keys.fetched_at} />,
            },
          ]}
        />
        {health.kind === 'never' ? <Note tone="care">{text.neverSays}</Note> : null}
        {health.kind === 'stale' ? <Note tone="deny">{text.staleSays}</Note> : null}
        {health.kind === 'old' ? <Note tone="care">{text.oldSays(health.days)}</Note> : null}
        {keys.error === null ? null : (
          <Note tone="care">
            {text.errorSays}
            <Small>{keys.error}</Small>
          </Note>
        )}
        {keys.pasted ? null : (
          <div>
            <Button small disabledReason={denied} isPending={refresh.isPending} onPress={() => refresh.mutate()}>
              {text.refresh}
            </Button>
          </div>
        )}
        {refresh.isSuccess && refresh.data.keys.error === null ? (
          <Note tone="good" isLive>
            {text.refreshed}
          </Note>
        ) : null}
        {refresh.isError ? <Problem error={refresh.error} /> : null}
      </div>
    </section>
  );
}

const SHOWN = 5;

/** The first keys that its tokens prove. */
function Bound({ issuer: { name } }: { readonly issuer: Issuer }) {
  const { id: tenant, client } = useTenant();
  const query = { issuer: name, status: 'active' as const };
  const list = useList<'/v1/iam/api-keys'>([tenant, 'keys', query, SHOWN], (cursor, signal) =>
    client.request('GET', '/v1/iam/api-keys', { query: { ...query, limit: SHOWN, cursor }, signal }),
  );
  if (list.kind === 'failed') return null;
  const rows = list.kind === 'loaded' ? list.rows : [];
  return (
    <section aria-label={text.boundKeys}>
      <SectionHead
        title={text.boundKeys}
        link={
          rows.length === 0 ? undefined : (
            <Link to="/keys" search={{ issuer: name }}>
              {text.openKeys}
            </Link>
          )
        }
      />
      {list.kind === 'loading' ? <Skeleton width={3} /> : null}
      {list.kind === 'loaded' && rows.length === 0 ? <Small>{text.noBoundKeys}</Small> : null}
      <ul>
        {rows.map((key) => (
          <Entry
            key={key.id}
            name={
              <Link to="/keys" search={{ open: key.id }}>
                {nameOf(key)}
              </Link>
            }
            second={key.proof?.subject}
          />
        ))}
      </ul>
      <p>
        <Link to="/keys" search={{ open: 'new', issuer: name }}>
          {text.bindKey}
        </Link>
      </p>
    </section>
  );
}
