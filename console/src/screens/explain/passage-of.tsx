/** The steps of an answer as the passage shows them: those that were not evaluated are gathered in one line. */

import type { ReactNode } from 'react';
import type { Explanation } from '../../../../client/index.ts';
import { Principal } from '../../api/principal.tsx';
import { explain as text } from '../../text/en/explain.ts';
import type { PassageStep } from '../../ui/passage.tsx';
import { BudgetLines } from './budget-lines.tsx';
import { Deciding, GrantName } from './deciding.tsx';
import { LimitLines } from './limit-lines.tsx';
import { isUnnamed } from './resource.ts';
import type { Subject } from './subject.ts';

type Step = Explanation['steps'][number] & { readonly outcome: 'passed' | 'denied' | 'allowed' };

const LINES = text.lines.length;

export function passageOf(explanation: Explanation, subject: Subject | undefined): readonly PassageStep[] {
  const rows: PassageStep[] = [];
  let skippedFrom: number | undefined;
  const closeGap = (until: number): void => {
    if (skippedFrom === undefined) return;
    rows.push(skipped(skippedFrom, until));
    skippedFrom = undefined;
  };
  for (let line = 1; line <= LINES; line++) {
    const step = explanation.steps.find((one): one is Step => one.line === line && one.outcome !== 'not_evaluated');
    if (step === undefined) {
      skippedFrom ??= line;
      continue;
    }
    closeGap(line - 1);
    rows.push(shown(step, explanation, subject));
  }
  closeGap(LINES);
  return rows;
}

function skipped(from: number, to: number): PassageStep {
  return {
    number: from === to ? String(from) : `${from}–${to}`,
    name: text.notEvaluated,
    kind: 'skipped',
    says: text.lines.slice(from - 1, to).join(', '),
  };
}

function shown(step: Step, explanation: Explanation, subject: Subject | undefined): PassageStep {
  const row = { number: String(step.line), name: text.lines[step.line - 1] ?? step.name };
  switch (step.outcome) {
    case 'passed':
      return { ...row, kind: 'passed', says: passed(step, explanation, subject) };
    case 'denied':
    case 'allowed':
      return {
        ...row,
        kind: step.outcome === 'denied' ? 'stopped' : 'arrived',
        mark: text.decides,
        says: <Deciding step={step} explanation={explanation} subject={subject} />,
      };
    default:
      return step.outcome satisfies never;
  }
}

/** The finding of a step with a link to its page; without a link, the detail that the server sends. */
function passed({ line, name, detail }: Step, explanation: Explanation, subject: Subject | undefined): ReactNode {
  const { route, permission, resources, grants } = explanation;
  switch (name) {
    case 'route':
      if (route === null) return detail;
      return (
        <>
          <code>{route}</code>{' '}
          {permission === null ? null : (
            <>
              {text.needs} <code>{permission}</code>
            </>
          )}
        </>
      );
    case 'identity':
      return subject === undefined ? detail : <Principal type={subject.type} id={subject.id} />;
    case 'body':
      return resources.length === 0 ? detail : <Named resources={resources} />;
    case 'permission': {
      const giving = grants.filter(({ outcome }) => outcome !== 'no_permission');
      if (giving.length === 0) return detail;
      return (
        <>
          {text.givenBy}{' '}
          {giving.map((grant, index) => (
            <span key={`${grant.kind} ${grant.name}`}>
              {index === 0 ? '' : ', '}
              <GrantName grant={grant} />
            </span>
          ))}
        </>
      );
    }
    case 'token_limit':
    case 'rate_limit':
    case 'quota': {
      const { limits } = explanation;
      const budgets = name === 'quota' ? explanation.budgets : [];
      if (budgets.length === 0 && !limits.some((limit) => limit.line === line)) return detail;
      return (
        <>
          <LimitLines line={line} limits={limits} subject={subject} />
          <BudgetLines budgets={budgets} />
        </>
      );
    }
    default:
      return detail;
  }
}

function Named({ resources }: { readonly resources: readonly string[] }) {
  return (
    <>
      {text.names}{' '}
      {resources.map((resource, index) => (
        <span key={resource}>
          {index === 0 ? '' : ', '}
          {isUnnamed(resource) ? text.unnamed(resource.slice(0, -1)) : <code>{resource}</code>}
        </span>
      ))}
    </>
  );
}
