/** Finds a key in all tenants, by its name, its description or its beginning. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { ApiKey } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { nameOf } from '../../api/principal.tsx';
import { keySearch } from '../../api/search-text.ts';
import { useTenant } from '../../api/session.ts';
import { tenants as text } from '../../text/en/tenants.ts';
import { Entry } from '../../ui/courses.tsx';
import { SearchField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';
import styles from './tenants.module.css';

const PAGE = 20;

export function FindKey({ onClose }: { readonly onClose: () => void }) {
  const { id: actingIn } = useTenant();
  const [typed, setTyped] = useState('');
  const search = useSearchText(typed);
  const found = useQuery({
    queryKey: [actingIn, 'keys of all tenants', search],
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys', {
        query: { ...keySearch(search), tenant_id: '*', limit: PAGE },
        signal,
      }),
    enabled: search !== '',
  });
  const keys = found.data?.data ?? [];
  return (
    <Drawer title={text.findKeyTitle} onClose={onClose}>
      <SearchField label={text.findKeyTitle} placeholder={text.findKeyBy} value={typed} onChange={setTyped} autoFocus />
      <Small>{text.findKeySays}</Small>
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isSuccess && keys.length === 0 ? <p role="status">{text.noKey}</p> : null}
      <ul className={styles.found} aria-busy={found.isFetching}>
        {keys.map((key) => (
          <Found key={key.id} found={key} />
        ))}
      </ul>
      {found.data?.has_more === true ? <Small>{text.moreKeys}</Small> : null}
    </Drawer>
  );
}

function Found({ found }: { readonly found: ApiKey }) {
  const { id, tenant_id: tenant, prefix, last_four: lastFour } = found;
  return (
    <Entry
      name={
        <Link to="/keys" search={{ tenant, open: id }}>
          <b>{nameOf(found)}</b>
        </Link>
      }
      second={
        <code>
          {prefix}…{lastFour}
        </code>
      }
      end={<code>{tenant}</code>}
    />
  );
}
