/** The fields of a policy except its name. */

import { useState } from 'react';
import type { PolicyConditions } from '../../../../client/index.ts';
import { useRoles } from '../../api/roles.ts';
import { policies as text } from '../../text/en/policies.ts';
import { Checkbox, Segments, TextField } from '../../ui/field.tsx';
import { Note, Small } from '../../ui/mark.tsx';
import { PickList } from '../../ui/pick-list.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { useSearchText } from '../../ui/use-search-text.ts';
import { PermissionPicker } from '../roles/permission-picker.tsx';
import { isConditionKind } from './condition-kinds.ts';
import { Conditions } from './conditions.tsx';
import { type PolicyFields, resourceFault } from './draft.ts';
import styles from './policy.module.css';

interface PolicyFormProps {
  readonly draft: PolicyFields;
  readonly set: (change: Partial<PolicyFields>) => void;
  readonly error: unknown;
  readonly isGlobal: boolean;
  readonly zone: string | undefined;
  /** As stored; conditions among them that this page does not know are left alone. */
  readonly stored?: PolicyConditions;
}

export function PolicyForm({ draft, set, error, isGlobal, zone, stored }: PolicyFormProps) {
  const { description, effect, actions, resources, conditions, mode, enabled } = draft;
  return (
    <>
      <TextField
        label={text.description}
        value={description}
        onChange={(value) => set({ description: value })}
        error={fieldError(error, '/description')}
        maxLength={2000}
        isOptional
      />
      <div className={styles.two}>
        <div>
          <div className={styles.label}>{text.effect}</div>
          <Segments
            label={text.effect}
            value={effect}
            onChange={(value) => set({ effect: value })}
            options={(['deny', 'allow'] as const).map((value) => ({ value, label: text.effects[value] }))}
          />
        </div>
        <div>
          <div className={styles.label}>{text.state}</div>
          <Checkbox isSelected={enabled} onChange={(isOn) => set({ enabled: isOn })}>
            {mode === 'enforce' ? text.inForce : text.evaluated}
          </Checkbox>
        </div>
      </div>
      <div>
        <div className={styles.label}>{text.mode}</div>
        <Segments
          label={text.mode}
          value={mode}
          onChange={(value) => set({ mode: value })}
          options={(['enforce', 'report'] as const).map((value) => ({ value, label: text.modes[value] }))}
        />
        <Small>{text.modeSays[mode]}</Small>
      </div>
      <div className={styles.two}>
        <PermissionPicker
          label={text.actions}
          selected={actions}
          onChange={(patterns) => set({ actions: patterns })}
          error={fieldError(error, '/actions')}
        />
        <Audience draft={draft} set={set} error={error} isGlobal={isGlobal} />
      </div>
      <TagInput
        label={text.resources}
        values={resources}
        onChange={(patterns) => set({ resources: patterns })}
        check={resourceFault}
        placeholder="models/gpt-*"
        hint={`${text.resourcesHint} ${text.resourcesHow[effect]}`}
        error={fieldError(error, '/resources') ?? (resources.length === 0 ? text.faults.noResources : undefined)}
      />
      {stored !== undefined && hasUnknown(stored) ? (
        <Note tone="care">{text.unknownParts}</Note>
      ) : (
        <Conditions
          conditions={conditions}
          effect={effect}
          onChange={(next) => set({ conditions: next })}
          error={error}
          zone={zone}
        />
      )}
    </>
  );
}

function hasUnknown(conditions: PolicyConditions): boolean {
  return Object.keys(conditions).some((member) => member !== 'timezone' && !isConditionKind(member));
}

type AudienceProps = Pick<PolicyFormProps, 'draft' | 'set' | 'error' | 'isGlobal'>;

/** Attaches the policy to roles and detaches it. */
function Audience({ draft, set, error, isGlobal }: AudienceProps) {
  const [typed, setTyped] = useState('');
  const list = useRoles(useSearchText(typed), isGlobal ? 'builtin' : undefined);
  const { applies_to: appliesTo, attached_roles: roles } = draft;
  return (
    <div className={styles.pick}>
      <div>
        <div className={styles.label}>{text.appliesTo}</div>
        <Segments
          label={text.appliesTo}
          value={appliesTo}
          onChange={(value) => set({ applies_to: value, ...(value === 'everyone' ? { attached_roles: [] } : {}) })}
          options={(['everyone', 'roles'] as const).map((value) => ({ value, label: text.audience[value] }))}
        />
      </div>
      {appliesTo === 'everyone' ? null : (
        <PickList
          label={text.roles}
          placeholder={text.rolesPick}
          typed={typed}
          onType={setTyped}
          items={
            list.kind === 'loaded' ? list.rows.map(({ name, description }) => ({ id: name, says: description })) : []
          }
          selected={roles}
          onChange={(names) => set({ attached_roles: names })}
          empty={text.noRole}
          error={fieldError(error, '/attached_roles')}
          below={roles.length === 0 ? text.noRolesYet : undefined}
          more={list.kind === 'loaded' ? list.more : undefined}
          isLoadingMore={list.kind === 'loaded' && list.isLoadingMore}
        />
      )}
    </div>
  );
}
