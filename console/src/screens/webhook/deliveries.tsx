/** The deliveries of a webhook, with their outcome, and the way to send one again. */

import { useMutation } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import type { WebhookDelivery } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useTenant } from '../../api/session.ts';
import { useDeliveries } from '../../api/webhooks.ts';
import { webhooks as text } from '../../text/en/webhooks.ts';
import { Button } from '../../ui/button.tsx';
import { Facts } from '../../ui/facts.tsx';
import { type ListColumn, ListTable, TwoLines } from '../../ui/list.tsx';
import { ListEmpty } from '../../ui/list-empty.tsx';
import { OneOrAll } from '../../ui/list-page.tsx';
import { Id, Note, Small, State, shortened } from '../../ui/mark.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { SectionHead, Tools } from '../../ui/page.tsx';
import { Refused } from '../../ui/refused.tsx';
import { Ago, Moment, Until } from '../../ui/time.tsx';
import { DELIVERY_STATES } from '../webhooks/search.ts';
import styles from './webhook.module.css';

const TONES = { waiting: 'care', delivered: 'good', failed: 'deny' } as const;
const TEXTS = {
  empty: text.noDelivery,
  emptySays: text.noDeliverySays,
  unmatched: text.noneOfState,
  unmatchedSays: text.noneOfStateSays,
};

const COLUMNS: readonly ListColumn<WebhookDelivery>[] = [
  { id: 'type', title: text.event, cell: ({ type, id }) => <TwoLines name={type} second={shortened(id)} /> },
  { id: 'state', title: text.state, cell: ({ state }) => <DeliveryState state={state} /> },
  { id: 'answer', title: text.answer, cell: (delivery) => <Answer delivery={delivery} /> },
  {
    id: 'attempts',
    title: text.attempts,
    kind: 'number',
    rank: 'phoneOff',
    cell: ({ attempts }) => attempts,
  },
  { id: 'created', title: text.time, cell: ({ created_at: at }) => <Ago time={at} /> },
];

export function Deliveries({ id }: { readonly id: string }) {
  const { id: tenant } = useTenant();
  const { state, delivery: opened } = useSearch({ from: '/inside/webhooks/$id' });
  const navigate = useNavigate({ from: '/webhooks/$id' });
  const list = useDeliveries(id, state);
  const show = (delivery: string | undefined): void =>
    void navigate({ search: (before) => ({ ...before, delivery }), resetScroll: false });
  const showState = (value: WebhookDelivery['state'] | undefined): void =>
    void navigate({ search: (before) => ({ ...before, state: value }) });
  return (
    <div className={styles.deliveries}>
      <Tools end={text.deliveriesSay}>
        <OneOrAll
          label={text.state}
          values={DELIVERY_STATES}
          texts={text.deliveryStates}
          value={state}
          onChange={showState}
        />
        <Button onPress={() => void changed(tenant, 'webhooks')}>{text.refresh}</Button>
      </Tools>
      <ListTable
        label={text.deliveries}
        list={list}
        idOf={(delivery) => delivery.id}
        onOpen={(delivery) => show(delivery.id)}
        empty={<ListEmpty texts={TEXTS} onShowAll={state === undefined ? undefined : () => showState(undefined)} />}
        columns={COLUMNS}
      />
      {opened === undefined || list.kind !== 'loaded' ? null : (
        <Details
          webhook={id}
          id={opened}
          delivery={list.rows.find((one) => one.id === opened)}
          onClose={() => show(undefined)}
        />
      )}
    </div>
  );
}

function DeliveryState({ state }: { readonly state: WebhookDelivery['state'] }) {
  return <State tone={TONES[state]}>{text.deliveryStates[state]}</State>;
}

function Answer({ delivery: { status, error, attempts } }: { readonly delivery: WebhookDelivery }) {
  if (attempts === 0) return null;
  return <TwoLines name={status ?? text.noAnswer} second={error} />;
}

interface DetailsProps {
  readonly webhook: string;
  readonly id: string;
  /** Undefined: it is not among the loaded ones. */
  readonly delivery: WebhookDelivery | undefined;
  readonly onClose: () => void;
}

function Details({ webhook, id, delivery, onClose }: DetailsProps) {
  const { id: tenant, client } = useTenant();
  const replay = useMutation({
    mutationFn: () =>
      client.request('POST', '/v1/iam/webhooks/{id}/deliveries/{delivery}/replay', {
        path: { id: webhook, delivery: id },
      }),
    onSettled: () => changed(tenant, 'webhooks'),
  });
  if (delivery === undefined) {
    return (
      <Drawer title={text.event} onClose={onClose}>
        <Note>{text.notShown}</Note>
      </Drawer>
    );
  }
  const { type, state, attempts, status, answer, error, created_at: created } = delivery;
  const { attempted_at: attempted, next_attempt_at: next } = delivery;
  return (
    <Drawer
      title={type}
      onClose={onClose}
      foot={
        <Button isPending={replay.isPending} onPress={() => replay.mutate()}>
          {text.replay}
        </Button>
      }
    >
      <div className={styles.details}>
        <Facts
          facts={[
            { name: text.id, value: <Id value={id} /> },
            { name: text.state, value: <DeliveryState state={state} /> },
            { name: text.time, value: <Moment time={created} /> },
            { name: text.attempts, value: attempts },
            { name: text.lastAttempt, value: attempted === null ? null : <Moment time={attempted} /> },
            { name: text.next, value: next === null ? null : <Until time={next} /> },
            { name: text.answer, value: attempts === 0 ? null : (status ?? text.noAnswer) },
            { name: text.error, value: error },
          ]}
        />
        {answer === null || answer === '' ? null : (
          <section>
            <SectionHead title={text.body} small={text.bodySays} />
            <pre className={styles.answer}>{answer}</pre>
          </section>
        )}
        <Small>{text.replaySays}</Small>
        {replay.isError ? <Refused error={replay.error} /> : null}
      </div>
    </Drawer>
  );
}
