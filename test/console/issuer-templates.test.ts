/** The templates of issuers, and the members that the editor sends. */

import { describe, expect, it } from 'vitest';
import { keysHealth } from '../../console/src/api/keys-health.ts';
import {
  changesOf,
  EMPTY_ISSUER,
  faultOf,
  fieldsOf,
  hasPrivateKey,
  type IssuerFields,
  newIssuerOf,
} from '../../console/src/screens/issuer/draft.ts';
import {
  faultyInputs,
  filledBy,
  TEMPLATE_IDS,
  type TemplateId,
  templateOf,
} from '../../console/src/screens/issuer/templates.ts';
import { issuerTemplates, templateInputs } from '../../console/src/text/en/issuer-templates.ts';
import { validatorOf } from '../../src/http/validation.ts';
import { newIssuer } from '../../src/iam/issuers/entity.ts';

const FILLED = TEMPLATE_IDS.filter((id) => id !== 'own');
const samplesOf = (id: TemplateId) =>
  Object.fromEntries(templateOf(id).inputs.map((input) => [input.name, input.sample]));

function filled(id: TemplateId, values: Readonly<Record<string, string>> = {}): IssuerFields {
  return { ...EMPTY_ISSUER, name: id, ...filledBy(id, { ...samplesOf(id), ...values }) };
}

const claimsOf = (id: TemplateId) => filled(id).required_claims.map(({ claim }) => claim);

describe('the templates of issuers', () => {
  const validate = validatorOf(newIssuer);

  it.each(FILLED)('the API takes what the template %s fills in, with nothing left to add', (id) => {
    const fields = filled(id);
    expect(faultyInputs(id, samplesOf(id))).toEqual([]);
    expect(faultOf(fields)).toBeUndefined();
    expect(validate(newIssuerOf(fields, 'a secret'), true)).toMatchObject({ kind: 'valid' });
  });

  it('each has its words, and so does each value that it asks for', () => {
    const inputs = TEMPLATE_IDS.flatMap((id) => templateOf(id).inputs.map(({ name }) => name));
    expect(Object.keys(issuerTemplates)).toEqual(TEMPLATE_IDS);
    expect(new Set(inputs)).toEqual(new Set(Object.keys(templateInputs)));
  });

  it.each([
    ['entra', { directoryId: 'acme.example' }],
    ['okta', { authorizationServer: 'https://acme.okta.com' }],
    ['keycloak', { realm: 'https://login.acme.example' }],
    ['google', { googleClientId: 'postern' }],
    ['github', { ownerIds: 'acme' }],
    ['gitlab', { namespaceIds: 'acme/agents' }],
    ['eks', { cluster: 'https://1234.gr7.eu-central-1.eks.amazonaws.com' }],
    ['aks', { cluster: samplesOf('aks')['cluster']?.replace(/\/$/, '') ?? '' }],
    ['spiffe', { trustDomain: 'spiffe://acme.example' }],
    ['kubernetes', { cluster: 'http://kubernetes.default' }],
  ] as const)('%s does not take %j', (id, values) => {
    expect(faultyInputs(id, { ...samplesOf(id), ...values }).map(({ name }) => name)).toEqual(Object.keys(values));
  });

  it('Entra ID finds users by oid in one directory, and by no claim that a user can change', () => {
    expect(filled('entra')).toMatchObject({
      required_claims: [{ claim: 'tid', in: [samplesOf('entra')['directoryId']] }],
      users: { subject_claim: 'oid', email_claim: '' },
    });
    expect(templateOf('entra').roleClaim).toBe('roles');
  });

  it('Google lets in only the domains of the Workspace', () => {
    expect(filled('google', { domains: 'acme.example, acme.test' }).required_claims).toEqual([
      { claim: 'hd', in: ['acme.example', 'acme.test'] },
    ]);
  });

  it('GitHub Actions goes by ids and by events that run no code of strangers', () => {
    expect(claimsOf('github')).toEqual(['repository_owner_id', 'repository_id', 'event_name']);
    const events = filled('github').required_claims.at(-1)?.in ?? [];
    expect(events).toContain('push');
    expect(events.filter((event) => event.startsWith('pull_request'))).toEqual([]);
    expect(filled('github', { repositoryIds: '' }).required_claims).toHaveLength(2);
  });

  it.each(['kubernetes', 'eks', 'gke', 'aks', 'pasted'] as const)(
    '%s has an audience and namespaces of its own',
    (id) => {
      expect(filled(id)).toMatchObject({
        audiences: ['postern'],
        required_claims: [{ claim: '/kubernetes.io/namespace', in: ['batch', 'agents'] }],
        users: undefined,
      });
    },
  );

  it('SPIFFE takes the algorithms of a JWT-SVID only', () => {
    const { algorithms } = filled('spiffe');
    expect(algorithms.filter((one) => !/^(RS|ES|PS)(256|384|512)$/.test(one))).toEqual([]);
  });
});

describe('the editor of an issuer', () => {
  it.each(FILLED)('an issuer of the template %s comes back into the form as it was sent', (id) => {
    const fields = filled(id);
    const { name, kind = 'oidc', issuer, audiences, ...rest } = newIssuerOf(fields, '');
    const { sso, users, jwks, ...members } = rest;
    const resource = {
      ...{ id: 'iss_0', tenant_id: 'acme', name, kind, issuer, audiences, enabled: true, revoked_before: null },
      ...{ created_at: '', updated_at: '', jwks_uri: null, ca: null, token_types: null, max_age_seconds: null },
      ...{ algorithms: [], required_claims: [], leeway_seconds: 5 },
      ...members,
      jwks: jwks ?? null,
      sso: sso === undefined || sso === null ? null : { scopes: [], client_secret_set: false, ...sso },
      users:
        users === undefined || users === null
          ? null
          : { subject_claim: 'sub', create: false, roles: [], default_roles: [], ...users },
      keys: { count: 0, kids: [], pasted: false, fetched_at: null, error: null, stale: false },
    };
    const back = fieldsOf(resource);
    expect({ ...back, keys: undefined, sso: undefined }).toEqual({ ...fields, keys: undefined, sso: undefined });
    expect(back.keys.source).toBe(fields.keys.source);
    expect(changesOf(back, '')).toEqual(changesOf({ ...fields, kind }, ''));
  });

  it('sends null for what is taken away, and no secret that is not replaced', () => {
    const sso = { client_id: 'postern', label: 'Acme', scopes: [], required_acr: '', isStored: true, replaces: false };
    expect(changesOf({ users: undefined, ca: ' ', max_age_seconds: undefined, token_types: undefined }, '')).toEqual({
      ...{ users: null, ca: null, max_age_seconds: null, token_types: null },
    });
    expect(changesOf({ sso }, 'left in the field')).toEqual({ sso: { client_id: 'postern', label: 'Acme' } });
    expect(changesOf({ sso: { ...sso, replaces: true } }, 'new')).toMatchObject({ sso: { client_secret: 'new' } });
    expect(changesOf({ keys: { source: 'discovery', jwks_uri: 'https://old', jwks: '{}' } }, '')).toEqual({
      ...{ jwks_uri: null, jwks: null },
    });
  });

  it.each([
    ['{"keys":[{"kty":"EC","d":"secret"}]}', true],
    ['{"keys":[{"kty":"oct","k" : "secret"}]}', true],
    ['-----BEGIN PRIVATE KEY-----', true],
    ['{"keys":[{"kty":"EC","crv":"P-256","x":"d","y":"k","kid":"d"}]}', false],
  ])('finds whether %s holds a private key', (text, expected) => {
    expect(hasPrivateKey(text)).toBe(expected);
  });
});

describe('the keys of an issuer', () => {
  const DAY_MS = 86_400_000;
  const now = Date.parse('2026-11-26T12:00:00Z');
  const keys = {
    count: 1,
    kids: [],
    pasted: false,
    fetched_at: new Date(now).toISOString(),
    error: null,
    stale: false,
  };
  const pasted = (ageMs: number) => ({ ...keys, pasted: true, fetched_at: new Date(now - ageMs).toISOString() });

  it.each([
    ['fetched without an error', keys, { kind: 'fine' }],
    ['fetched before an attempt that failed', { ...keys, error: 'no answer' }, { kind: 'failing' }],
    ['never fetched', { ...keys, fetched_at: null, error: 'no answer' }, { kind: 'never' }],
    ['too old to be used', { ...keys, error: 'no answer', stale: true }, { kind: 'stale' }],
    ['pasted just under 90 days ago', pasted(90 * DAY_MS - 1), { kind: 'fine' }],
    ['pasted 90 days ago', pasted(90 * DAY_MS), { kind: 'old', days: 90 }],
  ] as const)('that were %s are judged so', (_, state, expected) => {
    expect(keysHealth({ keys: state }, now)).toEqual(expected);
  });
});
