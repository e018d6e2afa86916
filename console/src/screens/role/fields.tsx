/** The fields of a role except its name. */

import type { ResourceConstraints } from '../../../../client/index.ts';
import { useCatalog } from '../../api/catalog.ts';
import { globFault, RESOURCE_KINDS, type ResourceKind } from '../../api/permissions.ts';
import { roles as text } from '../../text/en/roles.ts';
import { Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { PermissionPicker } from '../roles/permission-picker.tsx';
import { summaryOf } from '../roles/summary.ts';
import styles from './role.module.css';

export interface RoleFields {
  readonly description: string;
  readonly permissions: readonly string[];
  /** If a kind is absent, every name is allowed. */
  readonly resource_constraints: ResourceConstraints;
}

interface RoleFormProps {
  readonly draft: RoleFields;
  readonly set: (change: Partial<RoleFields>) => void;
  readonly error: unknown;
  readonly isReadOnly?: boolean;
  /** Patterns that a notice above lists as matching no permission. */
  readonly noted?: readonly string[];
}

export function RoleForm({ draft, set, error, isReadOnly = false, noted = [] }: RoleFormProps) {
  const { description, permissions, resource_constraints: constraints } = draft;
  const { meaning } = useCatalog();
  return (
    <>
      {isReadOnly ? null : (
        <TextField
          label={text.description}
          value={description}
          onChange={(value) => set({ description: value })}
          error={fieldError(error, '/description')}
          maxLength={2000}
          isOptional
        />
      )}
      <PermissionPicker
        label={text.permissions}
        selected={permissions}
        onChange={(patterns) => set({ permissions: patterns })}
        error={fieldError(error, '/permissions')}
        hint={text.noPermissions}
        isReadOnly={isReadOnly}
        noted={noted}
      />
      {isReadOnly ? null : (
        <div className={styles.kinds}>
          <SectionHead title={text.constraints} small={text.constraintsSay} />
          <ConstraintFields
            constraints={constraints}
            onChange={(next) => set({ resource_constraints: next })}
            error={error}
          />
        </div>
      )}
      <div>
        <SectionHead title={text.inWords} />
        <p className={styles.words} aria-live="polite">
          {summaryOf(permissions, constraints, meaning)}
        </p>
      </div>
    </>
  );
}

interface ConstraintFieldsProps {
  /** If a kind is absent, every name is allowed. */
  readonly constraints: ResourceConstraints;
  readonly onChange: (constraints: ResourceConstraints) => void;
  /** The error of the call that sent them as `resource_constraints`. */
  readonly error: unknown;
}

/** Chooses, for each kind of resource, between all names and the names that match. */
export function ConstraintFields({ constraints, onChange, error }: ConstraintFieldsProps) {
  return RESOURCE_KINDS.map((kind) => (
    <Constraint
      key={kind}
      kind={kind}
      names={constraints[kind] ?? undefined}
      onChange={(names) => onChange(withKind(constraints, kind, names))}
      error={fieldError(error, `/resource_constraints/${kind}`)}
    />
  ));
}

/** In one order, so that two equal constraints are equal as JSON. */
function withKind(
  constraints: ResourceConstraints,
  kind: ResourceKind,
  names: readonly string[] | undefined,
): ResourceConstraints {
  const next = { ...constraints, [kind]: names };
  return orderedConstraints(next);
}

/** The kinds that are there, in the order of the API. */
export function orderedConstraints(constraints: ResourceConstraints): ResourceConstraints {
  return Object.fromEntries(
    RESOURCE_KINDS.flatMap((kind) => (constraints[kind] === undefined ? [] : [[kind, constraints[kind]]])),
  );
}

interface ConstraintProps {
  readonly kind: ResourceKind;
  readonly names: readonly string[] | undefined;
  readonly onChange: (names: readonly string[] | undefined) => void;
  readonly error: string | undefined;
}

function Constraint({ kind, names, onChange, error }: ConstraintProps) {
  return (
    <div className={styles.constraint}>
      <div className={styles.kind}>
        <span>{text.kindsOf[kind]}</span>
        <Segments
          label={text.reachOf[kind]}
          value={names === undefined ? 'any' : 'only'}
          onChange={(value) => onChange(value === 'any' ? undefined : [])}
          options={[
            { value: 'any', label: text.reach.any },
            { value: 'only', label: text.reach.only },
          ]}
        />
      </div>
      {names === undefined ? null : (
        <TagInput
          label={text.namesOf[kind]}
          values={names}
          onChange={onChange}
          check={(glob) => {
            const fault = globFault(glob);
            return fault === undefined ? undefined : text.globFaults[fault];
          }}
          placeholder="phi-*"
          hint={text.globHint}
          error={error}
        />
      )}
      {names?.length === 0 ? <Small>{text.noneAllowed}</Small> : null}
    </div>
  );
}
