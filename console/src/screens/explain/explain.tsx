/** Asks what the gate would decide about a request, and shows how it comes to that. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { Principal } from '../../api/principal.tsx';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Button } from '../../ui/button.tsx';
import { classes } from '../../ui/classes.ts';
import { Icon } from '../../ui/icon.tsx';
import { Skeleton, shortened, useCopy } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { Answer } from './answer.tsx';
import { AskForm } from './ask.tsx';
import styles from './explain.module.css';
import { draftOf, requestOf, searchOf } from './question.ts';
import { Recorded, RequestId, searchOfRecorded, useRecorded } from './recorded.tsx';
import type { ExplainSearch } from './search.ts';

export function Explain() {
  const tenant = useTenant();
  const { type, id } = useMe();
  const queries = useQueryClient();
  const search = useSearch({ from: '/inside/explain' });
  const navigate = useNavigate({ from: '/explain' });
  const isSelfOnly = useDenied('admin:policies') !== undefined;
  const own: ExplainSearch = isSelfOnly ? ownSearch(type, id) : {};
  const [draft, setDraft] = useState(() => draftOf({ ...search, ...own }));
  const [isUnfolded, setUnfolded] = useState(false);
  // A link to this screen that is followed on this screen.
  const asked = JSON.stringify(search);
  useEffect(
    () => setDraft(draftOf({ ...JSON.parse(asked), ...ownSearch(isSelfOnly ? type : undefined, id) })),
    [asked, isSelfOnly, type, id],
  );
  const requestId = search.request_id;
  const recorded = useRecorded(requestId);
  // As text, because the answer is read again when the window gets the focus, and that must not undo what was typed
  // since.
  const filled = recorded.data ? JSON.stringify(searchOfRecorded(recorded.data)) : undefined;
  useEffect(() => {
    if (filled !== undefined)
      setDraft(draftOf({ ...JSON.parse(filled), ...ownSearch(isSelfOnly ? type : undefined, id) }));
  }, [filled, isSelfOnly, type, id]);
  const request = requestId === undefined ? requestOf(search) : undefined;
  const answer = useQuery({
    queryKey: [tenant.id, 'explain', request],
    queryFn: ({ signal }) => (request === undefined ? null : tenant.client.explain(request, { signal })),
    enabled: request !== undefined,
  });
  const ask = async (): Promise<void> => {
    setUnfolded(false);
    await navigate({ search: (before) => ({ ...before, request_id: undefined, ...searchOf(draft) }) });
    await queries.invalidateQueries({ queryKey: [tenant.id, 'explain'] });
  };
  const hasAnswer = (answer.data !== undefined && answer.data !== null) || requestId !== undefined;
  const isFolded = hasAnswer && !isUnfolded;
  const form = (
    <AskForm
      draft={draft}
      onChange={setDraft}
      onAsk={() => void ask()}
      isRunning={answer.isFetching}
      error={answer.error}
      isSelfOnly={isSelfOnly}
    />
  );
  return (
    <Page
      title={text.title}
      says={text.says}
      actions={request === undefined && requestId === undefined ? undefined : <CopyLink />}
    >
      <TwoColumns
        side={
          <>
            {isFolded ? <Summary search={search} onChange={() => setUnfolded(true)} /> : null}
            <div className={classes(isFolded && styles.folded)}>
              <RequestId
                key={requestId}
                value={requestId ?? ''}
                onOpen={(id) => {
                  setUnfolded(false);
                  void navigate({ search: { request_id: id } });
                }}
              />
              {form}
            </div>
          </>
        }
      >
        {answer.isError ? <Problem error={answer.error} onRetry={() => void answer.refetch()} /> : null}
        {requestId === undefined ? null : <Recorded recorded={recorded} />}
        {request === undefined && requestId === undefined ? <Before /> : null}
        {request !== undefined && answer.isPending ? <Skeleton width={3} /> : null}
        {answer.data === undefined || answer.data === null || answer.isError ? null : (
          <Answer explanation={answer.data} search={search} />
        )}
      </TwoColumns>
    </Page>
  );
}

function ownSearch(type: 'user' | 'api_key' | undefined, id: string): ExplainSearch {
  if (type === undefined) return {};
  return type === 'user' ? { user: id, key: undefined } : { key: id, user: undefined };
}

function Before() {
  return (
    <section>
      <h2>{text.before}</h2>
      <p>{text.beforeSays}</p>
    </section>
  );
}

/** The question in one line, where there is no room for it beside its answer. */
function Summary({ search, onChange }: { readonly search: ExplainSearch; readonly onChange: () => void }) {
  const subject = search.key ?? search.user;
  const asked = `${search.method ?? 'POST'} ${search.path} ${search.model ?? ''}`;
  return (
    <div className={styles.summary}>
      <p>
        {subject === undefined ? null : <Principal type={search.key === undefined ? 'user' : 'api_key'} id={subject} />}{' '}
        <code>{search.request_id === undefined ? asked : shortened(search.request_id)}</code>
      </p>
      <Button small onPress={onChange}>
        {text.change}
      </Button>
    </div>
  );
}

function CopyLink() {
  const { copied, copy } = useCopy();
  return (
    <Button onPress={() => copy(window.location.href)}>
      <Icon name="copy" />
      {copied ? text.copied : text.copyLink}
    </Button>
  );
}
