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
import { Skeleton, useCopy } from '../../ui/mark.tsx';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { Answer } from './answer.tsx';
import { AskForm } from './ask.tsx';
import styles from './explain.module.css';
import { draftOf, requestOf, searchOf } from './question.ts';
import { Recorded, RequestId } from './recorded.tsx';
import type { ExplainSearch } from './search.ts';

export function Explain() {
  const tenant = useTenant();
  const me = useMe();
  const queries = useQueryClient();
  const search = useSearch({ from: '/inside/explain' });
  const navigate = useNavigate({ from: '/explain' });
  const isSelfOnly = useDenied('admin:policies') !== undefined;
  const own: ExplainSearch = isSelfOnly ? ownSearch(me.type, me.id) : {};
  const [draft, setDraft] = useState(() => draftOf({ ...search, ...own }));
  const [isUnfolded, setUnfolded] = useState(false);
  // A link to this screen that is followed on this screen.
  const asked = JSON.stringify(search);
  useEffect(
    () => setDraft(draftOf({ ...JSON.parse(asked), ...ownSearch(isSelfOnly ? me.type : undefined, me.id) })),
    [asked, isSelfOnly, me],
  );
  const recorded = search.request_id;
  const request = recorded === undefined ? requestOf(search) : undefined;
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
  const hasAnswer = answer.data !== undefined && answer.data !== null;
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
      actions={request === undefined && recorded === undefined ? undefined : <CopyLink />}
    >
      <TwoColumns
        side={
          <>
            {isFolded ? <Summary search={search} onChange={() => setUnfolded(true)} /> : null}
            <div className={classes(isFolded && styles.folded)}>
              {form}
              <RequestId
                key={recorded}
                value={recorded ?? ''}
                onOpen={(requestId) => void navigate({ search: ({ tenant: kept }) => ({ tenant: kept, request_id: requestId }) })}
              />
            </div>
          </>
        }
      >
        {answer.isError ? <Problem error={answer.error} onRetry={() => void answer.refetch()} /> : null}
        {recorded === undefined ? null : <Recorded requestId={recorded} />}
        {request === undefined && recorded === undefined ? <Before /> : null}
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
  return (
    <div className={styles.summary}>
      <p>
        {subject === undefined ? null : <Principal type={search.key === undefined ? 'user' : 'api_key'} id={subject} />}{' '}
        <code>
          {search.method ?? 'POST'} {search.path} {search.model}
        </code>
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
