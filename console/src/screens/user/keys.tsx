/** The keys that a user owns. */

import { Link } from '@tanstack/react-router';
import type { User } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { nameOf } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { keys as keyText } from '../../text/en/keys.ts';
import { users as text } from '../../text/en/users.ts';
import { ListTable, TwoLines } from '../../ui/list.tsx';
import { Empty, Id, State, Tags } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Ago, Until } from '../../ui/time.tsx';
import styles from './user.module.css';

const PAGE = 50;
const TONES = { active: 'good', expired: 'off', revoked: 'deny' } as const;

export function Keys({ user }: { readonly user: User }) {
  const { id: tenant, client } = useTenant();
  const list = useList<'/v1/iam/api-keys'>([tenant, 'keys', { user_id: user.id }], (cursor, signal) =>
    client.request('GET', '/v1/iam/api-keys', { query: { user_id: user.id, limit: PAGE, cursor }, signal }),
  );
  return (
    <div className={styles.part}>
      <div className={styles.wide}>
        <SectionHead
          title={text.keys}
          small={text.keysSay}
          link={
            <Link to="/keys" search={{ user: user.id }}>
              {text.openKeys}
            </Link>
          }
        />
        <ListTable
          label={text.keys}
          list={list}
          idOf={(key) => key.id}
          empty={<Empty title={text.noKeys}>{text.noKeysSay}</Empty>}
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
            { id: 'key', title: keyText.key, cell: (key) => <Id value={key.prefix} shown={`${key.prefix}…${key.last_four}`} /> },
            { id: 'scopes', title: keyText.scopes, rank: 'second', cell: (key) => <Tags values={key.scopes} /> },
            { id: 'used', title: keyText.lastUse, rank: 'phoneOff', cell: (key) => <Ago time={key.last_used_at} /> },
            { id: 'expires', title: keyText.expires, rank: 'phoneOff', cell: (key) => <Until time={key.expires_at} /> },
          ]}
        />
      </div>
    </div>
  );
}
