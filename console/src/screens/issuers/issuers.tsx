/** The authorities whose tokens the tenant accepts. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Issuer } from '../../../../client/index.ts';
import { useIssuers } from '../../api/issuers.ts';
import { type KeysHealth, keysHealth } from '../../api/keys-health.ts';
import { useDenied } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { type ListColumn, TwoLines } from '../../ui/list.tsx';
import { ListPage, OneOrAll } from '../../ui/list-page.tsx';
import { Small, State, Tags } from '../../ui/mark.tsx';
import { Ago, useNow } from '../../ui/time.tsx';
import { ISSUERS_STATES } from './search.ts';

const COLUMNS: readonly ListColumn<Issuer>[] = [
  { id: 'name', title: text.name, cell: ({ name, issuer }) => <TwoLines name={name} second={issuer} /> },
  { id: 'state', title: text.state, cell: (issuer) => <IssuerState issuer={issuer} /> },
  { id: 'kind', title: text.kind, rank: 'second', cell: ({ kind }) => text.kinds[kind] },
  {
    id: 'audiences',
    title: text.audiences,
    rank: 'second',
    cell: ({ audiences }) => <Tags values={audiences} atMost={1} />,
  },
  {
    id: 'users',
    title: text.proves,
    cell: ({ users }) => (users === null ? text.provesKeys : text.provesUsers),
  },
  {
    id: 'sso',
    title: text.login,
    rank: 'phoneOff',
    cell: ({ sso }) => (sso === null ? text.loginOff : text.loginOn),
  },
  { id: 'keys', title: text.keys, cell: (issuer) => <Keys issuer={issuer} /> },
];

export function Issuers() {
  const search = useSearch({ from: '/inside/issuers' });
  const { q, state } = search;
  const navigate = useNavigate();
  return (
    <ListPage
      texts={text}
      search={search}
      create="/new-issuer"
      denied={useDenied('admin:issuers')}
      filters={(set) => (
        <OneOrAll
          label={text.state}
          values={ISSUERS_STATES}
          texts={text.states}
          value={state}
          onChange={(value) => set({ state: value })}
        />
      )}
      list={useIssuers({ q, enabled: state === undefined ? undefined : state === 'enabled' })}
      idOf={({ id }) => id}
      onOpen={({ id }) => void navigate({ to: '/issuers/$id', params: { id } })}
      columns={COLUMNS}
    />
  );
}

export function IssuerState({ issuer }: { readonly issuer: Pick<Issuer, 'enabled'> }) {
  return issuer.enabled ? <State>{text.states.enabled}</State> : <State tone="off">{text.states.disabled}</State>;
}

/** How the keys are, and how old they are. */
function Keys({ issuer }: { readonly issuer: Issuer }) {
  const now = useNow();
  const health = keysHealth(issuer, now);
  const { count, fetched_at: at, pasted: isPasted } = issuer.keys;
  return (
    <span>
      {health.kind === 'fine' || !issuer.enabled ? text.keyCount(count) : <KeysState kind={health.kind} />}
      {at === null ? null : (
        <Small>
          {isPasted ? text.pasted : text.fetched} <Ago time={at} />
        </Small>
      )}
    </span>
  );
}

export function KeysState({ kind }: { readonly kind: KeysHealth['kind'] }) {
  switch (kind) {
    case 'fine':
      return <State>{text.fine}</State>;
    case 'never':
      return <State tone="care">{text.neverFetched}</State>;
    case 'stale':
      return <State tone="deny">{text.stale}</State>;
    case 'failing':
      return <State tone="care">{text.failing}</State>;
    case 'old':
      return <State tone="care">{text.oldPaste}</State>;
    default:
      return kind satisfies never;
  }
}
