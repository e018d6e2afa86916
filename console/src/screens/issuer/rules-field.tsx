/** Rules on claims: each with a claim and the values of which one must match. A mapping gives roles besides. */

import type { ReactNode } from 'react';
import { globFault } from '../../api/permissions.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { TextField } from '../../ui/field.tsx';
import { RowsField } from '../../ui/rows-field.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import type { ClaimRule } from './draft.ts';
import styles from './issuer.module.css';

const MAX_RULES = 100;
const MAX_CLAIM = 256;
const MAX_VALUE = 512;

interface RulesFieldProps<R extends ClaimRule> {
  readonly label: string;
  readonly rows: readonly R[];
  readonly onChange: (rules: readonly R[]) => void;
  /** A rule that is added. */
  readonly start: R;
  readonly adding: string;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  /** More of one rule, after its values. */
  readonly children?: (rule: R, onChange: (rule: R) => void) => ReactNode;
}

export function RulesField<R extends ClaimRule>({ children, ...props }: RulesFieldProps<R>) {
  return (
    <RowsField {...props} atMost={MAX_RULES} nameOfRow={text.rule} removeRow={text.removeRule} rowLook={styles.rule}>
      {(rule, onChange) => (
        <>
          <TextField
            label={text.claim}
            value={rule.claim}
            onChange={(claim) => onChange({ ...rule, claim })}
            autoComplete="off"
            maxLength={MAX_CLAIM}
            isMono
          />
          <TagInput
            label={text.isOneOf}
            values={rule.in}
            onChange={(values) => onChange({ ...rule, in: values })}
            check={valueFault}
          />
          {children?.(rule, onChange)}
        </>
      )}
    </RowsField>
  );
}

function valueFault(value: string): string | undefined {
  if (value.length > MAX_VALUE) return text.valueFaults.long;
  const fault = globFault(value);
  return fault === undefined || fault === 'long' ? undefined : text.valueFaults[fault];
}
