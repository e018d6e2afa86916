import { keys as text } from '../../text/en/keys.ts';
import fieldStyles from '../../ui/field.module.css';
import { Segments, TextField } from '../../ui/field.tsx';
import { useNow } from '../../ui/time.tsx';
import { type Expiry, endOf, endSaid, localTime, PRESET_DAYS } from './expiry.ts';
import styles from './keys.module.css';

interface ExpiryFieldProps {
  readonly expiry: Expiry;
  readonly onChange: (expiry: Expiry) => void;
  readonly error: string | undefined;
  /** The present expiry of an edited key; null: never. */
  readonly kept?: string | null;
}

const DAY_MS = 86_400_000;
const FIRST_DAYS = 90;

/** A few spans, or a time of the user's choice. The line below says when the key expires. */
export function ExpiryField({ expiry, onChange, error, kept }: ExpiryFieldProps) {
  const now = useNow();
  const options = [
    ...(kept === undefined ? [] : [{ value: 'kept', label: text.unchanged }]),
    ...PRESET_DAYS.map((days) => ({ value: String(days), label: text.expiries[days] })),
    { value: 'at', label: text.otherDate },
    ...(kept === null ? [] : [{ value: 'never', label: text.expiries.never }]),
  ];
  const fault = error ?? faultOf(expiry, now);
  return (
    <div className={fieldStyles.field}>
      <span className={fieldStyles.label} aria-hidden="true">
        {text.expiry}
      </span>
      <div className={styles.spans}>
        <Segments
          label={text.expiry}
          value={expiry.kind === 'days' ? String(expiry.days) : expiry.kind}
          onChange={(value) => onChange(chosen(value, now))}
          options={options}
        />
      </div>
      {expiry.kind === 'at' ? (
        <TextField
          label={text.date}
          type="datetime-local"
          value={expiry.local}
          onChange={(local) => onChange({ kind: 'at', local })}
          error={fault}
        />
      ) : null}
      <span className={fieldStyles.hint} aria-live="polite">
        {said(expiry, now, kept)}
      </span>
      {error !== undefined && expiry.kind !== 'at' ? (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      ) : null}
    </div>
  );
}

/** Returns why the expiry cannot be sent; undefined: it can. */
export function faultOf(expiry: Expiry, nowMs: number): string | undefined {
  if (expiry.kind !== 'at') return undefined;
  const end = endOf(expiry, nowMs);
  if (end === undefined) return text.noDate;
  return end.getTime() <= nowMs ? text.inThePast : undefined;
}

function chosen(value: string, nowMs: number): Expiry {
  if (value === 'kept' || value === 'never') return { kind: value };
  const days = PRESET_DAYS.find((preset) => String(preset) === value);
  return days === undefined ? { kind: 'at', local: localTime(nowMs + FIRST_DAYS * DAY_MS) } : { kind: 'days', days };
}

function said(expiry: Expiry, nowMs: number, kept: string | null | undefined): string | undefined {
  if (expiry.kind === 'never' || (expiry.kind === 'kept' && kept === null)) return text.neverHint;
  const end = expiry.kind === 'kept' && typeof kept === 'string' ? new Date(kept) : endOf(expiry, nowMs);
  if (end === undefined) return undefined;
  return end.getTime() <= nowMs ? undefined : text.until(endSaid(end));
}
