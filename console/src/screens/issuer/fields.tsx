/** The members of an issuer that a caller writes. */

import { issuers as text } from '../../text/en/issuers.ts';
import fieldStyles from '../../ui/field.module.css';
import { Checkbox, Segments, TextField } from '../../ui/field.tsx';
import { Small } from '../../ui/mark.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { TagInput } from '../../ui/tag-input.tsx';
import { ALGORITHMS, type IssuerFields } from './draft.ts';
import styles from './issuer.module.css';
import { KeysFields } from './keys-fields.tsx';
import { RulesField } from './rules-field.tsx';
import { SsoFields } from './sso-fields.tsx';
import { UsersFields } from './users-fields.tsx';

export interface FieldsProps {
  readonly draft: IssuerFields;
  readonly set: (change: Partial<IssuerFields>) => void;
  readonly error: unknown;
  /** The secret of the console's client. */
  readonly secret: string;
  readonly onSecret: (secret: string) => void;
  /** Undefined: the issuer is new. */
  readonly id?: string | undefined;
  /** The claim of a mapping that is added. */
  readonly roleClaim?: string | undefined;
}

const KINDS = ['oidc', 'spiffe'] as const;
const MAX_ISSUER = 512;
const MAX_TYPE = 100;

export function IssuerForm(props: FieldsProps) {
  const { draft, set, error, id } = props;
  return (
    <>
      <section className={styles.part}>
        <SectionHead title={text.what} />
        {id === undefined ? (
          <div className={styles.choice}>
            <Segments
              label={text.kind}
              value={draft.kind}
              onChange={(kind) =>
                set(
                  kind === 'oidc'
                    ? { kind }
                    : {
                        kind,
                        sso: undefined,
                        keys: { ...draft.keys, source: draft.keys.source === 'pasted' ? 'pasted' : 'address' },
                      },
                )
              }
              options={KINDS.map((value) => ({ value, label: text.kinds[value] }))}
            />
            <Small>{text.kindsSay[draft.kind]}</Small>
          </div>
        ) : null}
        <TextField
          label={text.issuer}
          value={draft.issuer}
          onChange={(issuer) => set({ issuer })}
          hint={text.issuerHints[draft.kind]}
          error={fieldError(error, '/issuer')}
          autoComplete="off"
          maxLength={MAX_ISSUER}
          isMono
          isRequired
        />
        <TagInput
          label={text.audiences}
          values={draft.audiences}
          onChange={(audiences) => set({ audiences })}
          check={textFault}
          hint={text.audiencesHint}
          error={fieldError(error, '/audiences')}
        />
      </section>
      <section className={styles.part}>
        <SectionHead title={text.which} small={text.whichSay} />
        <RulesField
          label={text.rules}
          rows={draft.required_claims}
          onChange={(rules) => set({ required_claims: rules })}
          start={{ claim: '', in: [] }}
          adding={text.addRule}
          hint={draft.required_claims.length === 0 ? text.noRules : text.rulesHint}
          error={fieldError(error, '/required_claims')}
        />
      </section>
      <UsersFields {...props} />
      {draft.kind === 'oidc' ? <SsoFields {...props} /> : null}
      <KeysFields {...props} />
      <TokenForm {...props} />
    </>
  );
}

/** Algorithms, types and times: the usual ones serve most issuers. */
function TokenForm({ draft, set, error }: FieldsProps) {
  const { algorithms, token_types: types } = draft;
  const algorithmsError = fieldError(error, '/algorithms');
  return (
    <section className={styles.part}>
      <SectionHead title={text.more} />
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset's legend cannot be laid out as labels are */}
      <div
        role="group"
        aria-label={text.algorithms}
        className={fieldStyles.field}
        data-fault={algorithmsError === undefined ? undefined : ''}
      >
        <span className={fieldStyles.label} aria-hidden="true">
          {text.algorithms}
        </span>
        <div className={styles.checks}>
          {ALGORITHMS.map((one) => (
            <Checkbox
              key={one}
              isSelected={algorithms.includes(one)}
              onChange={(isOn) =>
                set({
                  algorithms: ALGORITHMS.filter((other) => (other === one ? isOn : algorithms.includes(other))),
                })
              }
            >
              {one}
            </Checkbox>
          ))}
        </div>
        {algorithmsError === undefined ? null : <span className={fieldStyles.error}>{algorithmsError}</span>}
      </div>
      <div className={styles.choice}>
        <span className={fieldStyles.label} aria-hidden="true">
          {text.tokenTypes}
        </span>
        <Segments
          label={text.tokenTypes}
          value={types === undefined ? 'usual' : 'own'}
          onChange={(value) =>
            set({ token_types: value === 'usual' ? undefined : [draft.kind === 'oidc' ? 'at+jwt' : 'JWT'] })
          }
          options={[
            { value: 'usual', label: text.tokenTypesUsual[draft.kind] },
            { value: 'own', label: text.tokenTypesOwn },
          ]}
        />
      </div>
      {types === undefined ? null : (
        <>
          <TagInput
            label={text.tokenTypesOwn}
            values={types.filter((type) => type !== '')}
            onChange={(named) => set({ token_types: types.includes('') ? [...named, ''] : named })}
            check={(type) => (type.length > MAX_TYPE ? text.valueFaults.long : undefined)}
            hint={text.tokenTypesHint}
            error={fieldError(error, '/token_types')}
          />
          <Checkbox
            isSelected={types.includes('')}
            onChange={(isOn) => set({ token_types: isOn ? [...types, ''] : types.filter((type) => type !== '') })}
          >
            {text.tokenTypesNone}
          </Checkbox>
        </>
      )}
      <div className={styles.two}>
        <NumberField
          label={text.maxAge}
          value={draft.max_age_seconds}
          onChange={(seconds) => set({ max_age_seconds: seconds })}
          hint={text.maxAgeHint}
          error={fieldError(error, '/max_age_seconds')}
          isOptional
        />
        <NumberField
          label={text.leeway}
          value={draft.leeway_seconds}
          onChange={(seconds) => set({ leeway_seconds: seconds })}
          hint={text.leewayHint}
          error={fieldError(error, '/leeway_seconds')}
        />
      </div>
    </section>
  );
}

function textFault(value: string): string | undefined {
  return value.length > MAX_ISSUER ? text.valueFaults.long : undefined;
}
