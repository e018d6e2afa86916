/** The condition builder: one block for each condition, read as a sentence around its controls. */

import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { PolicyConditions } from '../../../../client/index.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { Segments } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { CONDITION_KINDS, CONDITIONS, type ConditionKind } from './condition-kinds.ts';
import styles from './conditions.module.css';
import { type Clause, clauseFault, clausesOf, conditionsOf, needsClock, operatorOf } from './draft.ts';
import { type ClauseProps, Days, Networks, Times, Zone } from './operands.tsx';
import { WeeklyHours } from './weekly-hours.tsx';

interface ConditionsProps {
  readonly conditions: PolicyConditions;
  readonly effect: 'allow' | 'deny';
  readonly onChange: (conditions: PolicyConditions) => void;
  readonly error: unknown;
  /** The tenant's; undefined: not known. */
  readonly zone: string | undefined;
}

/** The control of each condition's operand. */
const CONTROLS: Readonly<Record<ConditionKind, (props: ClauseProps) => ReactNode>> = {
  weekly_hours: WeeklyHours,
  day_of_week: Days,
  time: Times,
  ip_address: Networks,
};

export function Conditions({ conditions, effect, onChange, error, zone }: ConditionsProps) {
  const clauses = clausesOf(conditions);
  const set = (next: readonly Clause[]): void =>
    onChange(conditionsOf(next, needsClock(next) ? conditions.timezone : undefined));
  const whole = useRef<HTMLDivElement>(null);
  // The pressed button goes away, so the focus goes to what came, or to where the next condition can be added.
  const [focusAt, setFocusAt] = useState<ConditionKind | 'adds'>();
  useEffect(() => {
    if (focusAt === undefined) return;
    whole.current?.querySelector<HTMLElement>(`[data-part="${focusAt}"]`)?.focus();
    setFocusAt(undefined);
  }, [focusAt]);
  const missing = CONDITION_KINDS.filter((kind) => clauses.every((clause) => clause.kind !== kind));
  return (
    <div ref={whole}>
      <SectionHead title={text.conditions} small={clauses.length === 0 ? undefined : text.conditionsSay} />
      {clauses.length === 0 ? (
        <div className={styles.none}>
          <Small>{text.noConditions}</Small>
        </div>
      ) : null}
      {clauses.map((clause) => (
        <ClauseBlock
          key={`${clause.kind} ${clause.is}`}
          clause={clause}
          effect={effect}
          isAlone={clauses.filter(({ kind }) => kind === clause.kind).length === 1}
          onChange={(next) => set(clauses.map((one) => (one === clause ? next : one)))}
          onRemove={() => {
            set(clauses.filter((one) => one !== clause));
            setFocusAt('adds');
          }}
          error={fieldError(error, `/conditions/${clause.kind}/${operatorOf(clause)}`)}
          zone={conditions.timezone ?? zone}
        />
      ))}
      {needsClock(clauses) ? (
        <div className={styles.clause}>
          <Zone
            value={conditions.timezone}
            onChange={(timezone) => onChange(conditionsOf(clauses, timezone))}
            error={fieldError(error, '/conditions/timezone')}
            zone={zone}
          />
        </div>
      ) : null}
      {missing.length === 0 ? null : (
        <div className={styles.adds} data-part="adds" tabIndex={-1}>
          <span>{text.add}</span>
          {missing.map((kind) => (
            <Button
              key={kind}
              small
              onPress={() => {
                set([...clauses, { kind, ...CONDITIONS[kind].start }]);
                setFocusAt(kind);
              }}
            >
              <Icon name="plus" size={12} />
              {text.addOf[kind]}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

interface ClauseBlockProps extends ClauseProps {
  /** False: the other operator of the condition is there too. */
  readonly isAlone: boolean;
  readonly onRemove: () => void;
}

function ClauseBlock({ isAlone, onRemove, ...props }: ClauseBlockProps) {
  const { clause, onChange, error } = props;
  const { kind, is } = clause;
  const fault = clauseFault(clause) ?? error;
  const words = text.operators[kind];
  const Operand = CONTROLS[kind];
  return (
    <fieldset className={styles.clause} data-part={kind} tabIndex={-1} aria-label={kind}>
      <div className={styles.lead}>
        <code>{kind}</code>
        <span>{text.lead[kind]}</span>
        {isAlone ? (
          <Segments
            label={text.operator(kind)}
            value={is ? 'is' : 'isNot'}
            onChange={(value) => onChange({ ...clause, is: value === 'is' })}
            options={[
              { value: 'isNot', label: words.isNot },
              { value: 'is', label: words.is },
            ]}
          />
        ) : (
          <b>{is ? words.is : words.isNot}</b>
        )}
        <span>{text.tail[kind]}</span>
        <Button tone="quiet" small square label={text.remove(kind)} onPress={onRemove}>
          <Icon name="close" />
        </Button>
      </div>
      <Operand {...props} />
      {fault === undefined ? null : <span className={styles.error}>{fault}</span>}
    </fieldset>
  );
}
