/** Whose doing the log shows: a user, a key, or one of those that have no id. */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { whileSearching } from '../../api/queries.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { wantedOf } from '../../api/wanted.ts';
import { audit as text } from '../../text/en/audit.ts';
import { common } from '../../text/en/common.ts';
import { ChooseFrom, type ChooseItem } from '../../ui/choose-from.tsx';
import { Small } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';

const PAGE = 8;
const NAMELESS: readonly ChooseItem[] = [
  { id: 'system', name: text.system, small: text.systemSays },
  { id: 'anonymous', name: text.anonymous, small: text.anonymousSays },
];

export function ChooseActor({ onChoose }: { readonly onChoose: (actor: string) => void }) {
  const { id: tenant, client } = useTenant();
  const noUsers = useDenied('admin:users');
  const [typed, setTyped] = useState('');
  const q = useSearchText(typed);
  const wanted = wantedOf(q);
  const isId = wanted.kind === 'user' || wanted.kind === 'key';
  const users = useQuery({
    queryKey: [tenant, 'users', 'actors', q],
    placeholderData: whileSearching([tenant, 'users', 'actors', q]),
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/users', {
        query: { limit: PAGE, q: wanted.kind === 'text' ? wanted.q : undefined },
        signal,
      }),
    enabled: noUsers === undefined && (q === '' || wanted.kind === 'text'),
  });
  const keys = useQuery({
    queryKey: [tenant, 'keys', 'actors', q],
    placeholderData: whileSearching([tenant, 'keys', 'actors', q]),
    queryFn: ({ signal }) =>
      client.request('GET', '/v1/iam/api-keys', {
        query: {
          limit: PAGE,
          ...(wanted.kind === 'prefix'
            ? { prefix: wanted.prefix }
            : { q: wanted.kind === 'text' ? wanted.q : undefined }),
        },
        signal,
      }),
    enabled: wanted.kind === 'text' || wanted.kind === 'prefix',
  });
  const error = users.error ?? keys.error;
  const items: readonly ChooseItem[] = [
    ...(isId ? [{ id: q, name: q }] : []),
    ...NAMELESS.filter(({ name }) => name.startsWith(typed.trim().toLowerCase())),
    ...(isId ? [] : (users.data?.data ?? [])).map(({ id, name, email }) => ({ id, name, small: email ?? undefined })),
    ...(isId || q === '' ? [] : (keys.data?.data ?? [])).map((key) => ({
      id: key.id,
      name: nameOf(key),
      small: shownKey(key),
    })),
  ];
  return (
    <>
      <ChooseFrom
        label={text.findActor}
        placeholder={text.findActorBy}
        typed={typed}
        onType={setTyped}
        items={items}
        onChoose={onChoose}
        empty={users.isFetching || keys.isFetching ? common.loading : text.noActor}
      />
      {noUsers === undefined ? null : <Small>{text.actorById}</Small>}
      {error === null ? null : <Problem error={error} />}
    </>
  );
}
