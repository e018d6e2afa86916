/** A few roles: a chip for each, and a search that adds one. */

import { common } from '../../text/en/common.ts';
import { issuers as text } from '../../text/en/issuers.ts';
import { users as userText } from '../../text/en/users.ts';
import { Chip } from '../../ui/chip.tsx';
import fieldStyles from '../../ui/field.module.css';
import { Filter } from '../../ui/filter.tsx';
import { RoleChooser } from '../users/role-filter.tsx';
import styles from './issuer.module.css';

interface RoleChipsProps {
  readonly label: string;
  readonly roles: readonly string[];
  readonly onChange: (roles: readonly string[]) => void;
  readonly hint?: string;
  readonly error?: string | undefined;
}

export function RoleChips({ label, roles, onChange, hint, error }: RoleChipsProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are
    <div
      role="group"
      aria-label={label}
      className={fieldStyles.field}
      data-fault={error === undefined ? undefined : ''}
    >
      <span className={fieldStyles.label} aria-hidden="true">
        {label}
      </span>
      <div className={styles.chips}>
        {roles.map((name) => (
          <Chip
            key={name}
            label={common.removeOf(name)}
            onRemove={() => onChange(roles.filter((other) => other !== name))}
          >
            {name}
          </Chip>
        ))}
        <Filter label={text.addRole} title={userText.pickRoles}>
          {(close) => (
            <RoleChooser
              onChoose={(name) => {
                close();
                if (!roles.includes(name)) onChange([...roles, name]);
              }}
            />
          )}
        </Filter>
      </div>
      {error === undefined ? (
        hint === undefined ? null : (
          <span className={fieldStyles.hint}>{hint}</span>
        )
      ) : (
        <span className={fieldStyles.error} role="status">
          {error}
        </span>
      )}
    </div>
  );
}
