/** The inputs of the deciding step: policies with their conditions, or the permissions of each role. */

import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Explanation, ResourceConstraints } from '../../../../client/index.ts';
import { explain as text } from '../../text/en/explain.ts';
import { Looked } from '../../ui/passage.tsx';
import { BudgetLines } from './budget-lines.tsx';
import styles from './explain.module.css';
import { LimitLines } from './limit-lines.tsx';
import { policiesInForce } from './reports.tsx';
import type { Subject } from './subject.ts';
import { Unproved } from './unproved.tsx';

type Step = Explanation['steps'][number];
type Policy = Explanation['policies'][number];
type Condition = Policy['conditions'][number];
type Grant = Explanation['grants'][number];

const SHOWN_OPERANDS = 6;
const SHOWN_NAMES = 8;

interface DecidingProps {
  readonly step: Step;
  readonly explanation: Explanation;
  readonly subject: Subject | undefined;
}

export function Deciding({ step, explanation, subject }: DecidingProps) {
  const { grants, limits, budgets } = explanation;
  const policies = policiesInForce(explanation);
  switch (step.name) {
    case 'deny_policies':
      return <Denials policies={policies} detail={step.detail} />;
    case 'permission':
    case 'resources':
    case 'allow':
      return (
        <>
          {step.detail}
          {grants.map((grant) => (
            <GrantLine key={`${grant.kind} ${grant.name}`} grant={grant} />
          ))}
          {grants.length === 0 && step.name === 'permission' ? (
            <Looked holds={undefined} name="">
              {text.noGrants}
            </Looked>
          ) : null}
          {policies.filter(isNear).map((policy) => (
            <AllowLine key={policy.name} policy={policy} />
          ))}
        </>
      );
    case 'identity':
      return <Unproved step={step} />;
    case 'token_limit':
    case 'rate_limit':
    case 'quota':
      return (
        <>
          {step.detail}
          <LimitLines line={step.line} limits={limits} subject={subject} />
          <BudgetLines budgets={step.name === 'quota' ? budgets : []} />
        </>
      );
    default:
      return step.detail;
  }
}

/** An allow policy that is in force and is about this permission. */
function isNear({ effect, applies, actions }: Policy): boolean {
  return effect === 'allow' && applies && actions;
}

function Denials({ policies, detail }: { readonly policies: readonly Policy[]; readonly detail: string }) {
  const denying = policies.filter(({ effect, matched }) => effect === 'deny' && matched);
  const others = policies.filter(({ effect, matched, applies }) => effect === 'deny' && applies && !matched);
  return (
    <>
      {denying.length === 0 ? detail : null}
      {denying.map((policy) => (
        <div key={policy.name} className={styles.policy}>
          <PolicyName name={policy.name} /> {text.denies}
          {policy.conditions.length === 0 ? `, ${text.noConditions}` : null}
          {policy.conditions.map((condition) => (
            <ConditionLine key={`${condition.kind} ${condition.operator}`} condition={condition} effect="deny" />
          ))}
        </div>
      ))}
      {others.length === 0 ? null : (
        <div className={styles.others}>
          <Looked holds={undefined} name={text.others(others.length)}>
            {others.slice(0, SHOWN_NAMES).map((policy, index) => (
              <span key={policy.name}>
                {index === 0 ? '' : ', '}
                <PolicyName name={policy.name} />
              </span>
            ))}
            : {text.othersDeny}
          </Looked>
        </div>
      )}
    </>
  );
}

function GrantLine({ grant }: { readonly grant: Grant }) {
  const limits = constraintsOf(grant.resource_constraints);
  return (
    <Looked holds={grant.outcome === 'covers'} name={<GrantName grant={grant} />}>
      {text.outcomes[grant.outcome]}: <Codes values={grant.permissions} />
      {limits.length === 0 ? null : (
        <>
          ; {text.limitedTo} <Codes values={limits} />
        </>
      )}
    </Looked>
  );
}

function AllowLine({ policy }: { readonly policy: Policy }) {
  const says = policy.matched ? text.policyAllows : policy.resources ? text.policyConditions : text.policyResources;
  return (
    <>
      <Looked holds={policy.matched} name={<PolicyName name={policy.name} />}>
        {says}
      </Looked>
      {policy.resources
        ? policy.conditions.map((condition) => (
            <ConditionLine key={`${condition.kind} ${condition.operator}`} condition={condition} effect="allow" />
          ))
        : null}
    </>
  );
}

function ConditionLine({ condition, effect }: { readonly condition: Condition; readonly effect: Policy['effect'] }) {
  return (
    <Looked holds={condition.matched} name={<code>{condition.kind}</code>}>
      {comparisonOf(condition, effect)}
    </Looked>
  );
}

function comparisonOf(
  { kind, operator, operand, value, timezone, matched, missing }: Condition,
  effect: Policy['effect'],
): ReactNode {
  if (operator === null) return text.unreadable;
  if (missing || value === null) return effect === 'deny' ? text.missingDeny : text.missingAllow;
  const isIn = operator.startsWith('not_') ? !matched : matched;
  const isSpan = kind === 'time';
  const relation = isSpan ? (isIn ? text.between : text.notBetween) : isIn ? text.in : text.notIn;
  return (
    <>
      <b>{value}</b>
      {timezone === null ? null : ` ${text.inZone(timezone)}`} {text.is} <b>{relation}</b>{' '}
      <Codes values={operand} joint={isSpan ? '–' : ', '} />
    </>
  );
}

/** The first few, as machines read them. */
function Codes({ values, joint = ', ' }: { readonly values: readonly string[]; readonly joint?: string }) {
  const left = values.length - SHOWN_OPERANDS;
  return (
    <code>
      {values.slice(0, SHOWN_OPERANDS).join(joint)}
      {left > 0 ? ` +${left}` : ''}
    </code>
  );
}

export function GrantName({ grant: { kind, name } }: { readonly grant: Grant }) {
  if (name === null) return <>{text.scopes}</>;
  return (
    <>
      {kind === 'owner_role' ? text.ownerRole : text.role}{' '}
      <Link to="/roles/$name" params={{ name }}>
        {name}
      </Link>
    </>
  );
}

function PolicyName({ name }: { readonly name: string }) {
  return (
    <Link to="/policies/$name" params={{ name }}>
      {name}
    </Link>
  );
}

/** `models/gpt-*` for each pattern of each kind that is limited. */
export function constraintsOf(constraints: ResourceConstraints): readonly string[] {
  return Object.entries(constraints).flatMap(([kind, patterns]) =>
    (patterns ?? []).map((pattern) => `${kind}/${pattern}`),
  );
}
