/** The subjects of issuers whose tokens prove a user. */

import { users as text } from '../../text/en/users.ts';
import { Button } from '../../ui/button.tsx';
import fieldStyles from '../../ui/field.module.css';
import { TextField } from '../../ui/field.tsx';
import { Icon } from '../../ui/icon.tsx';
import { useRowIds } from '../../ui/use-row-ids.ts';
import { IssuerField } from '../issuer/issuer-field.tsx';
import styles from './user.module.css';

export interface Identity {
  /** The issuer's name. */
  readonly issuer: string;
  readonly subject: string;
}

interface IdentitiesFieldProps {
  readonly identities: readonly Identity[];
  readonly onChange: (identities: readonly Identity[]) => void;
  readonly error?: string | undefined;
}

const MAX_SUBJECT = 512;
const MAX_IDENTITIES = 20;

export function IdentitiesField({ identities, onChange, error }: IdentitiesFieldProps) {
  const { ids, removeId } = useRowIds(identities.length);
  const replace = (at: number, change: Partial<Identity>): void =>
    onChange(identities.map((one, index) => (index === at ? { ...one, ...change } : one)));
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      role="group"
      aria-label={text.identities}
      className={fieldStyles.field}
      data-fault={error === undefined ? undefined : ''}
    >
      <span className={fieldStyles.label} aria-hidden="true">
        {text.identities}
        <span className={fieldStyles.optional}>{text.identitiesOptional}</span>
      </span>
      {identities.map(({ issuer, subject }, index) => (
        <fieldset key={ids[index]} className={styles.identity} aria-label={text.identityN(index + 1)}>
          <IssuerField name={issuer} onChange={(name) => replace(index, { issuer: name })} />
          <TextField
            label={text.subject}
            value={subject}
            onChange={(value) => replace(index, { subject: value })}
            autoComplete="off"
            maxLength={MAX_SUBJECT}
            isMono
            isRequired
          />
          <Button
            tone="quiet"
            square
            label={text.removeIdentity(index + 1)}
            onPress={() => {
              removeId(index);
              onChange(identities.filter((_, at) => at !== index));
            }}
          >
            <Icon name="close" />
          </Button>
        </fieldset>
      ))}
      {identities.length >= MAX_IDENTITIES ? null : (
        <div>
          <Button small onPress={() => onChange([...identities, { issuer: '', subject: '' }])}>
            <Icon name="plus" size={12} />
            {text.addIdentity}
          </Button>
        </div>
      )}
      {error === undefined ? (
        <span className={fieldStyles.hint}>{text.identitiesHint}</span>
      ) : (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      )}
    </div>
  );
}
