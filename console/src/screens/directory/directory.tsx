/** The directories that people log in by: a login taken apart, and what the last tests came to. */

import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type DirectoryTest, type DirectoryTestRequest, ProblemError } from '../../../../client/index.ts';
import { client } from '../../api/client.ts';
import { useMe } from '../../api/session.ts';
import { directory as text } from '../../text/en/directory.ts';
import { Page } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { Configured, useDirectories } from './configured.tsx';
import { NotConfigured } from './not-configured.tsx';
import { Question } from './question.tsx';
import { Recent } from './recent.tsx';
import { Result } from './result.tsx';

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly directory: string | undefined }
  | { readonly kind: 'done'; readonly answer: DirectoryTest; readonly username: string; readonly hadPassword: boolean };

export function Directory() {
  const me = useMe();
  const queries = useQueryClient();
  const directories = useDirectories();
  const [state, setState] = useState<State>({ kind: 'idle' });
  // Not by a mutation or a query: their caches would keep the password.
  const run = async (request: DirectoryTestRequest): Promise<void> => {
    const { username, password, directory } = request;
    setState({ kind: 'running' });
    try {
      const answer = await client.request('POST', '/v1/iam/directory/test', { body: request });
      setState({ kind: 'done', answer, username, hadPassword: password !== undefined });
    } catch (error) {
      setState({ kind: 'failed', error, directory });
    }
    await queries.invalidateQueries({ queryKey: [me.tenant_id, 'directory-tests'] });
    await directories.refetch();
  };
  if (directories.data?.length === 0) {
    return (
      <Page title={text.title} says={text.says}>
        <NotConfigured />
      </Page>
    );
  }
  return (
    <Page title={text.title} says={text.says}>
      <Configured read={directories} />
      <TwoColumns side={<Question isRunning={state.kind === 'running'} onRun={(request) => void run(request)} />}>
        <Outcome state={state} />
        <Recent />
      </TwoColumns>
    </Page>
  );
}

function Outcome({ state }: { readonly state: State }) {
  switch (state.kind) {
    case 'idle':
    case 'running':
      return (
        <section aria-busy={state.kind === 'running'}>
          <h2>{state.kind === 'running' ? text.running : text.before}</h2>
          <p>{text.beforeSays}</p>
        </section>
      );
    case 'failed':
      return <Failed error={state.error} directory={state.directory} />;
    case 'done':
      return <Result answer={state.answer} username={state.username} hadPassword={state.hadPassword} />;
    default:
      return state satisfies never;
  }
}

function Failed({ error, directory }: { readonly error: unknown; readonly directory: string | undefined }) {
  const isMissing = error instanceof ProblemError && error.code === 'not_found';
  return (
    <>
      <Problem error={error} />
      {isMissing && directory !== undefined ? <p>{text.noSuch(directory)}</p> : null}
    </>
  );
}
