/** The condition builder: one block for each condition, read as a sentence around its controls. */

import { useEffect, useId, useRef, useState } from 'react';
import { ToggleButton, ToggleButtonGroup } from 'react-aria-components';
import type { PolicyConditions } from '../../../../client/index.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Button } from '../../ui/button.tsx';
import { ComboBox } from '../../ui/combo-box.tsx';
import fieldStyles from '../../ui/field.module.css';
import { Segments, TextField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import styles from './conditions.module.css';
import {
  type Clause,
  CONDITION_KINDS,
  type ConditionKind,
  clauseFault,
  clausesOf,
  conditionsOf,
  isTimezone,
  needsClock,
  operandFault,
  operatorOf,
} from './draft.ts';
import { DAYS, timeOf } from './hours.ts';
import { isAddress, networkWith } from './networks.ts';
import { WeeklyHours } from './weekly-hours.tsx';

interface ConditionsProps {
  readonly conditions: PolicyConditions;
  readonly effect: 'allow' | 'deny';
  readonly onChange: (conditions: PolicyConditions) => void;
  readonly error: unknown;
  /** The tenant's; undefined: not known. */
  readonly zone: string | undefined;
}

/** What a new condition begins as. */
const STARTS: Readonly<Record<ConditionKind, Omit<Clause, 'kind'>>> = {
  weekly_hours: { is: false, operand: ['Mon-Fri 08:00-18:00'] },
  day_of_week: { is: true, operand: ['Sat', 'Sun'] },
  time: { is: true, operand: ['22:00', '06:00'] },
  ip_address: { is: false, operand: [] },
};

export function Conditions({ conditions, effect, onChange, error, zone }: ConditionsProps) {
  const clauses = clausesOf(conditions);
  const set = (next: readonly Clause[]): void => onChange(conditionsOf(next, needsClock(next) ? conditions.timezone : undefined));
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
      {clauses.length === 0 ? <Small>{text.noConditions}</Small> : null}
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
                set([...clauses, { kind, ...STARTS[kind] }]);
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

interface ClauseProps {
  readonly clause: Clause;
  readonly effect: 'allow' | 'deny';
  readonly onChange: (clause: Clause) => void;
  readonly error: string | undefined;
  readonly zone: string | undefined;
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

function Operand(props: ClauseProps) {
  const { kind } = props.clause;
  switch (kind) {
    case 'weekly_hours':
      return <WeeklyHours {...props} />;
    case 'day_of_week':
      return <Days {...props} />;
    case 'time':
      return <Times {...props} />;
    case 'ip_address':
      return <Networks {...props} />;
    default:
      return kind satisfies never;
  }
}

function Days({ clause, onChange }: ClauseProps) {
  return (
    <ToggleButtonGroup
      aria-label={text.days}
      className={`${fieldStyles.segments} ${styles.days}`}
      selectionMode="multiple"
      selectedKeys={clause.operand}
      onSelectionChange={(keys) => onChange({ ...clause, operand: DAYS.filter((day) => keys.has(day)) })}
    >
      {DAYS.map((day) => (
        <ToggleButton key={day} id={day} className={fieldStyles.segment}>
          {day}
        </ToggleButton>
      ))}
    </ToggleButtonGroup>
  );
}

function Times({ clause, onChange }: ClauseProps) {
  const [start = '', end = ''] = clause.operand;
  const fault = (value: string, isEnd: boolean): string | undefined => operandFault('time', value, isEnd);
  const from = timeOf(start, false);
  const to = timeOf(end, true);
  return (
    <div className={styles.two}>
      <TextField
        label={text.start}
        value={start}
        onChange={(value) => onChange({ ...clause, operand: [value, end] })}
        error={fault(start, false)}
        hint={text.startHint}
        maxLength={5}
        isMono
      />
      <TextField
        label={text.end}
        value={end}
        onChange={(value) => onChange({ ...clause, operand: [start, value] })}
        error={fault(end, true)}
        hint={from !== undefined && to !== undefined && to < from ? text.overMidnight : text.endHint}
        maxLength={5}
        isMono
      />
    </div>
  );
}

function Networks({ clause, onChange, error }: ClauseProps) {
  const [address, setAddress] = useState('');
  const id = useId();
  const { is, operand } = clause;
  const tried = address.trim();
  const found = networkWith(operand, tried);
  const isOdd = tried !== '' && !isAddress(tried);
  return (
    <div className={styles.two}>
      <TagInput
        label={text.networks}
        values={operand}
        onChange={(networks) => onChange({ ...clause, operand: networks })}
        check={(one) => operandFault('ip_address', one)}
        placeholder="10.20.0.0/16"
        hint={text.networksHint}
        error={error}
      />
      <div aria-describedby={id}>
        <TextField
          label={text.doesItMatch}
          value={address}
          onChange={setAddress}
          placeholder="10.20.14.9"
          error={isOdd ? text.noAddress : undefined}
          hint={tried === '' ? text.tryAddress : undefined}
          isMono
        />
        <p id={id} className={styles.result} aria-live="polite">
          {tried === '' || isOdd ? null : (
            <>
              <b>{(found !== undefined) === is ? text.yes : text.no}</b>{' '}
              {found === undefined ? text.isInNone(tried) : text.isIn(tried, found)},{' '}
              {(found !== undefined) === is ? text.holds : text.holdsNot}
            </>
          )}
        </p>
      </div>
    </div>
  );
}

const SHOWN_ZONES = 40;

interface ZoneProps {
  readonly value: string | undefined;
  readonly onChange: (zone: string | undefined) => void;
  readonly error: string | undefined;
  readonly zone: string | undefined;
}

function Zone({ value, onChange, error, zone }: ZoneProps) {
  const q = (value ?? '').trim().toLowerCase();
  const known = ['UTC', ...Intl.supportedValuesOf('timeZone')];
  const found = known.filter((name) => name.toLowerCase().replaceAll('_', ' ').includes(q.replaceAll('_', ' ')));
  return (
    <div className={styles.zone}>
      <ComboBox
        label={text.zone}
        items={found.slice(0, SHOWN_ZONES).map((name) => ({ id: name, name }))}
        typed={value ?? ''}
        onType={(typed) => onChange(typed === '' ? undefined : typed)}
        onChoose={(item) => (item === undefined ? undefined : onChange(item.id))}
        chosen={known.find((name) => name === value)}
        isFree
        says={text.noZone}
        hint={text.zoneHint(zone)}
        placeholder={zone ?? 'Europe/Berlin'}
        error={value !== undefined && !isTimezone(value) ? text.faults.timezone : error}
        isOptional
      />
    </div>
  );
}
