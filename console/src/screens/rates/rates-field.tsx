/** The limits by model of a tenant, a key or a user. */

import { rates as text } from '../../text/en/rates.ts';
import { NumberField } from '../../ui/number-field.tsx';
import { RowsField } from '../../ui/rows-field.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import styles from './rates.module.css';
import { modelFault, NEW_RATE, type RateFields } from './rates.ts';

interface RatesFieldProps {
  readonly level: keyof typeof text.hints;
  readonly rates: readonly RateFields[];
  readonly onChange: (rates: readonly RateFields[]) => void;
  readonly error?: string | undefined;
}

const MAX_RATES = 32;

export function RatesField({ level, rates, onChange, error }: RatesFieldProps) {
  return (
    <RowsField
      label={text.title}
      rows={rates}
      onChange={onChange}
      start={NEW_RATE}
      adding={text.add}
      atMost={MAX_RATES}
      nameOfRow={text.rate}
      removeRow={text.remove}
      rowLook={styles.rate}
      hint={text.hints[level]}
      error={error}
    >
      {(rate, onRate) => (
        <>
          <TagInput
            label={text.models}
            values={rate.models}
            onChange={(models) => onRate({ ...rate, models })}
            check={modelFault}
            placeholder="gpt-*"
            hint={rate.models.length === 0 ? text.modelsHint : undefined}
          />
          <div className={styles.numbers}>
            <NumberField
              label={text.requests}
              value={rate.requests_per_minute}
              onChange={(requests) => onRate({ ...rate, requests_per_minute: requests })}
              placeholder={text.noLimit}
            />
            <NumberField
              label={text.tokens}
              value={rate.tokens_per_minute}
              onChange={(tokens) => onRate({ ...rate, tokens_per_minute: tokens })}
              placeholder={text.noLimit}
            />
            <NumberField
              label={text.parallel}
              value={rate.parallel}
              onChange={(parallel) => onRate({ ...rate, parallel })}
              placeholder={text.noLimit}
            />
          </div>
        </>
      )}
    </RowsField>
  );
}
