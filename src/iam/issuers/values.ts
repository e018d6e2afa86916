/** The values of a new or changed issuer, checked beyond the schema. Roles are checked in the transaction. */

import { type IssuerName, parseIssuerName } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { invalidField, NAME_FORM, throwIfInvalid } from '../caller/refusals.ts';
import { addressErrors, issuerErrors } from './addresses.ts';
import { claimRuleErrors } from './claim-rules.ts';
import {
  DEFAULT_ALGORITHMS,
  DEFAULT_LEEWAY_SECONDS,
  type IssuerChanges,
  type IssuerRow,
  type NewIssuer,
} from './entity.ts';
import { certificates, keySet } from './key-material.ts';
import type { IssuerSettings } from './parts.ts';
import { ssoAfter, ssoErrors } from './sso.ts';
import { usersErrors, usersOf } from './users.ts';

/** The members that requests set. */
export type IssuerValues = Omit<
  IssuerRow,
  'id' | 'tenant_id' | 'revoked_before' | 'jwks_set_at' | 'created_at' | 'updated_at'
>;

interface ReadIssuer {
  readonly values: IssuerValues;
  /** The client's secret. Undefined: the stored one stays. Null: it is removed. */
  readonly clientSecret: string | null | undefined;
}

type Hosts = Pick<IssuerSettings, 'allowedHosts'>;

/** @throws Refusal `invalid_field` that names every invalid member */
export function readNewIssuer(request: NewIssuer, settings: Hosts): ReadIssuer {
  const { kind = 'oidc', ...members } = request;
  const defaults: IssuerValues = {
    name: nameOf(request.name),
    kind,
    issuer: request.issuer,
    audiences: request.audiences,
    jwks_uri: null,
    jwks: null,
    ca: null,
    algorithms: DEFAULT_ALGORITHMS,
    token_types: null,
    required_claims: [],
    users: null,
    sso: null,
    enabled: true,
    max_age_seconds: null,
    leeway_seconds: DEFAULT_LEEWAY_SECONDS,
  };
  const errors = issuerErrors(kind, request.issuer, settings.allowedHosts);
  return read(defaults, members, settings, errors);
}

/** @throws Refusal like `readNewIssuer` */
export function readIssuerChanges(before: IssuerValues, request: IssuerChanges, settings: Hosts): ReadIssuer {
  const { issuer, sso } = request;
  if (issuer === undefined || issuer === before.issuer) return read(before, request, settings, []);
  const errors = [...issuerErrors(before.kind, issuer, settings.allowedHosts)];
  const after = ssoAfter(before.sso, sso);
  if (after?.client_secret_set === true && typeof sso?.client_secret !== 'string') {
    const message = 'The issuer changes, and the stored secret is not sent to another one. State it again.';
    errors.push({ path: '/sso/client_secret', message });
  }
  return read(before, request, settings, errors);
}

/** @param known errors of the request that the caller has found */
function read(before: IssuerValues, request: IssuerChanges, settings: Hosts, known: readonly FieldError[]): ReadIssuer {
  const jwks = keySet(request.jwks, before.kind);
  const ca = certificates(request.ca);
  const values: IssuerValues = {
    name: request.name === undefined ? before.name : nameOf(request.name),
    kind: before.kind,
    issuer: request.issuer ?? before.issuer,
    audiences: unique(request.audiences ?? before.audiences),
    jwks_uri: stated(request.jwks_uri, before.jwks_uri),
    jwks: stated(jwks.value, before.jwks),
    ca: stated(ca.value, before.ca),
    algorithms: unique(request.algorithms ?? before.algorithms),
    token_types: stated(request.token_types && unique(request.token_types), before.token_types),
    required_claims: request.required_claims ?? before.required_claims,
    users: request.users === undefined ? before.users : usersOf(request.users),
    sso: ssoAfter(before.sso, request.sso),
    enabled: request.enabled ?? before.enabled,
    max_age_seconds: stated(request.max_age_seconds, before.max_age_seconds),
    leeway_seconds: request.leeway_seconds ?? before.leeway_seconds,
  };
  throwIfInvalid([
    ...known,
    ...jwks.errors,
    ...ca.errors,
    ...sourceErrors(values, request, settings),
    ...claimRuleErrors(values.required_claims, '/required_claims'),
    ...usersErrors(values.users),
    ...ssoErrors(values, request.sso?.client_secret),
  ]);
  return { values, clientSecret: values.sso === null ? null : request.sso?.client_secret };
}

/** The keys come from one source. */
function sourceErrors(
  { kind, jwks, jwks_uri }: IssuerValues,
  request: IssuerChanges,
  { allowedHosts }: Hosts,
): readonly FieldError[] {
  const path = request.jwks === undefined ? '/jwks_uri' : '/jwks';
  if (jwks !== null && jwks_uri !== null) {
    const message = 'A pasted key set and the address of one exclude each other. Set the other member to null.';
    return [{ path, message }];
  }
  // A key set with errors counts as stated.
  if (kind === 'spiffe' && jwks === null && jwks_uri === null && !request.jwks) {
    return [{ path, message: 'A trust domain has no discovery document. Set jwks or jwks_uri.' }];
  }
  return typeof request.jwks_uri === 'string' ? addressErrors(request.jwks_uri, '/jwks_uri', allowedHosts) : [];
}

/** Null removes a value, and an absent member leaves it. */
function stated<T>(requested: T | null | undefined, before: T | null): T | null {
  return requested === undefined ? before : requested;
}

function nameOf(text: string): IssuerName {
  const name = parseIssuerName(text);
  if (name === undefined) throw invalidField('/name', NAME_FORM);
  return name;
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
