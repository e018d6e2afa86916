/** The tokens of an issuer that prove a key, in place of a secret. */

import { keys as text } from '../../text/en/keys.ts';
import { TextField } from '../../ui/field.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { IssuerField } from '../issuer/issuer-field.tsx';
import { RulesField } from '../issuer/rules-field.tsx';
import type { ProofFields as Fields } from './fields.tsx';
import styles from './keys.module.css';

interface ProofFieldsProps {
  readonly proof: Fields;
  readonly onChange: (proof: Fields) => void;
  readonly error: unknown;
}

const MAX_SUBJECT = 512;

export function ProofFields({ proof, onChange, error }: ProofFieldsProps) {
  const set = (change: Partial<Fields>): void => onChange({ ...proof, ...change });
  return (
    <div className={styles.form}>
      <IssuerField
        name={proof.issuer}
        onChange={(issuer) => set({ issuer })}
        error={fieldError(error, '/proof/issuer')}
      />
      <TextField
        label={text.subject}
        value={proof.subject}
        onChange={(subject) => set({ subject })}
        hint={text.subjectHint}
        error={fieldError(error, '/proof/subject')}
        placeholder="system:serviceaccount:agents:batch"
        autoComplete="off"
        maxLength={MAX_SUBJECT}
        isMono
        isRequired
      />
      <RulesField
        label={text.claims}
        rows={proof.claims}
        onChange={(claims) => set({ claims })}
        start={{ claim: '', in: [] }}
        adding={text.addClaim}
        hint={text.claimsHint}
        error={fieldError(error, '/proof/claims')}
      />
    </div>
  );
}
