/** Sends one request with a pasted key, and shows the decision, the limits left and the explanation. */

import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type Explanation, ProblemError } from '../../../../client/index.ts';
import { sendTrial, type Trial, type TrialAnswer } from '../../api/gateway.ts';
import { useTenant } from '../../api/session.ts';
import { connect as text } from '../../text/en/connect.ts';
import { Button } from '../../ui/button.tsx';
import { TextField } from '../../ui/field.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Select } from '../../ui/select.tsx';
import styles from './connect.module.css';
import { TrialResult } from './result.tsx';
import { MAX_TOKENS, TRIALS, type TrialKind, trialOf } from './trial.ts';

/** The outcome of one sent request. */
export interface Tried {
  readonly trial: Trial;
  /** Undefined: no answer came. */
  readonly answer: TrialAnswer | undefined;
  readonly why: Why;
}

/** `key` is the key's id, if the caller may see the key. */
export type Why =
  | { readonly kind: 'explained'; readonly explanation: Explanation; readonly key: string | undefined }
  | { readonly kind: 'not_permitted' }
  | { readonly kind: 'failed'; readonly error: unknown };

const SCHEME = 'psk_';
/** The length of the prefix that lists show. */
const PREFIX_LENGTH = 8;

export function TryIt({ model, first }: { readonly model: string; readonly first: TrialKind }) {
  const tenant = useTenant();
  const queries = useQueryClient();
  const [secret, setSecret] = useState('');
  const [kind, setKind] = useState(first);
  const key = secret.trim();
  const fault = key !== '' && !key.startsWith(SCHEME) ? text.notAKey : undefined;
  const run = useMutation({
    mutationFn: async (trial: Trial): Promise<Tried> => {
      const answer = await sendTrial(key, trial).catch(() => undefined);
      return { trial, answer, why: await explained(trial) };
    },
    onSuccess: () => void queries.invalidateQueries({ queryKey: [tenant.id, 'limits'] }),
  });
  const explained = async ({ method, path, body }: Trial): Promise<Why> => {
    try {
      const [explanation, id] = await Promise.all([
        tenant.client.explain({ credential: key, method, path, ...(body === undefined ? {} : { body }) }),
        idOf(key),
      ]);
      return {
        kind: 'explained',
        explanation,
        key: id ?? explanation.steps.find((step) => step.key_id)?.key_id ?? undefined,
      };
    } catch (error) {
      return error instanceof ProblemError && error.status === 403
        ? { kind: 'not_permitted' }
        : { kind: 'failed', error };
    }
  };
  /** Searches by the prefix that lists show, so that the key itself gets into no address. */
  const idOf = async (whole: string): Promise<string | undefined> => {
    const query = { prefix: whole.slice(0, PREFIX_LENGTH), limit: 20 };
    const { data } = await tenant.client.request('GET', '/v1/iam/api-keys', { query });
    return data.find(({ last_four: lastFour }) => whole.endsWith(lastFour))?.id;
  };
  return (
    <section className={styles.try} aria-label={text.tryIt}>
      <SectionHead title={text.tryIt} small={text.tryItSays} />
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          if (key !== '' && fault === undefined) run.mutate(trialOf(kind, model));
        }}
      >
        <div className={styles.pair}>
          <TextField
            label={text.secret}
            type="password"
            value={secret}
            onChange={setSecret}
            hint={text.secretHint}
            error={fault}
            autoComplete="off"
            isMono
          />
          <Select
            label={text.request}
            value={kind}
            onChange={setKind}
            options={TRIALS.map((value) => ({ value, label: text.requests[value] }))}
          />
        </div>
        <div className={styles.send}>
          <Button
            tone="primary"
            type="submit"
            disabledReason={key === '' ? text.needsKey : fault}
            isPending={run.isPending}
          >
            {text.send}
          </Button>
          <small>{text.costs[kind](MAX_TOKENS)}</small>
        </div>
      </form>
      {run.data === undefined ? null : <TrialResult tried={run.data} />}
    </section>
  );
}
