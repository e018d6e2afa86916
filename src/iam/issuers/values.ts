/** The values of a new or changed issuer, checked beyond the schema. Roles are checked in the transaction. */

import { X509Certificate } from 'node:crypto';
import { type IssuerName, parseIssuerName } from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { validateKeySet } from '../../identity/issuer-keys.ts';
import { writtenAddressProblem } from '../../outbound/written-address.ts';
import { invalidField, NAME_FORM, throwIfInvalid } from '../caller/refusals.ts';
import { claimRuleErrors } from './claim-rules.ts';
import {
  DEFAULT_ALGORITHMS,
  DEFAULT_LEEWAY_SECONDS,
  type IssuerChanges,
  type IssuerRow,
  type IssuerSso,
  type NewIssuer,
} from './entity.ts';
import type { IssuerSettings } from './parts.ts';
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
    ...claimRuleErrors(request.required_claims ?? [], '/required_claims'),
    ...(request.users === undefined ? [] : usersErrors(values.users)),
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

const TRUST_DOMAIN = /^spiffe:\/\/[a-z0-9._-]{1,255}$/;

/** Returns an error for a text that cannot be the value of `iss`. */
export function issuerErrors(
  kind: IssuerRow['kind'],
  issuer: string,
  allowedHosts: readonly string[],
): readonly FieldError[] {
  const path = '/issuer';
  if (kind === 'spiffe') {
    if (TRUST_DOMAIN.test(issuer)) return [];
    const message =
      'An issuer of the kind spiffe is spiffe://<trust domain>, without a path. A trust domain has lowercase letters, digits, dots, hyphens and underscores.';
    return [{ path, message }];
  }
  if (issuer.includes('?')) return [{ path, message: 'An issuer must not have a query.' }];
  return addressErrors(issuer, path, allowedHosts);
}

/** Returns an error for a text from which the server would not fetch anything. */
export function addressErrors(text: string, path: string, allowedHosts: readonly string[]): readonly FieldError[] {
  const message = writtenAddressProblem(text, { hosts: allowedHosts, setting: 'issuers.allowed-hosts' });
  return message === undefined ? [] : [{ path, message }];
}

const DEFAULT_SCOPES: readonly string[] = ['openid', 'profile', 'email'];

/** Visible ASCII and spaces, as RFC 6749 has it for identifiers and secrets of clients. */
const CLIENT_TEXT = /^[\x20-\x7e]+$/;

/** Returns the settings after a request, which replaces them whole. The stored secret stays if it names none. */
export function ssoAfter(before: IssuerSso | null, request: IssuerChanges['sso']): IssuerSso | null {
  if (request === undefined) return before;
  if (request === null) return null;
  const { client_id, client_secret, scopes = DEFAULT_SCOPES, label, required_acr } = request;
  return {
    client_id,
    scopes: [...new Set(scopes)],
    label,
    ...(required_acr === undefined ? {} : { required_acr }),
    client_secret_set: client_secret !== undefined || before?.client_secret_set === true,
  };
}

export function ssoErrors(
  { kind, users, sso }: Pick<IssuerRow, 'kind' | 'users' | 'sso'>,
  clientSecret: string | undefined,
): readonly FieldError[] {
  if (sso === null) return [];
  const errors: FieldError[] = [];
  const report = (member: string, message: string): void => void errors.push({ path: `/sso${member}`, message });
  if (kind === 'spiffe') report('', 'Only an issuer of the kind oidc has a login to the console.');
  if (users === null) report('', 'A login needs the member users, which says how tokens prove users.');
  if (!sso.scopes.includes('openid')) report('/scopes', 'The scope openid is required.');
  if (!CLIENT_TEXT.test(sso.client_id)) report('/client_id', 'A client id has visible ASCII characters and spaces.');
  if (clientSecret !== undefined && !CLIENT_TEXT.test(clientSecret)) {
    report('/client_secret', 'A client secret has visible ASCII characters and spaces.');
  }
  if (sso.required_acr !== undefined && !/^[\x21-\x7e]+$/.test(sso.required_acr)) {
    report('/required_acr', 'A value of acr has visible ASCII characters, and no space.');
  }
  return errors;
}

interface Read<T> {
  /** Undefined: absent or not valid. */
  readonly value: T | null | undefined;
  readonly errors: readonly FieldError[];
}

/** Reads a pasted key set. Members of private keys are an error, because responses show the set. */
export function keySet(set: IssuerChanges['jwks'], kind: IssuerRow['kind']): Read<NonNullable<IssuerRow['jwks']>> {
  if (set === undefined || set === null) return { value: set, errors: [] };
  const read = validateKeySet(kind === 'spiffe' ? { keys: set.keys.map(asBundleEntry) } : set, kind);
  if (read.kind === 'error') return { value: undefined, errors: [{ path: '/jwks', message: read.message }] };
  return { value: { keys: read.keys }, errors: [] };
}

/** A stored key of a trust domain has `use: sig`, and may be pasted again as a response showed it. */
function asBundleEntry(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null || !('use' in entry) || entry.use !== 'sig') return entry;
  return { ...entry, use: 'jwt-svid' };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const MAX_CERTIFICATES = 20;

/** Reads certificates in PEM. The result has the certificates and no other text. */
export function certificates(pem: string | null | undefined): Read<string> {
  if (pem === undefined || pem === null) return { value: pem, errors: [] };
  const error = (message: string): Read<string> => ({ value: undefined, errors: [{ path: '/ca', message }] });
  if (pem.includes('PRIVATE KEY-----')) return error('This text has a private key. State certificates only.');
  const blocks = pem.match(CERTIFICATE) ?? [];
  if (blocks.length === 0) return error('This text has no certificate in PEM (-----BEGIN CERTIFICATE-----).');
  if (blocks.length > MAX_CERTIFICATES) return error(`At most ${MAX_CERTIFICATES} certificates are read.`);
  const broken = blocks.findIndex((block) => !isCertificate(block));
  if (broken >= 0) return error(`Certificate ${broken + 1} cannot be read.`);
  return { value: `${blocks.join('\n')}\n`, errors: [] };
}

function isCertificate(block: string): boolean {
  try {
    return new X509Certificate(block).raw.length > 0;
  } catch {
    return false;
  }
}
