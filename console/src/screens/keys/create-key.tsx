/** Creates a key, and shows its secret once. */

import type { IssuedApiKey } from '../../../../client/index.ts';
import { changed } from '../../api/changed.ts';
import { useCreation } from '../../api/edit.ts';
import { useDenied, useMe, useTenant } from '../../api/session.ts';
import { keys as text } from '../../text/en/keys.ts';
import { DrawerForm } from '../../ui/drawer-form.tsx';
import fieldStyles from '../../ui/field.module.css';
import { Segments } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { useNow } from '../../ui/time.tsx';
import { SubjectField } from '../explain/subject-field.tsx';
import { type KeyFields, KeyForm, membersOf, missingOf, NEW_KEY, type ProofFields as Proof } from './fields.tsx';
import styles from './keys.module.css';
import { ProofFields } from './proof-fields.tsx';

interface NewKeyFields extends KeyFields {
  /** A user's id. */
  readonly owner: string | undefined;
}

const NEW_PROOF: Proof = { issuer: '', subject: '', claims: [] };
const EMPTY: NewKeyFields = { ...NEW_KEY, owner: undefined };

interface CreateKeyProps {
  /** The name of the issuer whose tokens prove the key; undefined: it begins with a secret. */
  readonly issuer: string | undefined;
  readonly onClose: () => void;
  readonly onCreated: (issued: IssuedApiKey) => void;
}

export function CreateKey({ issuer, onClose, onCreated }: CreateKeyProps) {
  const { id: tenant, client } = useTenant();
  const me = useMe();
  const now = useNow();
  // Without the right to manage keys a user makes keys of its own.
  const isManager = useDenied('admin:keys') === undefined;
  const create = useCreation({
    form: 'new key',
    start: issuer === undefined ? EMPTY : { ...EMPTY, proof: { ...NEW_PROOF, issuer } },
    send: ({ owner, ...fields }) => {
      const { description, scopes } = fields;
      return client.apiKeys.create({
        ...membersOf(fields),
        description,
        scopes,
        user_id: isManager ? (owner ?? null) : me.id,
      });
    },
    onCreated: async (issued) => {
      onCreated(issued);
      await changed(tenant, 'keys');
    },
  });
  const { draft, set, error } = create;
  const missing = missingOf(draft, now);
  return (
    <DrawerForm title={text.create} work={create} action={text.creating} fault={missing} onClose={onClose} noValidate>
      <KeyForm draft={draft} set={set} error={error}>
        {isManager ? <HowProved proof={draft.proof} onChange={(proof) => set({ proof })} error={error} /> : null}
        {isManager ? (
          <div className={styles.group}>
            <SubjectField
              kind="user"
              id={draft.owner}
              onChange={(owner) => set({ owner })}
              label={text.owner}
              isOptional
            />
            <Small>{fieldError(error, '/user_id') ?? text.ownerHint}</Small>
          </div>
        ) : null}
      </KeyForm>
    </DrawerForm>
  );
}

interface HowProvedProps {
  /** Undefined: by a secret. */
  readonly proof: Proof | undefined;
  readonly onChange: (proof: Proof | undefined) => void;
  readonly error: unknown;
}

/** Chooses between a secret and the tokens of an issuer. */
function HowProved({ proof, onChange, error }: HowProvedProps) {
  const how = proof === undefined ? 'secret' : 'proof';
  return (
    <div className={styles.form}>
      <div className={styles.group}>
        <span className={fieldStyles.label}>{text.how}</span>
        <Segments
          label={text.how}
          value={how}
          onChange={(next) => onChange(next === 'secret' ? undefined : (proof ?? NEW_PROOF))}
          options={[
            { value: 'secret', label: text.hows.secret },
            { value: 'proof', label: text.hows.proof },
          ]}
        />
        <Small>{text.howsSay[how]}</Small>
      </div>
      {proof === undefined ? null : <ProofFields proof={proof} onChange={onChange} error={error} />}
    </div>
  );
}
