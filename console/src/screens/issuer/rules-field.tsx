/** Rules on claims: each with a claim and the values of which one must match. A mapping gives roles besides. */

import { type ReactNode, useRef } from 'react';
import { globFault } from '../../api/permissions.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { Button } from '../../ui/button.tsx';
import fieldStyles from '../../ui/field.module.css';
import { TextField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { useRowIds } from '../../ui/use-row-ids.ts';
import type { ClaimRule } from './draft.ts';
import styles from './issuer.module.css';

const MAX_RULES = 100;
const MAX_CLAIM = 256;
const MAX_VALUE = 512;

interface RulesFieldProps<R extends ClaimRule> {
  readonly label: string;
  readonly rules: readonly R[];
  readonly onChange: (rules: readonly R[]) => void;
  /** A rule that is added. */
  readonly start: R;
  readonly adding: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** More of one rule, after its values. */
  readonly children?: (rule: R, onChange: (rule: R) => void) => ReactNode;
}

export function RulesField<R extends ClaimRule>(props: RulesFieldProps<R>) {
  const { label, rules, onChange, start, adding, hint, error, children } = props;
  const { ids, removeId } = useRowIds(rules.length);
  const whole = useRef<HTMLDivElement>(null);
  const replace = (at: number, rule: R): void => onChange(rules.map((one, index) => (index === at ? rule : one)));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      ref={whole}
      role="group"
      aria-label={label}
      className={styles.rules}
      data-fault={error === undefined ? undefined : ''}
    >
      <span className={fieldStyles.label} aria-hidden="true">
        {label}
      </span>
      {rules.map((rule, index) => (
        <fieldset key={ids[index]} className={styles.rule} aria-label={text.rule(index + 1)}>
          <TextField
            label={text.claim}
            value={rule.claim}
            onChange={(claim) => replace(index, { ...rule, claim })}
            autoComplete="off"
            maxLength={MAX_CLAIM}
            isMono
          />
          <TagInput
            label={text.isOneOf}
            values={rule.in}
            onChange={(values) => replace(index, { ...rule, in: values })}
            check={valueFault}
          />
          <Button
            tone="quiet"
            square
            label={text.removeRule(index + 1)}
            onPress={() => {
              removeId(index);
              // The pressed button goes away, and the one that adds stays.
              whole.current?.querySelector<HTMLElement>('[data-adds] button')?.focus();
              onChange(rules.filter((_, at) => at !== index));
            }}
          >
            <Icon name="close" />
          </Button>
          {children?.(rule, (next) => replace(index, next))}
        </fieldset>
      ))}
      {rules.length >= MAX_RULES ? null : (
        <div data-adds="">
          <Button small onPress={() => onChange([...rules, start])}>
            <Icon name="plus" size={12} />
            {adding}
          </Button>
        </div>
      )}
      {error === undefined ? (
        <span className={fieldStyles.hint}>{hint}</span>
      ) : (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      )}
    </div>
  );
}

function valueFault(value: string): string | undefined {
  if (value.length > MAX_VALUE) return text.valueFaults.long;
  const fault = globFault(value);
  return fault === undefined || fault === 'long' ? undefined : text.valueFaults[fault];
}
