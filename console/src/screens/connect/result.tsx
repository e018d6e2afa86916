/** The answer to a sent request, and the steps of its decision. */

import { Link } from '@tanstack/react-router';
import type { Explanation } from '../../../../client/index.ts';
import type { Trial, TrialAnswer } from '../../api/gateway.ts';
import { connect as text } from '../../text/en/connect.ts';
import { explain } from '../../text/en/explain.ts';
import { Facts } from '../../ui/facts.tsx';
import { Id, Note, Small, State } from '../../ui/mark.tsx';
import { count } from '../../ui/number.ts';
import { SectionHead } from '../../ui/page.tsx';
import { Passage } from '../../ui/passage.tsx';
import { Problem } from '../../ui/problem.tsx';
import { Answer } from '../explain/answer.tsx';
import { passageOf } from '../explain/passage-of.tsx';
import styles from './connect.module.css';
import { RecordedLink } from './recorded-link.tsx';
import type { Tried, Why } from './try-it.tsx';

/** Envoy's own rejections have ids of another form. */
const POSTERN_ID = 'req_';

export function TrialResult({ tried: { trial, answer, why } }: { readonly tried: Tried }) {
  return (
    <div className={styles.result}>
      <section aria-label={text.answer} className={styles.answer}>
        {answer === undefined ? (
          <Note tone="care" isLive>
            {text.unreachable}
          </Note>
        ) : isWithoutGateway(answer, why) ? (
          <Note tone="care" isLive>
            {text.noGateway}
          </Note>
        ) : (
          <Shown trial={trial} answer={answer} why={why} />
        )}
      </section>
      <section>
        <SectionHead title={text.why} small={text.whySays} />
        <Explained why={why} />
      </section>
    </div>
  );
}

/** Postern's own listener has no routes of the platform: it does not know a path that the decision allows. */
function isWithoutGateway({ status, code }: TrialAnswer, why: Why): boolean {
  return status === 404 && code === 'not_found' && why.kind === 'explained' && why.explanation.decision === 'allow';
}

interface ShownProps {
  readonly trial: Trial;
  readonly answer: TrialAnswer;
  readonly why: Why;
}

function Shown({ trial, answer, why }: ShownProps) {
  const { status, isProblem, code, detail, requestId, rate, tookMs } = answer;
  // The record of a request that proves no principal belongs to no tenant, so there is nothing to link to.
  const explanation = status === 401 ? null : <ToExplanation trial={trial} answer={answer} why={why} />;
  return (
    <>
      <div role="status">
        <Decision answer={answer} />
        {status >= 400 && !isProblem ? <Small>{text.platformSays}</Small> : null}
      </div>
      <Facts
        facts={[
          { name: text.request, value: <code>{`${trial.method} ${trial.path}`}</code> },
          { name: text.status, value: <code>{status}</code> },
          { name: text.code, value: code === undefined ? null : <code>{code}</code> },
          { name: text.detail, value: detail ?? null },
          {
            name: text.left,
            value: rate === undefined ? text.noRate : text.leftOf(count(rate.remaining), count(rate.limit), rate.reset),
          },
          { name: text.tokensLeft, value: tokensLeft(why) },
          { name: text.took, value: text.ms(tookMs) },
          { name: text.requestId, value: requestId === undefined ? text.noRequestId : <Id value={requestId} /> },
          { name: text.explanation, value: explanation },
        ]}
      />
    </>
  );
}

/**
 * A denial is recorded under its request id. Only a sample of allows is, so the link of an allow asks the same question
 * instead.
 */
function ToExplanation({ trial: { method, path, model }, answer, why }: ShownProps) {
  if (answer.isProblem && answer.requestId?.startsWith(POSTERN_ID))
    return <RecordedLink requestId={answer.requestId} />;
  const key = why.kind === 'explained' ? why.key : undefined;
  return key === undefined ? null : (
    <Link to="/explain" search={{ key, method, path, model }}>
      {text.toExplanation}
    </Link>
  );
}

function Decision({ answer: { status, isProblem } }: { readonly answer: TrialAnswer }) {
  if (!isProblem) return <State>{text.allowed}</State>;
  return status >= 500 ? <State tone="care">{text.fault}</State> : <State tone="deny">{text.denied}</State>;
}

/**
 * Read from the explanation, which knows the key's own tenant. Null: an earlier step ended the decision, or nothing
 * explains it.
 */
function tokensLeft(why: Why): string | null {
  const tokens =
    why.kind === 'explained' ? why.explanation.limits.find(({ name }) => name === 'monthly_tokens') : undefined;
  if (tokens === undefined) return null;
  return tokens.limit === null ? text.noQuota : text.tokensOf(count(tokens.remaining ?? 0), count(tokens.limit));
}

function Explained({ why }: { readonly why: Why }) {
  switch (why.kind) {
    case 'explained':
      return why.key === undefined ? (
        <WithoutKey explanation={why.explanation} />
      ) : (
        <Answer explanation={why.explanation} search={{ key: why.key }} />
      );
    case 'not_permitted':
      return <Small>{text.noWhy}</Small>;
    case 'failed':
      return <Problem error={why.error} />;
    default:
      return why satisfies never;
  }
}

/** The steps of a credential that is no key which the caller may see: a passed identity would be a link to that key. */
function WithoutKey({ explanation }: { readonly explanation: Explanation }) {
  const { status, code, detail, steps } = explanation;
  const isProved = steps.some(({ name, outcome }) => name === 'identity' && outcome === 'passed');
  return (
    <>
      <p>
        <code>
          {status} {code}
        </code>{' '}
        {detail}
      </p>
      {isProved ? null : (
        <Passage label={explain.passage} steps={passageOf(explanation, { type: 'api_key', id: '' })} />
      )}
    </>
  );
}
