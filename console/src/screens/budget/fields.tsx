/** The members of a budget that a caller writes. */

import { METADATA_BOUNDS, metadataFault } from '../../api/metadata.ts';
import { useCurrency } from '../../api/prices.ts';
import { budgets as text } from '../../text/en/budgets.ts';
import { Checkbox, Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { PairsField } from '../../ui/pairs-field.tsx';
import { fieldError, isTaken } from '../../ui/problem.tsx';
import { Select } from '../../ui/select.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { ZoneField } from '../../ui/zone-field.tsx';
import { RoleChips } from '../issuer/role-chips.tsx';
import { modelFault } from '../rates/rates.ts';
import styles from './budget.module.css';
import {
  ACTIONS,
  type AppliesFields,
  alertFault,
  type BudgetFields,
  isBudgetName,
  limitFault,
  PERIODS,
  PERS,
  TARGETS,
  UNITS,
} from './draft.ts';
import { SubjectChips } from './subject-chips.tsx';

interface BudgetFormProps {
  readonly draft: BudgetFields;
  readonly set: (change: Partial<BudgetFields>) => void;
  readonly error: unknown;
  /** Another budget has the name. */
  readonly isNew: boolean;
}

export function BudgetForm({ draft, set, error, isNew }: BudgetFormProps) {
  const { name, amount, period, timezone, applies, per, models, action, alerts, enabled } = draft;
  const currency = useCurrency();
  const malformed = name === '' || isBudgetName(name) ? undefined : text.nameFault;
  return (
    <>
      <TextField
        label={text.name}
        value={name}
        onChange={(value) => set({ name: value })}
        hint={text.nameHint}
        error={malformed ?? (isTaken(error) ? text.taken : fieldError(error, '/name'))}
        maxLength={64}
        autoComplete="off"
        isRequired
        autoFocus={isNew}
      />
      <section className={styles.part}>
        <SectionHead title={text.amount} />
        <Choice
          label={text.unit}
          value={amount.unit}
          options={UNITS}
          names={text.units}
          says={text.unitsSay[amount.unit]}
          onChange={(unit) => set({ amount: { ...amount, unit } })}
        />
        <div className={styles.two}>
          <TextField
            label={amount.unit === 'money' ? text.limits.money(currency) : text.limits[amount.unit]}
            value={amount.limit}
            onChange={(limit) => set({ amount: { ...amount, limit: limit.replaceAll(/[\s,_]/g, '') } })}
            error={limitFault(amount) ?? fieldError(error, '/limit')}
            placeholder={amount.unit === 'money' ? '100.00' : '1000000'}
            autoComplete="off"
            isRequired
          />
          <Select
            label={text.period}
            value={period}
            onChange={(value) => set({ period: value })}
            options={PERIODS.map((value) => ({ value, label: text.periods[value] }))}
          />
        </div>
        {period === 'total' ? null : (
          <ZoneField
            label={text.zone}
            zone={timezone}
            onChange={(zone) => set({ timezone: zone })}
            hint={text.zoneHint}
            error={fieldError(error, '/timezone')}
            placeholder={text.zoneOfTenant}
            isOptional
          />
        )}
      </section>
      <section className={styles.part}>
        <SectionHead title={text.scope} />
        <Choice
          label={text.applies}
          value={applies.target}
          options={TARGETS}
          names={text.targets}
          says={text.targetsSay[applies.target]}
          onChange={(target) => set({ applies: { ...applies, target } })}
        />
        <Selected applies={applies} onChange={(next) => set({ applies: next })} error={error} />
        <Choice
          label={text.per}
          value={per}
          options={PERS}
          names={text.pers}
          says={text.persSay[per]}
          onChange={(value) => set({ per: value })}
        />
        <TagInput
          label={text.models}
          values={models}
          onChange={(values) => set({ models: values })}
          check={modelFault}
          placeholder="gpt-*"
          hint={text.modelsHint}
          error={fieldError(error, '/models')}
        />
      </section>
      <section className={styles.part}>
        <SectionHead title={text.effect} />
        <Choice
          label={text.action}
          value={action}
          options={ACTIONS}
          names={text.actions}
          says={text.actionsSay[action]}
          onChange={(value) => set({ action: value })}
        />
        <TagInput
          label={text.alerts}
          values={alerts}
          onChange={(values) => set({ alerts: values })}
          check={alertFault}
          hint={text.alertsHint}
          error={fieldError(error, '/alerts')}
        />
        {enabled === undefined ? null : (
          <div className={styles.choice}>
            <Checkbox isSelected={enabled} onChange={(isOn) => set({ enabled: isOn })}>
              {text.enabled}
            </Checkbox>
            <Small>{text.enabledHint}</Small>
          </div>
        )}
      </section>
    </>
  );
}

interface SelectedProps {
  readonly applies: AppliesFields;
  readonly onChange: (applies: AppliesFields) => void;
  readonly error: unknown;
}

/** The pickers of the chosen selector. */
function Selected({ applies, onChange, error }: SelectedProps) {
  const { target } = applies;
  const fault = fieldError(error, '/applies_to');
  switch (target) {
    case 'tenant':
      return fault === undefined ? null : <Small>{fault}</Small>;
    case 'keys':
    case 'users':
      return (
        <SubjectChips
          kind={target}
          ids={applies[target]}
          onChange={(ids) => onChange({ ...applies, [target]: ids })}
          error={fault}
        />
      );
    case 'roles':
      return (
        <RoleChips
          label={text.targets.roles}
          roles={applies.roles}
          onChange={(roles) => onChange({ ...applies, roles })}
          error={fault}
        />
      );
    case 'metadata':
      return (
        <PairsField
          label={text.metadata}
          pairs={applies.metadata}
          onChange={(metadata) => onChange({ ...applies, metadata })}
          {...METADATA_BOUNDS}
          hint={text.metadataHint}
          error={fault ?? metadataFault(applies.metadata)}
        />
      );
    default:
      return target satisfies never;
  }
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly T[];
  readonly names: Readonly<Record<T, string>>;
  /** The meaning of the chosen option. */
  readonly says?: string;
  readonly onChange: (value: T) => void;
}

function Choice<T extends string>({ label, value, options, names, says, onChange }: ChoiceProps<T>) {
  return (
    <div className={styles.choice}>
      <span className={styles.label} aria-hidden="true">
        {label}
      </span>
      <Segments
        label={label}
        value={value}
        onChange={onChange}
        options={options.map((option) => ({ value: option, label: names[option] }))}
      />
      {says === undefined ? null : <Small>{says}</Small>}
    </div>
  );
}
