/** The fields that a new tenant and an old one have in common. */

import type { ReactNode } from 'react';
import { tenants as text } from '../../text/en/tenants.ts';
import { Checkbox, TextField } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { ZoneField } from '../../ui/zone-field.tsx';
import { RatesField } from '../rates/rates-field.tsx';
import { type LimitName, QUOTA_LIMITS, SETTING_LIMITS, type TenantForm } from './form.ts';
import styles from './tenants.module.css';

interface FieldsProps {
  readonly form: TenantForm;
  readonly onChange: (form: TenantForm) => void;
  readonly error: unknown;
  /** Before the name. */
  readonly children?: ReactNode;
}

export function TenantFields({ form, onChange, error, children }: FieldsProps) {
  const set = (change: Partial<TenantForm>): void => onChange({ ...form, ...change });
  const limit = (group: 'settings' | 'quotas') => (name: LimitName) => (
    <NumberField
      key={name}
      label={text.fields[name]}
      value={form[name]}
      onChange={(value) => set({ [name]: value })}
      placeholder={text.noLimit}
      error={fieldError(error, `/${group}/${name}`)}
    />
  );
  return (
    <>
      {children}
      <TextField
        label={text.name}
        value={form.name}
        onChange={(name) => set({ name })}
        maxLength={200}
        isRequired
        error={fieldError(error, '/name')}
      />
      <section className={styles.group}>
        <SectionHead title={text.quotas} small={text.limitsHint} />
        <div className={styles.fields}>
          {QUOTA_LIMITS.map(limit('quotas'))}
          {SETTING_LIMITS.map(limit('settings'))}
        </div>
      </section>
      <section className={styles.group}>
        <RatesField
          level="tenant"
          rates={form.rate_limits}
          onChange={(rates) => set({ rate_limits: rates })}
          error={fieldError(error, '/settings/rate_limits')}
        />
      </section>
      <section className={styles.group}>
        <SectionHead title={text.settings} />
        <ZoneField
          label={text.timezone}
          zone={form.timezone}
          onChange={(timezone) => set({ timezone })}
          hint={text.timezoneHint}
          error={fieldError(error, '/settings/timezone')}
          placeholder="UTC"
        />
        <TextField
          label={text.defaultModel}
          value={form.default_model}
          onChange={(model) => set({ default_model: model })}
          hint={text.defaultModelHint}
          error={fieldError(error, '/settings/default_model')}
          isMono
        />
        <Checkbox
          isSelected={form.allow_keys_without_expiry}
          onChange={(isAllowed) => set({ allow_keys_without_expiry: isAllowed })}
        >
          {text.allowKeys}
        </Checkbox>
        <Checkbox
          isSelected={form.require_stream_usage}
          onChange={(isRequired) => set({ require_stream_usage: isRequired })}
        >
          {text.requireStreamUsage}
        </Checkbox>
        {form.monthly_tokens === undefined || form.require_stream_usage ? null : (
          <p className={styles.hint}>{text.requireStreamUsageHint}</p>
        )}
      </section>
    </>
  );
}
