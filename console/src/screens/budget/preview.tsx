/** The effect that a budget would have had in the last full month, computed on request. */

import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { BudgetPreview } from '../../../../client/index.ts';
import { useCurrency } from '../../api/prices.ts';
import { useTenant } from '../../api/session.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Button } from '../../ui/button.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Refused } from '../../ui/refused.tsx';
import styles from './budget.module.css';
import { type BudgetFields, newBudgetOf, type Unit } from './draft.ts';
import { amountOf, figureOf } from './summary.ts';

interface PreviewProps {
  readonly draft: BudgetFields;
  /** Why there is no preview of the form; undefined: there is. */
  readonly fault: string | undefined;
}

export function Preview({ draft, fault }: PreviewProps) {
  const { client } = useTenant();
  const [previewed, setPreviewed] = useState<BudgetFields>();
  const run = useMutation({
    mutationFn: (fields: BudgetFields) =>
      client.request('POST', '/v1/iam/budgets/preview', { body: newBudgetOf(fields) }),
    onMutate: setPreviewed,
  });
  const isStale = previewed !== undefined && JSON.stringify(previewed) !== JSON.stringify(draft);
  return (
    <section aria-label={text.preview}>
      <SectionHead title={text.preview} />
      <div className={styles.stack}>
        <Small>{text.previewSay}</Small>
        <Button small disabledReason={fault} isPending={run.isPending} onPress={() => run.mutate(draft)}>
          {text.runPreview}
        </Button>
        {run.isError ? <Refused error={run.error} /> : null}
        {run.isSuccess && previewed !== undefined ? (
          <div className={styles.stack} role="status">
            {isStale ? <Small>{text.previewStale}</Small> : null}
            <Result preview={run.data} unit={previewed.amount.unit} />
          </div>
        ) : null}
      </div>
    </section>
  );
}

function Result({ preview, unit }: { readonly preview: BudgetPreview; readonly unit: Unit }) {
  const currency = useCurrency();
  const { periods, requests, blocked_requests: blockedRequests, blocked, from, to } = preview;
  if (periods === null) return <p>{text.previewHours}</p>;
  const reached = periods.filter(({ callers_reached: n }) => n > 0);
  return (
    <>
      {reached.length === 0 ? (
        <Note tone="good">{text.neverReached(from, to)}</Note>
      ) : (
        <Note tone="care">
          {text.wouldBlock(count(blockedRequests), count(requests), amountOf(unit, blocked, currency))}
        </Note>
      )}
      {periods.length === 0 ? (
        <Small>{text.noUsage}</Small>
      ) : (
        <ul className={styles.sums}>
          {(reached.length === 0 ? periods : reached).map(
            ({ starts_on: startsOn, spent, reached_on: reachedOn, callers, callers_reached: callersReached }) => (
              <li key={startsOn}>
                <span>
                  {text.from(startsOn)}
                  {reachedOn === null ? null : (
                    <Small>
                      {text.reachedOn(reachedOn)}
                      {callers > 1 ? ` ${text.reachedBy(callersReached, callers)}` : null}
                    </Small>
                  )}
                </span>
                <span>{figureOf(unit, spent, currency)}</span>
              </li>
            ),
          )}
        </ul>
      )}
      <Small>{text.previewNote}</Small>
    </>
  );
}
