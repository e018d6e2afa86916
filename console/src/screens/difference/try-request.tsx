/** One request, decided as things are and with the draft. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { SimulateRequest, Simulation } from '../../../../client/index.ts';
import { useDenied, useTenant } from '../../api/session.ts';
import { difference as text } from '../../text/en/difference.ts';
import { Button } from '../../ui/button.tsx';
import { Entry } from '../../ui/courses.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { Problem } from '../../ui/problem.tsx';
import { AskForm } from '../explain/ask.tsx';
import { draftOf, requestOf, searchOf } from '../explain/question.ts';
import styles from './difference.module.css';

interface TryRequestProps {
  readonly proposal: Pick<SimulateRequest, 'policies' | 'roles'>;
  /** Why the draft cannot be tried, such as a missing action. */
  readonly fault?: string | undefined;
}

export function TryRequest({ proposal, fault }: TryRequestProps) {
  const { client } = useTenant();
  const denied = useDenied('admin:policies');
  const [isOpen, setOpen] = useState(false);
  const [draft, setDraft] = useState(() => draftOf({}));
  const request = requestOf(searchOf(draft));
  const asked = JSON.stringify([proposal, request]);
  const run = useMutation({
    mutationFn: async () => {
      if (request === undefined) return undefined;
      const body = { ...request, ...proposal };
      return { asked, answer: await client.request('POST', '/v1/iam/explain/simulate', { body }) };
    },
  });
  return (
    <section>
      <SectionHead title={text.tryTitle} />
      <div className={styles.try}>
        <Small>{text.trySays}</Small>
        {isOpen ? (
          <AskForm
            draft={draft}
            onChange={setDraft}
            onAsk={() => run.mutate()}
            action={text.tryIt}
            disabledReason={denied ?? fault}
            isRunning={run.isPending}
            error={run.error}
            isSelfOnly={false}
          />
        ) : (
          <div>
            <Button small onPress={() => setOpen(true)}>
              {text.tryOpen}
            </Button>
          </div>
        )}
        <div role="status">
          {run.data === undefined ? null : <Outcomes answer={run.data.answer} />}
          {run.data === undefined || run.data.asked === asked ? null : <Small>{text.tryStale}</Small>}
        </div>
        {run.isError ? <Problem error={run.error} /> : null}
      </div>
    </section>
  );
}

function Outcomes({ answer }: { readonly answer: Simulation }) {
  return (
    <ul>
      <Outcome name={text.tryNow} {...answer.current} />
      <Outcome name={text.tryThen} {...answer} />
    </ul>
  );
}

interface OutcomeProps extends Pick<Simulation, 'decision' | 'code' | 'policy'> {
  readonly name: string;
}

function Outcome({ name, decision, code, policy }: OutcomeProps) {
  return (
    <Entry
      icon={
        <span className={decision === 'deny' ? styles.denied : styles.allowed}>
          <Icon name={decision === 'deny' ? 'close' : 'check'} />
        </span>
      }
      name={name}
      second={policy === null ? code : `${code} ${text.by(policy)}`}
      end={text.outcomes[decision]}
    />
  );
}
