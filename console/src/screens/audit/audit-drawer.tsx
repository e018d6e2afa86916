/** One row in full: who, what, and what changed. */

import { useRouter } from '@tanstack/react-router';
import type { AuditRow } from '../../../../client/index.ts';
import { useTenant } from '../../api/session.ts';
import { audit as text } from '../../text/en/audit.ts';
import { common } from '../../text/en/common.ts';
import { Button } from '../../ui/button.tsx';
import { Diff } from '../../ui/diff.tsx';
import { Facts } from '../../ui/facts.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Id, State, useCopy } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Moment } from '../../ui/time.tsx';
import { Actor, Target } from './actor.tsx';
import styles from './audit.module.css';
import type { AuditSearch } from './search.ts';

interface AuditDrawerProps {
  readonly row: AuditRow;
  readonly onClose: () => void;
  readonly onFilter: (change: Partial<AuditSearch>) => void;
}

const TONES = { success: 'good', failure: 'care', refused: 'deny' } as const;

export function AuditDrawer({ row, onClose, onFilter }: AuditDrawerProps) {
  const { actor, target } = row;
  const actorFilter = actor.id ?? actor.type;
  const { id: targetId } = target;
  const { request_id: requestId } = row;
  return (
    <Drawer title={row.action} onClose={onClose}>
      <Facts
        facts={[
          { name: text.time, value: <Moment time={row.time} /> },
          { name: text.utc, value: <code>{row.time}</code> },
          { name: text.actor, value: <Actor actor={actor} /> },
          { name: text.target, value: <Target target={target} /> },
          { name: text.result, value: <State tone={TONES[row.result]}>{text.results[row.result]}</State> },
          { name: text.address, value: row.address === null ? null : <code>{row.address}</code> },
          { name: text.requestId, value: row.request_id === null ? null : <Id value={row.request_id} /> },
          { name: text.row, value: <Id value={row.id} /> },
        ]}
      />
      <Diff before={row.before} after={row.after} />
      <div className={styles.acts}>
        <CopyLink row={row} />
        <Button tone="quiet" small onPress={() => onFilter({ actor: actorFilter })}>
          {text.onlyActor}
        </Button>
        <Button tone="quiet" small onPress={() => onFilter({ action: row.action })}>
          {text.onlyAction}
        </Button>
        {targetId === null ? null : (
          <Button
            tone="quiet"
            small
            onPress={() =>
              onFilter({
                target: target.type === null ? targetId : `${target.type}/${targetId}`,
                request_id: undefined,
              })
            }
          >
            {text.onlyTarget}
          </Button>
        )}
        {requestId === null ? null : (
          <Button tone="quiet" small onPress={() => onFilter({ ...NO_FILTERS, request_id: requestId })}>
            {text.onlyRequest}
          </Button>
        )}
      </div>
    </Drawer>
  );
}

const NO_FILTERS: AuditSearch = {
  q: undefined,
  actor: undefined,
  action: undefined,
  target: undefined,
  result: undefined,
  from: undefined,
  to: undefined,
};

/** The link finds the row by its request, also when there are many newer rows. */
function CopyLink({ row: { id, request_id: requestId } }: { readonly row: AuditRow }) {
  const router = useRouter();
  const tenant = useTenant().id;
  const { copied, copy } = useCopy();
  const search = { tenant, open: id, ...(requestId === null ? {} : { request_id: requestId }) };
  return (
    <Button
      small
      onPress={() => copy(new URL(router.buildLocation({ to: '/audit', search }).href, window.location.origin).href)}
    >
      <Icon name="copy" size={12} />
      {copied ? common.copied : text.copyLink}
    </Button>
  );
}
