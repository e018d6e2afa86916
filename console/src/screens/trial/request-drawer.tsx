/** One request of a trial in full: what each gate decided, and the ways to its explanation and to similar requests. */

import { Link } from '@tanstack/react-router';
import type { RecentDecision } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { trial as text } from '../../text/en/trial.ts';
import buttons from '../../ui/button.module.css';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { Facts } from '../../ui/facts.tsx';
import { Id, Note, Skeleton, State } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { reasonOf } from '../overview/reasons.tsx';
import { useRequest } from './queries.ts';
import styles from './trial.module.css';
import { OtherGate, requestOf, type ShowTrial } from './trial.tsx';

interface RequestDrawerProps {
  readonly requestId: string;
  /** The row of the list; undefined: the list does not have it. */
  readonly listed: RecentDecision | undefined;
  readonly onShow: ShowTrial;
}

export function RequestDrawer({ requestId, listed, onShow }: RequestDrawerProps) {
  const found = useRequest(requestId, listed !== undefined);
  const row = listed ?? found.data;
  return (
    <Drawer
      title={row === undefined ? text.request : requestOf(row)}
      onClose={() => onShow({})}
      foot={
        row === undefined ? null : (
          <Link
            className={classes(buttons.button, buttons.primary)}
            to="/explain"
            search={{ request_id: row.request_id }}
          >
            {text.explain}
          </Link>
        )
      }
    >
      {row !== undefined ? (
        <Request row={row} onShow={onShow} />
      ) : found.isError ? (
        <>
          <Note>{text.gone}</Note>
          <Problem error={found.error} />
        </>
      ) : (
        <Skeleton width={3} />
      )}
    </Drawer>
  );
}

function Request({ row, onShow }: { readonly row: RecentDecision; readonly onShow: ShowTrial }) {
  const { principal, route, client_request_id: clientRequestId, policy, detail, resources, client_ip: address } = row;
  return (
    <>
      <Facts
        facts={[
          {
            name: text.outcome,
            value: <State tone={row.outcome === 'deny' ? 'deny' : 'good'}>{text.outcomes[row.outcome]}</State>,
          },
          { name: text.other, value: <OtherGate other={row.other} /> },
          { name: text.reason, value: row.outcome === 'deny' ? reasonOf(row.code) : null },
          { name: text.code, value: <code>{row.code}</code> },
          { name: text.detail, value: detail === '' ? null : detail },
          {
            name: text.byPolicy,
            value:
              policy === null ? null : (
                <Link to="/policies/$name" params={{ name: policy }}>
                  {policy}
                </Link>
              ),
          },
          { name: text.principal, value: principal === null ? text.noPrincipal : <Principal {...principal} /> },
          { name: text.route, value: route === null ? null : <code>{route}</code> },
          { name: text.resources, value: resources.length === 0 ? null : <code>{resources.join(' ')}</code> },
          { name: text.address, value: address === null ? null : <code>{address}</code> },
          { name: text.time, value: <Moment time={row.time} /> },
          { name: text.utc, value: <code>{row.time}</code> },
          { name: text.requestId, value: <Id value={row.request_id} /> },
          { name: text.clientRequestId, value: clientRequestId === null ? null : <Id value={clientRequestId} /> },
          { name: text.sampledRow, value: row.sampled ? text.sampledRowSays : null },
        ]}
      />
      <div className={styles.acts}>
        <Button tone="quiet" small onPress={() => onShow({ code: row.code })}>
          {text.onlyReason}
        </Button>
        {principal === null ? null : (
          <Button tone="quiet" small onPress={() => onShow({ principal: principal.id })}>
            {text.onlyPrincipal}
          </Button>
        )}
        {route === null ? null : (
          <Button tone="quiet" small onPress={() => onShow({ route })}>
            {text.onlyRoute}
          </Button>
        )}
      </div>
    </>
  );
}
