/** The keys that a user owns, and those that it created. */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { User } from '../../../../client/index.ts';
import { nameOf, shownKey } from '../../api/principal.tsx';
import { useDenied } from '../../api/session.ts';
import { keys as keyText } from '../../text/en/keys.ts';
import { users as text } from '../../text/en/users.ts';
import { ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, Id, State, Tags } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import { useKeys } from '../keys/queries.ts';
import type { KeysSearch } from '../keys/search.ts';
import { KeyOwner } from '../keys/state.tsx';
import styles from './user.module.css';

const TONES = { active: 'good', disabled: 'off', expired: 'off', revoked: 'deny' } as const;

export function Keys({ user }: { readonly user: User }) {
  const denied = useDenied('admin:keys');
  return (
    <div className={styles.part}>
      <KeyList
        title={text.keys}
        says={text.keysSay}
        query={{ user_id: user.id }}
        search={{ user: user.id }}
        empty={<Empty title={text.noKeys}>{text.noKeysSay}</Empty>}
      />
      {denied === undefined ? (
        <KeyList
          title={text.madeKeys}
          says={text.madeKeysSay}
          query={{ created_by: user.id }}
          search={{ creator: user.id }}
          empty={<Empty title={text.noMadeKeys}>{text.noMadeKeysSay}</Empty>}
        />
      ) : null}
    </div>
  );
}

interface KeyListProps {
  readonly title: string;
  readonly says: string;
  readonly query: { readonly user_id?: string; readonly created_by?: string };
  /** The same selection on the screen of all keys. */
  readonly search: KeysSearch;
  readonly empty: ReactNode;
}

function KeyList({ title, says, query, search, empty }: KeyListProps) {
  const list = useKeys(query);
  return (
    <div className={styles.wide}>
      <SectionHead
        title={title}
        small={says}
        link={
          <Link to="/keys" search={search}>
            {text.openKeys}
          </Link>
        }
      />
      <ListTable
        label={title}
        list={list}
        idOf={(key) => key.id}
        empty={empty}
        columns={[
          {
            id: 'name',
            title: keyText.name,
            cell: ({ id, name, description }) => (
              <TwoLines
                name={
                  <Link to="/keys" search={{ open: id }}>
                    {nameOf({ name, description })}
                  </Link>
                }
              />
            ),
          },
          {
            id: 'state',
            title: keyText.state,
            cell: ({ status }) => <State tone={TONES[status]}>{keyText.states[status]}</State>,
          },
          {
            id: 'key',
            title: keyText.key,
            cell: (key) => <Id value={key.proof?.subject ?? key.prefix} shown={shownKey(key)} />,
          },
          { id: 'owner', title: keyText.owner, rank: 'second', cell: (key) => <KeyOwner apiKey={key} /> },
          { id: 'scopes', title: keyText.scopes, rank: 'second', cell: (key) => <Tags values={key.scopes} /> },
          { id: 'used', title: keyText.lastUse, rank: 'phoneOff', cell: (key) => <Ago time={key.last_used_at} /> },
          { id: 'expires', title: keyText.expires, rank: 'phoneOff', cell: (key) => <Until time={key.expires_at} /> },
        ]}
      />
    </div>
  );
}
