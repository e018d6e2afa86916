import { isName, MAX_NAME } from '../api/names.ts';
import { TextField } from './field.tsx';
import { fieldError, isTaken } from './problem.tsx';

interface NameFieldProps {
  readonly value: string;
  readonly onChange: (name: string) => void;
  /** Why the server refused the form; undefined: it did not. */
  readonly error: unknown;
  readonly texts: {
    readonly name: string;
    readonly nameHint: string;
    readonly nameFault: string;
    readonly nameTaken: string;
  };
  readonly autoFocus?: boolean;
}

/** The field for the name of a role, a policy or an issuer. */
export function NameField({ value, onChange, error, texts, autoFocus = false }: NameFieldProps) {
  const malformed = value === '' || isName(value) ? undefined : texts.nameFault;
  return (
    <TextField
      label={texts.name}
      value={value}
      onChange={onChange}
      hint={texts.nameHint}
      error={malformed ?? (isTaken(error) ? texts.nameTaken : fieldError(error, '/name'))}
      maxLength={MAX_NAME}
      autoComplete="off"
      isMono
      isRequired
      autoFocus={autoFocus}
    />
  );
}
