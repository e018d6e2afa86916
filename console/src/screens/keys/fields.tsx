/** The members of a key that a caller writes, apart from its owner. */

import type { ReactNode } from 'react';
import type { ApiKey, ResourceConstraints } from '../../../../client/index.ts';
import { METADATA_BOUNDS, metadataFault, metadataOf, pairsIn } from '../../api/metadata.ts';
import { keys as text } from '../../text/en/keys.ts';
import { metadata as metadataText } from '../../text/en/metadata.ts';
import { TextField } from '../../ui/field.tsx';
import { NumberField } from '../../ui/number-field.tsx';
import { SectionHead } from '../../ui/page.tsx';
import { type Pair, PairsField } from '../../ui/pairs-field.tsx';
import { fieldError } from '../../ui/problem.tsx';
import { type ClaimRule, isPart } from '../issuer/draft.ts';
import { type RateFields, rateMembers, ratesFault, ratesOf } from '../rates/rates.ts';
import { RatesField } from '../rates/rates-field.tsx';
import { ConstraintFields, orderedConstraints } from '../role/fields.tsx';
import { PermissionPicker } from '../roles/permission-picker.tsx';
import { type Expiry, expiryMembers } from './expiry.ts';
import { ExpiryField, faultOf } from './expiry-field.tsx';
import styles from './keys.module.css';

/** The tokens of an issuer that prove the key, in place of a secret. */
export interface ProofFields {
  /** The issuer's name. */
  readonly issuer: string;
  /** Exact, or a glob. */
  readonly subject: string;
  readonly claims: readonly ClaimRule[];
}

export interface KeyFields {
  readonly name: string;
  readonly description: string;
  readonly scopes: readonly string[];
  readonly expiry: Expiry;
  /** Undefined: no limit of its own. */
  readonly rate_limit_rpm: number | undefined;
  readonly rate_limits: readonly RateFields[];
  /** If a kind is absent, every name is allowed. */
  readonly resource_constraints: ResourceConstraints;
  /** In the order of their names. */
  readonly metadata: readonly Pair[];
  /** Undefined: the key has a secret. */
  readonly proof: ProofFields | undefined;
}

export const NEW_KEY: KeyFields = {
  name: '',
  description: '',
  scopes: [],
  expiry: { kind: 'days', days: 90 },
  rate_limit_rpm: undefined,
  rate_limits: [],
  resource_constraints: {},
  metadata: [],
  proof: undefined,
};

const MAX_NAME = 100;
const MAX_DESCRIPTION = 500;

export function fieldsOf(key: ApiKey): KeyFields {
  const { name, description, scopes, rate_limit_rpm: rate, resource_constraints: constraints, metadata, proof } = key;
  return {
    name: name ?? '',
    description,
    scopes,
    expiry: { kind: 'kept' },
    rate_limit_rpm: rate ?? undefined,
    rate_limits: ratesOf(key.rate_limits ?? []),
    resource_constraints: orderedConstraints(
      Object.fromEntries(Object.entries(constraints).filter(([, names]) => names !== null)),
    ),
    metadata: pairsIn(metadata),
    proof: proof === null ? undefined : { issuer: proof.issuer, subject: proof.subject, claims: proof.claims },
  };
}

/** The fields as members of a request. An absent field is an absent member. */
export function membersOf({ name, expiry, metadata, proof, rate_limits: rates, ...rest }: Partial<KeyFields>) {
  const { rate_limit_rpm: rate, ...plain } = rest;
  return {
    ...plain,
    ...(plain.description === undefined ? {} : { description: plain.description.trim() }),
    ...(name === undefined ? {} : { name: name.trim() === '' ? null : name.trim() }),
    ...(expiry === undefined ? {} : expiryMembers(expiry)),
    ...('rate_limit_rpm' in rest ? { rate_limit_rpm: rate ?? null } : {}),
    ...(rates === undefined ? {} : { rate_limits: rateMembers(rates) }),
    ...(metadata === undefined ? {} : { metadata: metadataOf(metadata) }),
    ...(proof === undefined ? {} : { proof }),
  };
}

/** Returns why the key cannot be sent; undefined: it can. */
export function missingOf(
  { description, scopes, expiry, metadata, proof, rate_limits: rates }: KeyFields,
  nowMs: number,
): string | undefined {
  if (description.trim() === '' || scopes.length === 0) return text.needs;
  return faultOf(expiry, nowMs) ?? ratesFault(rates) ?? metadataFault(metadata) ?? proofFault(proof);
}

/** Returns why a proof cannot be sent; undefined: it can. */
export function proofFault(proof: ProofFields | undefined): string | undefined {
  if (proof === undefined) return undefined;
  const isWhole = proof.issuer !== '' && proof.subject !== '' && !proof.claims.some(isPart);
  return isWhole ? undefined : text.needsProof;
}

interface KeyFormProps {
  readonly draft: KeyFields;
  readonly set: (change: Partial<KeyFields>) => void;
  readonly error: unknown;
  /** The present expiry of an edited key. */
  readonly kept?: string | null;
  /** More fields, after the expiry. */
  readonly children?: ReactNode;
}

export function KeyForm({ draft, set, error, kept, children }: KeyFormProps) {
  return (
    <>
      <div className={styles.pair}>
        <TextField
          label={text.name}
          value={draft.name}
          onChange={(name) => set({ name })}
          hint={text.nameHint}
          error={fieldError(error, '/name')}
          autoComplete="off"
          maxLength={MAX_NAME}
          isOptional
          autoFocus
        />
        <TextField
          label={text.description}
          value={draft.description}
          onChange={(description) => set({ description })}
          hint={text.descriptionHint}
          error={fieldError(error, '/description')}
          autoComplete="off"
          maxLength={MAX_DESCRIPTION}
          isRequired
        />
      </div>
      <PermissionPicker
        label={text.scopes}
        selected={draft.scopes}
        onChange={(scopes) => set({ scopes })}
        error={fieldError(error, '/scopes')}
      />
      <ExpiryField
        expiry={draft.expiry}
        onChange={(expiry) => set({ expiry })}
        error={fieldError(error, '/expires_at') ?? fieldError(error, '/expires_in_days')}
        kept={kept}
      />
      {children}
      <NumberField
        label={text.rateLimit}
        value={draft.rate_limit_rpm}
        onChange={(rate) => set({ rate_limit_rpm: rate })}
        hint={text.rateHint}
        error={fieldError(error, '/rate_limit_rpm')}
        isOptional
      />
      <RatesField
        level="key"
        rates={draft.rate_limits}
        onChange={(rates) => set({ rate_limits: rates })}
        error={fieldError(error, '/rate_limits')}
      />
      <div className={styles.form}>
        <SectionHead title={text.constraints} small={text.constraintsSay} />
        <ConstraintFields
          constraints={draft.resource_constraints}
          onChange={(constraints) => set({ resource_constraints: constraints })}
          error={error}
        />
      </div>
      <PairsField
        label={metadataText.label}
        pairs={draft.metadata}
        onChange={(metadata) => set({ metadata })}
        {...METADATA_BOUNDS}
        hint={metadataText.hint}
        error={fieldError(error, '/metadata') ?? metadataFault(draft.metadata)}
      />
    </>
  );
}
