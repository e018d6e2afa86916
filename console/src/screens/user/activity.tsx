/** The audit rows of what a user did, or of what was done to the user. */

import { Link } from '@tanstack/react-router';
import type { User } from '../../../../client/index.ts';
import { useList } from '../../api/list.ts';
import { useTenant } from '../../api/session.ts';
import { audit as auditText } from '../../text/en/audit.ts';
import { users as text } from '../../text/en/users.ts';
import { Segments } from '../../ui/field.tsx';
import { ListTable } from '../../ui/list.tsx';
import { Empty, State } from '../../ui/mark.tsx';
import { Moment } from '../../ui/time.tsx';
import { Actor, Target } from '../audit/actor.tsx';
import { USER_ACTIVITIES } from './search.ts';
import styles from './user.module.css';

const PAGE = 50;
const TONES = { success: 'good', failure: 'care', refused: 'deny' } as const;

type Shown = (typeof USER_ACTIVITIES)[number];

interface ActivityProps {
  readonly user: User;
  readonly shown: Shown;
  readonly onShow: (shown: Shown) => void;
}

export function Activity({ user, shown, onShow }: ActivityProps) {
  const { id: tenant, client } = useTenant();
  const query = shown === 'by' ? { actor: user.id } : { target: `user/${user.id}` };
  const list = useList<'/v1/iam/audit'>([tenant, 'audit', query], (cursor, signal) =>
    client.request('GET', '/v1/iam/audit', { query: { ...query, limit: PAGE, cursor }, signal }),
  );
  return (
    <div className={styles.part}>
      <Segments
        label={text.activityOf}
        value={shown}
        onChange={onShow}
        options={USER_ACTIVITIES.map((value) => ({ value, label: text.activities[value] }))}
      />
      <div className={styles.wide}>
        <ListTable
          label={text.activityOf}
          list={list}
          idOf={(row) => row.id}
          empty={<Empty title={text.noActivity}>{text.noActivitySays}</Empty>}
          columns={[
            { id: 'time', title: auditText.time, cell: (row) => <Moment time={row.time} /> },
            {
              id: 'result',
              title: auditText.result,
              cell: (row) => <State tone={TONES[row.result]}>{auditText.results[row.result]}</State>,
            },
            { id: 'action', title: auditText.action, cell: (row) => <code>{row.action}</code> },
            shown === 'by'
              ? { id: 'target', title: auditText.target, cell: (row) => <Target target={row.target} /> }
              : { id: 'actor', title: auditText.actor, cell: (row) => <Actor actor={row.actor} /> },
            { id: 'address', title: auditText.address, rank: 'second', cell: (row) => <code>{row.address}</code> },
          ]}
        />
      </div>
      <Link to="/audit" search={query}>
        {text.openAudit}
      </Link>
    </div>
  );
}
