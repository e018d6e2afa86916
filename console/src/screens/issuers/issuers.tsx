/** The authorities whose tokens the tenant accepts. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import type { Issuer } from '../../../../client/index.ts';
import { useIssuers } from '../../api/issuers.ts';
import { type KeysHealth, keysHealth } from '../../api/keys-health.ts';
import { useDenied } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import { SearchField, Segments } from '../../ui/field.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { Small, State, Tags } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Ago, useNow } from '../../ui/time.tsx';
import { useTyped } from '../../ui/use-typed.ts';
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
  const denied = useDenied('admin:issuers');
  const { q: searched, state } = useSearch({ from: '/inside/issuers' });
  const navigate = useNavigate({ from: '/issuers' });
  const [typed, setTyped] = useTyped(searched ?? '', (q) => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  });
  const list = useIssuers({ q: searched, enabled: state === undefined ? undefined : state === 'enabled' });
  const isFiltered = searched !== undefined || state !== undefined;
  const showAll = (): void => {
    setTyped('');
    void navigate({ search: (before) => ({ ...before, q: undefined, state: undefined }) });
  };
  const create = (
    <Button tone="primary" disabledReason={denied} onPress={() => void navigate({ to: '/new-issuer', search: {} })}>
      {text.create}
    </Button>
  );
  return (
    <Page title={text.title} says={text.says} actions={create}>
      <Tools>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Segments
          label={text.state}
          value={state ?? 'all'}
          onChange={(value) =>
            void navigate({ search: (before) => ({ ...before, state: value === 'all' ? undefined : value }) })
          }
          options={(['all', ...ISSUERS_STATES] as const).map((value) => ({ value, label: text.states[value] }))}
        />
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={(issuer) => issuer.id}
        onOpen={({ id }) => void navigate({ to: '/issuers/$id', params: { id } })}
        empty={<ListEmpty texts={text} onShowAll={isFiltered ? showAll : undefined} />}
        columns={COLUMNS}
      />
    </Page>
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
