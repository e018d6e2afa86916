/** Chooses a time zone by a part of its name. */

import { time as text } from '../text/en/time.ts';
import { ComboBox } from './combo-box.tsx';

interface ZoneFieldProps {
  readonly label: string;
  /** Empty: none. */
  readonly zone: string;
  readonly onChange: (zone: string) => void;
  readonly hint: string;
  readonly error?: string | undefined;
  readonly placeholder: string;
  readonly isOptional?: boolean;
}

const SHOWN_ZONES = 60;
const ZONES: readonly string[] = ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')];

export function ZoneField({ label, zone, onChange, hint, error, placeholder, isOptional = false }: ZoneFieldProps) {
  const wanted = zone.trim().toLowerCase();
  const zones = ZONES.filter((one) => one.toLowerCase().includes(wanted)).slice(0, SHOWN_ZONES);
  return (
    <ComboBox
      label={label}
      items={zones.map((one) => ({ id: one, name: one }))}
      typed={zone}
      onType={onChange}
      chosen={zones.find((one) => one === zone)}
      onChoose={(chosen) => (chosen === undefined ? undefined : onChange(chosen.id))}
      says={text.noZone}
      hint={hint}
      error={error}
      placeholder={placeholder}
      isOptional={isOptional}
      isFree
    />
  );
}
