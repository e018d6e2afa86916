/** A recorded decision, found by the request id of the answer, and its explanation by the current rules. */

import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Form } from 'react-aria-components';
import { type ExplainedDecision, ProblemError } from '../../../../client/index.ts';
import { client as anyTenant } from '../../api/client.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import buttons from '../../ui/button.module.css';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { type Fact, Facts } from '../../ui/facts.tsx';
import { TextField } from '../../ui/field.tsx';
import { Empty, Id, Note, Skeleton, Small, shortened } from '../../ui/mark.tsx';
import { SectionHead, Sentence } from '../../ui/page.tsx';
import { Verdict } from '../../ui/passage.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Moment } from '../../ui/time.tsx';
import { Decided, Headline, Way } from './answer.tsx';
import styles from './explain.module.css';
import { WouldHave } from './reports.tsx';
import type { ExplainSearch } from './search.ts';

export function useRecorded(requestId: string | undefined) {
  const { id, client } = useTenant();
  const { platform_admin: isPlatformAdmin } = useMe();
  return useQuery({
    queryKey: [id, 'decisions', 'recorded', requestId],
    queryFn: async ({ signal }): Promise<ExplainedDecision | null> => {
      if (requestId === undefined) return null;
      const path = { request_id: requestId };
      try {
        return await client.request('GET', '/v1/iam/decisions/recent/{request_id}', { path, signal });
      } catch (error) {
        if (!isPlatformAdmin || !isMissing(error)) throw error;
        // A request whose credential proves no principal belongs to no tenant.
        return await anyTenant.request('GET', '/v1/iam/decisions/recent/{request_id}', {
          path,
          query: { tenant_id: '*' },
          signal,
        });
      }
    },
    enabled: requestId !== undefined,
    retry: false,
  });
}

function isMissing(error: unknown): boolean {
  return error instanceof ProblemError && error.status === 404;
}

export function Recorded({ recorded }: { readonly recorded: ReturnType<typeof useRecorded> }) {
  const { id: tenant } = useTenant();
  if (recorded.isError) {
    return isMissing(recorded.error) ? (
      <Empty title={text.notRecorded}>{text.notRecordedSays}</Empty>
    ) : (
      <Problem error={recorded.error} onRetry={() => void recorded.refetch()} />
    );
  }
  if (recorded.data === undefined || recorded.data === null) return <Skeleton width={3} />;
  const { data } = recorded;
  return (
    <>
      {data.tenant_id === null || data.tenant_id === tenant ? (
        <Explained decision={data} />
      ) : (
        <ElsewhereNote tenant={data.tenant_id} requestId={data.request_id} />
      )}
      <WouldHave {...data} />
      <div className={styles.recorded}>
        <SectionHead title={text.recordedAs} />
        <Facts facts={factsOf(data)} />
      </div>
    </>
  );
}

/** Names and links of an explanation are those of the decision's own tenant. */
function ElsewhereNote({ tenant, requestId }: { readonly tenant: string; readonly requestId: string }) {
  return (
    <Note
      action={
        <Link
          className={classes(buttons.button, buttons.small)}
          to="/explain"
          search={{ tenant, request_id: requestId }}
        >
          {text.openThere}
        </Link>
      }
    >
      {text.otherTenant} <b>{tenant}</b>.
    </Note>
  );
}

/**
 * The recorded decision leads, because it is the answer that the client got. The verdict of the current rules stands
 * beside it, and the steps below are those of the current rules.
 */
function Explained({ decision }: { readonly decision: ExplainedDecision }) {
  const { explanation, not_explained: why, outcome } = decision;
  const search = subjectOf(decision);
  return (
    <>
      <div className={styles.beside}>
        <Verdict isOpen={outcome === 'allow'}>
          <Sentence>
            {explanation?.same === true ? (
              <Headline explanation={explanation} search={search} />
            ) : (
              <RecordedReason decision={decision} />
            )}
          </Sentence>
          {explanation?.same === true ? (
            <Decided explanation={explanation} />
          ) : (
            <p className={styles.at}>
              {decision.code} · <Moment time={decision.time} />
            </p>
          )}
        </Verdict>
        <section className={styles.today}>
          <SectionHead title={text.today} />
          {explanation === null ? (
            <p>{why === null ? text.notExplained.unreadable : text.notExplained[why]}</p>
          ) : explanation.same ? (
            <p>{text.sameToday}</p>
          ) : (
            <>
              <p>
                <Headline explanation={explanation} search={search} />
              </p>
              <Decided explanation={explanation} />
            </>
          )}
          {explanation === null ? null : <Small>{explanation.note}</Small>}
        </section>
      </div>
      {explanation === null ? null : <Way explanation={explanation} search={search} />}
    </>
  );
}

/** The outcome and the reason as the client got them. */
function RecordedReason({ decision: { outcome, policy, detail } }: { readonly decision: ExplainedDecision }) {
  if (outcome === 'allow') return <span className={styles.yes}>{text.allowed}.</span>;
  const denied = <span className={styles.no}>{text.denied}</span>;
  if (policy === null) {
    return (
      <>
        {denied}. {detail}
      </>
    );
  }
  return (
    <>
      {denied} {text.byPolicy} <b>{policy}</b>.
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
  shadow,
  budget,
}: ExplainedDecision): readonly Fact[] {
  return [
    { name: text.requestId, value: <Id value={request_id} shown={request_id} /> },
    { name: text.when, value: <Moment time={time} /> },
    { name: text.request, value: method === null ? null : <code>{`${method} ${path ?? ''}`}</code> },
    { name: text.resources, value: resources.length === 0 ? null : <code>{resources.join(' ')}</code> },
    { name: text.address, value: client_ip === null ? null : <code>{client_ip}</code> },
    { name: text.decidedAs, value: `${outcome === 'allow' ? text.allowed : text.denied} · ${code}` },
    {
      name: text.spentBudget,
      value:
        budget === null ? null : (
          <Link to="/budgets/$id" params={{ id: budget }}>
            {shortened(budget)}
          </Link>
        ),
    },
    { name: text.shadow, value: shadow ? text.shadowSays : null },
    { name: text.sampled, value: sampled ? text.sampledSays : null },
  ];
}

function subjectOf({ principal }: Pick<ExplainedDecision, 'principal'>): ExplainSearch {
  if (principal === null) return {};
  return principal.type === 'user' ? { user: principal.id } : { key: principal.id };
}

/** The values of the form from a recorded decision. They have no collections of its body. */
export function searchOfRecorded(decision: ExplainedDecision): ExplainSearch | undefined {
  const { request, resources } = decision;
  if (request === null) return undefined;
  const model = resources.find((resource) => resource.startsWith(MODELS))?.slice(MODELS.length);
  return {
    ...subjectOf(decision),
    method: request.method,
    path: request.path,
    model: model === '' || request.body === undefined ? undefined : model,
    address: request.client_ip ?? undefined,
    time: request.time,
  };
}

const MODELS = 'models/';

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
      <Button type="submit" disabledReason={denied ?? (wanted === '' ? text.needsRequestId : undefined)}>
        {text.openRequest}
      </Button>
    </Form>
  );
}
