/** An issuer as the form holds it, and the members of a request that it becomes. The form never holds a secret. */

import type { Issuer, IssuerChanges, NewIssuer } from '../../../../client/index.ts';
import { issuers as text } from '../../text/en/issuers.ts';

/** A condition on a claim: its value, or one element of it, must match one of the texts or globs. */
export interface ClaimRule {
  readonly claim: string;
  readonly in: readonly string[];
}

export interface MappedRoles extends ClaimRule {
  readonly roles: readonly string[];
}

export const KEY_SOURCES = ['discovery', 'address', 'pasted'] as const;

/** Where the keys come from. */
export interface KeysFields {
  readonly source: (typeof KEY_SOURCES)[number];
  readonly jwks_uri: string;
  /** The pasted key set as JSON. */
  readonly jwks: string;
}

export interface UsersFields {
  readonly subject_claim: string;
  /** Empty: none. */
  readonly email_claim: string;
  readonly name_claim: string;
  readonly create: boolean;
  readonly roles: readonly MappedRoles[];
  readonly default_roles: readonly string[];
}

export interface SsoFields {
  readonly client_id: string;
  readonly label: string;
  /** Empty: the server's default. */
  readonly scopes: readonly string[];
  /** Empty: none. */
  readonly required_acr: string;
  /** True: a secret is stored. */
  readonly isStored: boolean;
  /** True: the secret is typed beside the form and replaces the stored one. */
  readonly replaces: boolean;
}

export interface IssuerFields {
  readonly name: string;
  readonly kind: 'oidc' | 'spiffe';
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly keys: KeysFields;
  /** Certificate authorities in PEM; empty: none. */
  readonly ca: string;
  readonly algorithms: readonly string[];
  /** Undefined: the server's default. An empty text is an absent type. */
  readonly token_types: readonly string[] | undefined;
  readonly required_claims: readonly ClaimRule[];
  /** Undefined: tokens prove no user. */
  readonly users: UsersFields | undefined;
  /** Undefined: no login to the console. */
  readonly sso: SsoFields | undefined;
  /** Undefined: no bound. */
  readonly max_age_seconds: number | undefined;
  readonly leeway_seconds: number | undefined;
}

export const ALGORITHMS = [
  ...(['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'] as const),
  'EdDSA',
] as const;

/** The users of an issuer that gets some. */
export const NEW_USERS: UsersFields = {
  subject_claim: 'sub',
  email_claim: '',
  name_claim: '',
  create: false,
  roles: [],
  default_roles: [],
};
export const NEW_SSO: SsoFields = {
  client_id: '',
  label: '',
  scopes: [],
  required_acr: '',
  isStored: false,
  replaces: true,
};

export const EMPTY_ISSUER: IssuerFields = {
  name: '',
  kind: 'oidc',
  issuer: '',
  audiences: [],
  keys: { source: 'discovery', jwks_uri: '', jwks: '' },
  ca: '',
  algorithms: ['RS256', 'ES256', 'EdDSA'],
  token_types: undefined,
  required_claims: [],
  users: undefined,
  sso: undefined,
  max_age_seconds: undefined,
  leeway_seconds: 5,
};

export function fieldsOf(issuer: Issuer): IssuerFields {
  const { name, kind, audiences, jwks_uri: uri, jwks, ca, algorithms, required_claims: rules, users, sso } = issuer;
  return {
    name,
    kind,
    issuer: issuer.issuer,
    audiences,
    keys: {
      source: jwks !== null ? 'pasted' : uri !== null ? 'address' : 'discovery',
      jwks_uri: uri ?? '',
      jwks: jwks === null ? '' : JSON.stringify(jwks, undefined, 2),
    },
    ca: ca ?? '',
    algorithms,
    token_types: issuer.token_types ?? undefined,
    required_claims: rules.map(({ claim, in: values }) => ({ claim, in: values })),
    users:
      users === null
        ? undefined
        : {
            subject_claim: users.subject_claim,
            email_claim: users.email_claim ?? '',
            name_claim: users.name_claim ?? '',
            create: users.create,
            roles: users.roles.map(({ claim, in: values, roles }) => ({ claim, in: values, roles })),
            default_roles: users.default_roles,
          },
    sso:
      sso === null
        ? undefined
        : {
            client_id: sso.client_id,
            label: sso.label,
            scopes: sso.scopes,
            required_acr: sso.required_acr ?? '',
            isStored: sso.client_secret_set,
            replaces: false,
          },
    max_age_seconds: issuer.max_age_seconds ?? undefined,
    leeway_seconds: issuer.leeway_seconds,
  };
}

/**
 * The fields as members of a request. An absent field is an absent member.
 *
 * @param secret the secret of the console's client, if the form replaces it
 */
export function changesOf(fields: Partial<IssuerFields>, secret: string): IssuerChanges {
  const { name, issuer, audiences, keys, ca, algorithms, required_claims: rules, leeway_seconds: leeway } = fields;
  return {
    ...(name === undefined ? {} : { name }),
    ...(issuer === undefined ? {} : { issuer: issuer.trim() }),
    ...(audiences === undefined ? {} : { audiences }),
    ...(keys === undefined ? {} : keyMembers(keys)),
    ...(ca === undefined ? {} : { ca: ca.trim() === '' ? null : ca.trim() }),
    ...(algorithms === undefined ? {} : { algorithms: ALGORITHMS.filter((one) => algorithms.includes(one)) }),
    ...('token_types' in fields ? { token_types: fields.token_types ?? null } : {}),
    ...(rules === undefined ? {} : { required_claims: rules }),
    ...('users' in fields ? { users: usersMember(fields.users) } : {}),
    ...('sso' in fields ? { sso: ssoMember(fields.sso, secret) } : {}),
    ...('max_age_seconds' in fields ? { max_age_seconds: fields.max_age_seconds ?? null } : {}),
    ...(leeway === undefined ? {} : { leeway_seconds: leeway }),
  };
}

/** The whole issuer as the body of its creation. */
export function newIssuerOf(fields: IssuerFields, secret: string): NewIssuer {
  const { name, kind, issuer, audiences } = fields;
  return { ...changesOf(fields, secret), name, kind, issuer: issuer.trim(), audiences };
}

function keyMembers({ source, jwks_uri: uri, jwks }: KeysFields) {
  return {
    jwks_uri: source === 'address' ? uri.trim() : null,
    jwks: source === 'pasted' ? (keySetOf(jwks) ?? null) : null,
  };
}

function usersMember(users: UsersFields | undefined) {
  if (users === undefined) return null;
  const { email_claim: email, name_claim: name, ...rest } = users;
  return {
    ...rest,
    ...(email.trim() === '' ? {} : { email_claim: email.trim() }),
    ...(name.trim() === '' ? {} : { name_claim: name.trim() }),
  };
}

function ssoMember(sso: SsoFields | undefined, secret: string) {
  if (sso === undefined) return null;
  const { client_id: id, label, scopes, required_acr: acr, replaces } = sso;
  return {
    client_id: id.trim(),
    label: label.trim(),
    ...(scopes.length === 0 ? {} : { scopes }),
    ...(acr.trim() === '' ? {} : { required_acr: acr.trim() }),
    ...(replaces && secret !== '' ? { client_secret: secret } : {}),
  };
}

interface KeySet {
  readonly keys: readonly Readonly<Record<string, unknown>>[];
}

/** Returns the pasted key set; undefined: the text is none. */
export function keySetOf(jwks: string): KeySet | undefined {
  try {
    const parsed: unknown = JSON.parse(jwks);
    return isKeySet(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function isKeySet(value: unknown): value is KeySet {
  if (typeof value !== 'object' || value === null || !('keys' in value) || !Array.isArray(value.keys)) return false;
  return value.keys.length > 0 && value.keys.every((key) => typeof key === 'object' && key !== null);
}

/** Members of a key that only its holder may have (RFC 7518). */
const PRIVATE_MEMBERS = /"(?:d|p|q|dp|dq|qi|oth|k)"\s*:/;

/** Reports whether a text holds a private or a symmetric key, which must not be kept or sent. */
export function hasPrivateKey(jwks: string): boolean {
  return PRIVATE_MEMBERS.test(jwks) || /PRIVATE KEY/.test(jwks);
}

/** Returns why the issuer cannot be sent; undefined: it can. */
export function faultOf(fields: IssuerFields): string | undefined {
  const { issuer, audiences, keys, algorithms, required_claims: rules, users, sso } = fields;
  if (issuer.trim() === '') return text.faults.issuer;
  if (audiences.length === 0) return text.faults.audiences;
  if (keys.source === 'address' && keys.jwks_uri.trim() === '') return text.faults.address;
  if (keys.source === 'pasted' && keySetOf(keys.jwks) === undefined) return text.faults.keySet;
  if (fields.kind === 'spiffe' && keys.source === 'discovery') return text.faults.spiffeKeys;
  if (algorithms.length === 0) return text.faults.algorithms;
  if (rules.some(isPart)) return text.faults.rules;
  if (users?.subject_claim.trim() === '') return text.faults.subject;
  if (users?.roles.some((rule) => isPart(rule) || rule.roles.length === 0) === true) return text.faults.mapping;
  if (sso !== undefined && (sso.client_id.trim() === '' || sso.label.trim() === '')) return text.faults.sso;
  return undefined;
}

/** Reports whether a rule has no claim or no value yet. */
export function isPart({ claim, in: values }: ClaimRule): boolean {
  return claim.trim() === '' || values.length === 0;
}

/** The roles that the mapping and the defaults name, once each. */
export function grantedRoles(users: UsersFields | undefined): readonly string[] {
  if (users === undefined) return [];
  return [...new Set([...users.default_roles, ...users.roles.flatMap(({ roles }) => roles)])];
}
