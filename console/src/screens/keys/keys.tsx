/** The tenant's API keys. */

import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import type { ApiKey } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { SearchField, Segments } from '../../ui/field.tsx';
import { ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, Id, State, Tags } from '../../ui/mark.tsx';
import { Page, Tools } from '../../ui/page.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import { useLate } from '../../ui/use-late.ts';
import { KEY_FILTERS } from './search.ts';

export function Keys() {
  const tenant = useTenant();
  const search = useSearch({ from: '/inside/keys' });
  const navigate = useNavigate({ from: '/keys' });
  const [typed, setTyped] = useState(search.q ?? '');
  const q = useLate(typed);
  useEffect(() => {
    void navigate({ search: (before) => ({ ...before, q: q === '' ? undefined : q }), replace: true });
  }, [q, navigate]);
  const status = search.status === 'expiring' ? 'active' : search.status;
  const query = { limit: 50, ...(status === undefined ? {} : { status }) };
  const list = useList<'/v1/iam/api-keys'>([tenant.id, 'keys', query], (cursor, signal) =>
    tenant.client.request('GET', '/v1/iam/api-keys', {
      query: { ...query, ...(cursor === undefined ? {} : { cursor }) },
      signal,
    }),
  );
  return (
    <Page title={text.title}>
      <Tools end={text.lag}>
        <SearchField label={text.search} placeholder={text.searchFor} value={typed} onChange={setTyped} />
        <Segments
          label={text.status}
          value={search.status ?? 'all'}
          onChange={(value) =>
            void navigate({ search: (before) => ({ ...before, status: value === 'all' ? undefined : value }) })
          }
          options={(['all', ...KEY_FILTERS] as const).map((value) => ({ value, label: text.filters[value] }))}
        />
      </Tools>
      <ListTable
        label={text.title}
        list={list}
        idOf={(key) => key.id}
        empty={<Empty title={text.empty}>{text.emptySays}</Empty>}
        columns={[
          { id: 'name', title: text.name, cell: (key) => <TwoLines name={key.description} /> },
          { id: 'key', title: text.key, cell: (key) => <Id value={key.prefix} shown={`${key.prefix}…${key.last_four}`} /> },
          { id: 'scopes', title: text.scopes, rank: 'second', cell: (key) => <Tags values={key.scopes} /> },
          { id: 'used', title: text.lastUse, rank: 'phoneOff', cell: (key) => <Ago time={key.last_used_at} /> },
          { id: 'expires', title: text.expires, rank: 'phoneOff', cell: (key) => <Until time={key.expires_at} /> },
          { id: 'state', title: text.state, cell: (key) => <KeyState apiKey={key} /> },
        ]}
      />
    </Page>
  );
}

function KeyState({ apiKey: { status } }: { readonly apiKey: ApiKey }) {
  const tone = { active: 'good', expired: 'off', revoked: 'deny' } as const;
  return <State tone={tone[status]}>{text.states[status]}</State>;
}
