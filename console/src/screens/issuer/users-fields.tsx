/** The users that the tokens of an issuer prove, with the roles that claims give them. */

import { issuers as text } from '../../text/en/issuers.ts';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { type UsersFields as Fields, NEW_USERS } from './draft.ts';
import type { FieldsProps } from './fields.tsx';
import styles from './issuer.module.css';
import { RoleChips } from './role-chips.tsx';
import { RulesField } from './rules-field.tsx';

const MODES = ['none', 'linked', 'created'] as const;
type Mode = (typeof MODES)[number];

const MAX_CLAIM = 256;
const USUAL_ROLE_CLAIM = 'groups';

export function UsersFields({ draft, set, error, roleClaim }: FieldsProps) {
  const { users } = draft;
  const mode: Mode = users === undefined ? 'none' : users.create ? 'created' : 'linked';
  const choose = (next: Mode): void =>
    set(
      next === 'none'
        ? { users: undefined, sso: undefined }
        : { users: { ...(users ?? NEW_USERS), create: next === 'created' } },
    );
  return (
    <section className={styles.part}>
      <SectionHead title={text.users} small={text.usersSay} />
      <div className={styles.choice} data-fault={fieldError(error, '/users') === undefined ? undefined : ''}>
        <Segments
          label={text.usersMode}
          value={mode}
          onChange={choose}
          options={MODES.map((value) => ({ value, label: text.usersModes[value] }))}
        />
        <Small>{text.usersModesSay[mode]}</Small>
      </div>
      {users === undefined ? null : (
        <Members
          users={users}
          onChange={(change) => set({ users: { ...users, ...change } })}
          error={error}
          roleClaim={roleClaim ?? users.roles.at(-1)?.claim ?? USUAL_ROLE_CLAIM}
        />
      )}
    </section>
  );
}

interface MembersProps {
  readonly users: Fields;
  readonly onChange: (change: Partial<Fields>) => void;
  readonly error: unknown;
  readonly roleClaim: string;
}

function Members({ users, onChange, error, roleClaim }: MembersProps) {
  return (
    <>
      <div className={styles.three}>
        <TextField
          label={text.subjectClaim}
          value={users.subject_claim}
          onChange={(claim) => onChange({ subject_claim: claim })}
          hint={text.subjectClaimHint}
          error={fieldError(error, '/users/subject_claim')}
          autoComplete="off"
          maxLength={MAX_CLAIM}
          isMono
          isRequired
        />
        <TextField
          label={text.nameClaim}
          value={users.name_claim}
          onChange={(claim) => onChange({ name_claim: claim })}
          error={fieldError(error, '/users/name_claim')}
          autoComplete="off"
          maxLength={MAX_CLAIM}
          isMono
          isOptional
        />
        <TextField
          label={text.emailClaim}
          value={users.email_claim}
          onChange={(claim) => onChange({ email_claim: claim })}
          hint={text.emailClaimHint}
          error={fieldError(error, '/users/email_claim')}
          autoComplete="off"
          maxLength={MAX_CLAIM}
          isMono
          isOptional
        />
      </div>
      <Small>{text.neverByEmail}</Small>
      <RulesField
        label={text.mapping}
        rows={users.roles}
        onChange={(roles) => onChange({ roles })}
        start={{ claim: roleClaim, in: [], roles: [] }}
        adding={text.addMapping}
        hint={text.mappingHint}
        error={fieldError(error, '/users/roles')}
      >
        {(rule, replace) => (
          <div className={styles.given}>
            <RoleChips label={text.gives} roles={rule.roles} onChange={(roles) => replace({ ...rule, roles })} />
          </div>
        )}
      </RulesField>
      <RoleChips
        label={text.defaultRoles}
        roles={users.default_roles}
        onChange={(roles) => onChange({ default_roles: roles })}
        hint={text.defaultRolesHint}
        error={fieldError(error, '/users/default_roles')}
      />
    </>
  );
}
