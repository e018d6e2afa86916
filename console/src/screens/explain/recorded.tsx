/** A recorded decision, found by the request id that a refused client was given, and its explanation by the rules of now. */

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Form } from 'react-aria-components';
import { type ExplainedDecision, ProblemError } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Button } from '../../ui/button.tsx';
import { type Fact, Facts } from '../../ui/facts.tsx';
import { TextField } from '../../ui/field.tsx';
import { Empty, Id, Note, Skeleton } from '../../ui/mark.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { Answer } from './answer.tsx';
import styles from './explain.module.css';
import type { ExplainSearch } from './search.ts';

export function useRecorded(requestId: string | undefined) {
  const { id, client } = useTenant();
  return useQuery({
    queryKey: [id, 'decisions', 'recorded', requestId],
    queryFn: ({ signal }) =>
      requestId === undefined
        ? null
        : client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path: { request_id: requestId }, signal }),
    enabled: requestId !== undefined,
    retry: false,
  });
}

export function Recorded({ requestId }: { readonly requestId: string }) {
  const recorded = useRecorded(requestId);
  if (recorded.isError) {
    return recorded.error instanceof ProblemError && recorded.error.status === 404 ? (
      <Empty title={text.notRecorded}>{text.notRecordedSays}</Empty>
    ) : (
      <Problem error={recorded.error} onRetry={() => void recorded.refetch()} />
    );
  }
  if (recorded.data === undefined || recorded.data === null) return <Skeleton width={3} />;
  const { data } = recorded;
  const { explanation, not_explained: why } = data;
  return (
    <>
      <div className={styles.recorded}>
        <Facts facts={factsOf(data)} />
      </div>
      {explanation === null ? (
        <Note tone="care">{why === null ? text.notExplained.unreadable : text.notExplained[why]}</Note>
      ) : (
        <>
          {explanation.same ? null : (
            <Note tone="care">
              {text.changedSince} {explanation.note}
            </Note>
          )}
          <Answer explanation={explanation} search={subjectOf(data)} />
        </>
      )}
    </>
  );
}

function factsOf({
  request_id,
  time,
  outcome,
  code,
  method,
  path,
  resources,
  client_ip,
  sampled,
}: ExplainedDecision): readonly Fact[] {
  return [
    { name: text.requestId, value: <Id value={request_id} shown={request_id} /> },
    { name: text.when, value: <Moment time={time} /> },
    { name: text.request, value: method === null ? null : <code>{`${method} ${path ?? ''}`}</code> },
    { name: text.resources, value: resources.length === 0 ? null : <code>{resources.join(' ')}</code> },
    { name: text.address, value: client_ip === null ? null : <code>{client_ip}</code> },
    { name: text.decidedAs, value: `${outcome === 'allow' ? text.allowed : text.denied} · ${code}` },
    { name: text.sampled, value: sampled ? text.sampledSays : null },
  ];
}

function subjectOf({ principal }: ExplainedDecision): ExplainSearch {
  if (principal === null) return {};
  return principal.type === 'user' ? { user: principal.id } : { key: principal.id };
}

/** Where a request id is pasted. */
export function RequestId({ value, onOpen }: { readonly value: string; readonly onOpen: (requestId: string) => void }) {
  const denied = useDenied('audit:read');
  const [typed, setTyped] = useState(value);
  const wanted = typed.trim();
  return (
    <Form
      className={styles.requestId}
      onSubmit={(event) => {
        event.preventDefault();
        if (wanted !== '') onOpen(wanted);
      }}
    >
      <TextField
        label={text.requestId}
        value={typed}
        onChange={setTyped}
        placeholder="req_…"
        isMono
        hint={denied ?? text.requestIdHint}
        isDisabled={denied !== undefined}
      />
      <Button type="submit" disabledReason={denied}>
        {text.openRequest}
      </Button>
    </Form>
  );
}
