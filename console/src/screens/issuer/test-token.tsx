/**
 * Goes through the steps that a token of the issuer takes. The token is in this component's state and in one request:
 * in no address, no draft and no cache.
 */

import { useState } from 'react';
import type { Issuer, IssuerTest } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { useTenant } from '../../api/session.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { permissions as words } from '../../text/en/permissions.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { Drawer } from '../../ui/overlay.tsx';
import { Sentence } from '../../ui/page.tsx';
import { Passage, type PassageStep, Verdict } from '../../ui/passage.tsx';
import { Problem } from '../../ui/problem.tsx';
import styles from './issuer.module.css';

const FORM = 'test-token';
const ROWS = 6;
/** Characters; the server's bound is the same. */
const MAX_TOKEN = 16_384;

type State =
  | { readonly kind: 'idle' }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'done'; readonly answer: IssuerTest };

interface TestTokenProps {
  readonly issuer: Issuer;
  readonly onClose: () => void;
}

export function TestToken({ issuer: { id, name }, onClose }: TestTokenProps) {
  const { client } = useTenant();
  const [token, setToken] = useState('');
  const [state, setState] = useState<State>({ kind: 'idle' });
  const given = token.trim();
  const missing = given === '' ? text.tokenNeeded : given.length > MAX_TOKEN ? text.tokenLong : undefined;
  // Not by a mutation or a query: their caches would keep the token.
  const run = async (): Promise<void> => {
    setState({ kind: 'running' });
    try {
      const answer = await client.request('POST', '/v1/iam/issuers/{id}/test', {
        path: { id },
        body: { token: given },
      });
      setState({ kind: 'done', answer });
    } catch (error) {
      setState({ kind: 'failed', error });
    }
  };
  return (
    <Drawer
      title={`${text.test}: ${name}`}
      onClose={onClose}
      foot={
        <Button tone="primary" type="submit" form={FORM} isPending={state.kind === 'running'} disabledReason={missing}>
          {state.kind === 'running' ? text.running : text.run}
        </Button>
      }
    >
      <form
        noValidate
        id={FORM}
        autoComplete="off"
        className={styles.stack}
        onSubmit={(event) => {
          event.preventDefault();
          if (missing === undefined && state.kind !== 'running') void run();
        }}
      >
        <p>{text.testSays}</p>
        <TextField
          label={text.token}
          value={token}
          onChange={setToken}
          hint={text.tokenHint}
          error={given.length > MAX_TOKEN ? text.tokenLong : undefined}
          autoComplete="off"
          rows={ROWS}
          isMono
          isRequired
          autoFocus
        />
      </form>
      {state.kind === 'failed' ? <Problem error={state.error} /> : null}
      {state.kind === 'done' ? <Result answer={state.answer} /> : null}
    </Drawer>
  );
}

function Result({ answer: { accepted: isAccepted, steps, principal } }: { readonly answer: IssuerTest }) {
  const failed = steps.filter(({ outcome }) => outcome === 'failed').map(({ step }) => nameOf(step));
  return (
    <div>
      <Verdict isOpen={isAccepted}>
        <Sentence>
          {isAccepted ? (
            <>
              {text.accepted}{' '}
              {principal === null ? (
                text.provesNew
              ) : (
                <>
                  {text.itProves} <Principal type={principal.type} id={principal.id} />.
                </>
              )}
            </>
          ) : (
            <>
              {text.refusedAt} <b>{words.list(failed)}</b>.
            </>
          )}
        </Sentence>
      </Verdict>
      <Passage label={text.steps} steps={steps.map(passageStep)} />
    </div>
  );
}

const KINDS = { passed: 'passed', failed: 'stopped', skipped: 'skipped' } as const;
const MARKS = { passed: undefined, failed: text.fails, skipped: text.skipped } as const;

function passageStep({ step, outcome, detail }: IssuerTest['steps'][number], index: number): PassageStep {
  return {
    number: String(index + 1),
    name: nameOf(step),
    kind: KINDS[outcome],
    mark: MARKS[outcome],
    says: detail,
  };
}

function nameOf(step: string): string {
  return text.stepNames[step] ?? step;
}
