/** The verdict, and the way to it. */

import type { ReactNode } from 'react';
import type { Explanation } from '../../../../client/index.ts';
import { shownPrincipal, useName } from '../../api/principal.tsx';
import { explain as text } from '../../text/en/explain.ts';
import { Sentence } from '../../ui/page.tsx';
import { Passage, Verdict } from '../../ui/passage.tsx';
import { Changes } from './changes.tsx';
import styles from './explain.module.css';
import { passageOf } from './passage-of.tsx';
import { policiesInForce, WouldHave } from './reports.tsx';
import type { ExplainSearch } from './search.ts';
import type { Subject } from './subject.ts';

interface AnswerProps {
  readonly explanation: Explanation;
  readonly search: ExplainSearch;
}

export function Answer({ explanation, search }: AnswerProps) {
  return (
    <>
      <Verdict isOpen={explanation.decision === 'allow'}>
        <Sentence>
          <Headline explanation={explanation} search={search} />
        </Sentence>
        <Decided explanation={explanation} />
      </Verdict>
      <WouldHave {...explanation} />
      <Way explanation={explanation} search={search} />
    </>
  );
}

/** The verdict in one sentence. */
export function Headline({ explanation, search }: AnswerProps) {
  const subject = subjectOf(search);
  return subject === undefined ? (
    <SaysOnly explanation={explanation} />
  ) : (
    <Says explanation={explanation} subject={subject} />
  );
}

/** The status, the code, and the step that decides. */
export function Decided({ explanation: { status, code, steps } }: Pick<AnswerProps, 'explanation'>) {
  const last = steps.find(({ outcome }) => outcome !== 'passed')?.line;
  return (
    <p className={styles.at}>
      {status} {code}
      {last === undefined ? null : ` · ${text.at(last)}`}
    </p>
  );
}

/** The steps, and the changes after which the deciding one would pass. */
export function Way({ explanation, search }: AnswerProps) {
  const subject = subjectOf(search);
  return (
    <>
      <Passage label={text.passage} steps={passageOf(explanation, subject)} />
      {explanation.decision === 'deny' ? <Changes explanation={explanation} subject={subject} /> : null}
    </>
  );
}

/** Returns undefined if the credential proved no principal. */
function subjectOf({ user, key }: ExplainSearch): Subject | undefined {
  if (key !== undefined) return { type: 'api_key', id: key };
  return user === undefined ? undefined : { type: 'user', id: user };
}

function SaysOnly({ explanation: { decision, detail, steps } }: { readonly explanation: Explanation }) {
  const reason = steps.find(({ outcome }) => outcome === 'denied')?.reason;
  return (
    <>
      {decision === 'allow' ? (
        <span className={styles.yes}>{text.allowed}</span>
      ) : (
        <span className={styles.no}>{text.denied}</span>
      )}
      . {reason === undefined ? detail : text.reasons[reason]}
    </>
  );
}

/** One sentence. It says nothing that the answer does not. */
function Says({ explanation, subject }: { readonly explanation: Explanation; readonly subject: Subject }) {
  const name = useName(subject.type, subject.id) ?? shownPrincipal(subject.id);
  const who = <b>{name}</b>;
  const permission = <b>{explanation.permission}</b>;
  const covering = explanation.grants.filter(({ outcome }) => outcome === 'covers').map(nameOf);
  if (explanation.decision === 'allow') {
    return (
      <>
        <span className={styles.yes}>{text.allowed}.</span>{' '}
        {explanation.permission === null ? (
          explanation.detail
        ) : (
          <>
            {who} {text.mayUse} {permission}
            {covering.length === 0 ? null : (
              <>
                {' '}
                {text.by} {listed(covering)}
              </>
            )}
            .
          </>
        )}
      </>
    );
  }
  const denied = <span className={styles.no}>{text.denied}</span>;
  switch (explanation.code) {
    case 'denied_by_policy': {
      const denying = policiesInForce(explanation).filter(({ effect, matched }) => effect === 'deny' && matched);
      const names = denying.length === 0 ? [explanation.policy ?? ''] : denying.map((policy) => policy.name);
      return (
        <>
          {denied} {names.length > 1 ? text.byPolicies : text.byPolicy} {listed(names)}.{' '}
          {covering.length === 0 ? null : (
            <>
              {who} {text.otherwise} {permission} {text.by} {listed(covering)}.
            </>
          )}
        </>
      );
    }
    case 'insufficient_permission':
      return (
        <>
          {denied}. {who} {text.lacks} {permission}.
        </>
      );
    case 'resource_not_permitted':
      return (
        <>
          {denied}. {who} {text.reachesNot} {permission}, {text.butNot} {listed(explanation.resources)}.
        </>
      );
    case 'rate_limit_exceeded':
    case 'insufficient_quota':
    case 'quota_exceeded': {
      const limit = explanation.limits.find(({ exceeded }) => exceeded);
      if (limit === undefined) return <SaysOnly explanation={explanation} />;
      return (
        <>
          {denied}. {who} {text.reachesNot} {permission}, {text.butLimit} {text.limitOf[limit.of]}{' '}
          <b>{text.limitNames[limit.name]}</b> {text.usedUp}.
        </>
      );
    }
    default:
      return <SaysOnly explanation={explanation} />;
  }
}

type Grant = Explanation['grants'][number];

/** `developer`; the scopes of a key have no name. */
export function nameOf({ name }: Pick<Grant, 'name'>): string {
  return name ?? text.scopes;
}

/** `a, b and c` */
function listed(names: readonly string[]): ReactNode {
  return names.map((name, index) => (
    <span key={name}>
      {index === 0 ? '' : index === names.length - 1 ? ` ${text.and} ` : ', '}
      <b>{name}</b>
    </span>
  ));
}
