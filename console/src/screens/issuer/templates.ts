/**
 * Templates of issuers: the few values that each asks for, and the members that it fills. The traps of each system are
 * in the filled members: claims that identify a user for good, rules that refuse other organizations, and audiences of
 * their own.
 */

import type { IssuerFields, UsersFields } from './draft.ts';

/** The values of a template by the names of its inputs. */
export type TemplateValues = Readonly<Record<string, string>>;

export interface TemplateInput {
  readonly name: string;
  /** The form of the value. Absent: each text is accepted. */
  readonly pattern?: RegExp;
  readonly isOptional?: boolean;
  /** lines: a field of several lines. words: several values, separated by commas or spaces. */
  readonly kind?: 'lines' | 'words';
  readonly start?: string;
  /** A value that the template takes: the placeholder, and the value of tests. */
  readonly sample: string;
}

interface Template {
  readonly group: TemplateGroup;
  readonly inputs: readonly TemplateInput[];
  readonly fill: (value: (name: string) => string) => Partial<IssuerFields>;
  /** The claim by which this system usually says the groups or roles of a user. */
  readonly roleClaim?: string;
}

export const TEMPLATE_GROUPS = ['people', 'ci', 'workloads', 'other'] as const;
type TemplateGroup = (typeof TEMPLATE_GROUPS)[number];

const GUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const GUID_SAMPLE = '3f1c0f6e-6a7b-4f0e-9d55-0d6f2f2a9c11';
const HTTPS = /^https:\/\/[^\s/?#@]+(?:\/[^\s?#]*)?$/;
const NUMBERS = /^\d+(?:[\s,]+\d+)*$/;
const NAMESPACES = /^[a-z0-9-]+(?:[\s,]+[a-z0-9-]+)*$/;

const audience: TemplateInput = { name: 'audience', pattern: /^\S+$/, start: 'postern', sample: 'postern' };
const clientId: TemplateInput = { name: 'clientId', pattern: /^\S+$/, sample: GUID_SAMPLE };
const namespaces: TemplateInput = { name: 'namespaces', kind: 'words', pattern: NAMESPACES, sample: 'batch, agents' };
const cluster: TemplateInput = {
  name: 'cluster',
  pattern: HTTPS,
  start: 'https://kubernetes.default.svc.cluster.local',
  sample: 'https://kubernetes.default.svc.cluster.local',
};

const PEM_SAMPLE = '-----BEGIN CERTIFICATE-----';
const KEY_SET_SAMPLE =
  '{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"one","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}';

/** Users with no role by default: the first token of a subject creates its user. */
function usersOf(subject: string, name: string): UsersFields {
  return { subject_claim: subject, email_claim: '', name_claim: name, create: true, roles: [], default_roles: [] };
}

/** Pods say their namespace in a member whose name has a dot, so the claim is a JSON pointer. */
function podsOf(value: (name: string) => string): Partial<IssuerFields> {
  return {
    audiences: [value('audience')],
    required_claims: [{ claim: '/kubernetes.io/namespace', in: wordsOf(value('namespaces')) }],
  };
}

function managedCluster(pattern: RegExp, sample: string): Template {
  return {
    group: 'workloads',
    inputs: [{ name: 'cluster', pattern, sample }, audience, namespaces],
    fill: (value) => ({ issuer: value('cluster'), ...podsOf(value) }),
  };
}

/** Events that run code which was pushed or chosen. `pull_request_target` runs beside the code of strangers. */
const SAFE_EVENTS = [
  'push',
  'schedule',
  'workflow_dispatch',
  'repository_dispatch',
  'release',
  'deployment',
  'merge_group',
];

/** JWT-SVID permits these, and not EdDSA. */
const SVID_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'];

export const TEMPLATES = {
  entra: {
    group: 'people',
    inputs: [{ name: 'directoryId', pattern: GUID, sample: GUID_SAMPLE }, clientId],
    fill: (value) => ({
      issuer: `https://login.microsoftonline.com/${value('directoryId').toLowerCase()}/v2.0`,
      audiences: [value('clientId')],
      required_claims: [{ claim: 'tid', in: [value('directoryId').toLowerCase()] }],
      users: usersOf('oid', 'name'),
    }),
    roleClaim: 'roles',
  },
  okta: {
    group: 'people',
    inputs: [
      {
        name: 'authorizationServer',
        pattern: /^https:\/\/[^\s/?#@]+\/oauth2\/[^\s/?#]+$/,
        sample: 'https://acme.okta.com/oauth2/default',
      },
      { name: 'apiAudience', pattern: /^\S+$/, start: 'api://default', sample: 'api://default' },
    ],
    fill: (value) => ({
      issuer: value('authorizationServer'),
      audiences: [value('apiAudience')],
      users: usersOf('uid', ''),
    }),
    roleClaim: 'groups',
  },
  keycloak: {
    group: 'people',
    inputs: [
      {
        name: 'realm',
        pattern: /^https:\/\/[^\s/?#@]+\/(?:[^\s?#]+\/)?realms\/[^\s/?#]+$/,
        sample: 'https://login.acme.example/realms/staff',
      },
      audience,
    ],
    fill: (value) => ({
      issuer: value('realm'),
      audiences: [value('audience')],
      users: usersOf('sub', 'name'),
    }),
    roleClaim: '/realm_access/roles',
  },
  google: {
    group: 'people',
    inputs: [
      {
        name: 'googleClientId',
        pattern: /^\S+\.apps\.googleusercontent\.com$/,
        sample: '123456789012-abcdef.apps.googleusercontent.com',
      },
      { name: 'domains', kind: 'words', pattern: /^[a-z0-9.-]+(?:[\s,]+[a-z0-9.-]+)*$/, sample: 'acme.example' },
    ],
    fill: (value) => ({
      issuer: 'https://accounts.google.com',
      audiences: [value('googleClientId')],
      algorithms: ['RS256'],
      required_claims: [{ claim: 'hd', in: wordsOf(value('domains')) }],
      users: usersOf('sub', 'name'),
      sso: {
        client_id: value('googleClientId'),
        label: 'Google',
        scopes: [],
        required_acr: '',
        isStored: false,
        replaces: true,
      },
    }),
    roleClaim: 'hd',
  },
  github: {
    group: 'ci',
    inputs: [
      audience,
      { name: 'ownerIds', kind: 'words', pattern: NUMBERS, sample: '9919' },
      { name: 'repositoryIds', kind: 'words', pattern: NUMBERS, isOptional: true, sample: '1296269' },
    ],
    fill: (value) => ({
      issuer: 'https://token.actions.githubusercontent.com',
      audiences: [value('audience')],
      algorithms: ['RS256'],
      required_claims: [
        { claim: 'repository_owner_id', in: wordsOf(value('ownerIds')) },
        ...ruleIf('repository_id', value('repositoryIds')),
        { claim: 'event_name', in: SAFE_EVENTS },
      ],
    }),
  },
  gitlab: {
    group: 'ci',
    inputs: [
      {
        name: 'gitlab',
        pattern: /^https:\/\/[^\s/?#@]+$/,
        start: 'https://gitlab.com',
        sample: 'https://gitlab.com',
      },
      audience,
      { name: 'namespaceIds', kind: 'words', pattern: NUMBERS, sample: '72' },
      { name: 'projectIds', kind: 'words', pattern: NUMBERS, isOptional: true, sample: '20' },
    ],
    fill: (value) => ({
      issuer: value('gitlab'),
      audiences: [value('audience')],
      algorithms: ['RS256'],
      required_claims: [
        { claim: 'namespace_id', in: wordsOf(value('namespaceIds')) },
        ...ruleIf('project_id', value('projectIds')),
        { claim: 'ref_protected', in: ['true'] },
      ],
    }),
  },
  kubernetes: {
    group: 'workloads',
    inputs: [cluster, audience, namespaces, { name: 'ca', kind: 'lines', isOptional: true, sample: PEM_SAMPLE }],
    fill: (value) => ({
      issuer: value('cluster'),
      ...podsOf(value),
      // The discovery document of an API server often names its own address.
      keys: { source: 'address', jwks_uri: `${value('cluster').replace(/\/$/, '')}/openid/v1/jwks`, jwks: '' },
      ca: value('ca'),
    }),
  },
  eks: managedCluster(
    /^https:\/\/oidc\.eks\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?\/id\/[0-9A-F]+$/,
    'https://oidc.eks.eu-central-1.amazonaws.com/id/D539D4633E53DE1B71E4A8A1B2C3D4E5',
  ),
  gke: managedCluster(
    /^https:\/\/container\.googleapis\.com\/v1\/projects\/[^\s/]+\/locations\/[^\s/]+\/clusters\/[^\s/]+$/,
    'https://container.googleapis.com/v1/projects/acme/locations/europe-west3/clusters/agents',
  ),
  aks: managedCluster(
    /^https:\/\/[a-z0-9-]+\.oic\.prod-aks\.azure\.com\/[0-9a-f-]{36}\/[0-9a-f-]{36}\/$/i,
    `https://germanywestcentral.oic.prod-aks.azure.com/${GUID_SAMPLE}/${GUID_SAMPLE}/`,
  ),
  pasted: {
    group: 'workloads',
    inputs: [
      cluster,
      audience,
      namespaces,
      { name: 'keySet', kind: 'lines', pattern: /^\s*\{[\s\S]*\}\s*$/, sample: KEY_SET_SAMPLE },
    ],
    fill: (value) => ({
      issuer: value('cluster'),
      ...podsOf(value),
      keys: { source: 'pasted', jwks_uri: '', jwks: value('keySet') },
    }),
  },
  spiffe: {
    group: 'workloads',
    inputs: [
      { name: 'trustDomain', pattern: /^[a-z0-9._-]+$/, sample: 'prod.acme.example' },
      audience,
      { name: 'bundle', pattern: HTTPS, isOptional: true, sample: 'https://spire.acme.example/bundle' },
    ],
    fill: (value) => ({
      kind: 'spiffe',
      issuer: `spiffe://${value('trustDomain')}`,
      audiences: [value('audience')],
      keys: { source: 'address', jwks_uri: value('bundle'), jwks: '' },
      algorithms: SVID_ALGORITHMS,
    }),
  },
  own: { group: 'other', inputs: [], fill: () => ({}) },
} as const satisfies Readonly<Record<string, Template>>;

export type TemplateId = keyof typeof TEMPLATES;

export const TEMPLATE_IDS: readonly TemplateId[] = [
  ...(['entra', 'okta', 'keycloak', 'google', 'github', 'gitlab'] as const),
  ...(['kubernetes', 'eks', 'gke', 'aks', 'pasted', 'spiffe', 'own'] as const),
];

/** The template by its id, without the names of its inputs in its type. */
export function templateOf(id: TemplateId): Template {
  return TEMPLATES[id];
}

/** Returns the value of an input: the typed one, or the value that it begins with. */
export function typedValue({ name, start }: TemplateInput, values: TemplateValues): string {
  return (values[name] ?? start ?? '').trim();
}

/** Returns the inputs whose values are missing or malformed. */
export function faultyInputs(id: TemplateId, values: TemplateValues): readonly TemplateInput[] {
  return templateOf(id).inputs.filter((input) => isFaulty(input, values));
}

export function isFaulty(input: TemplateInput, values: TemplateValues): boolean {
  const value = typedValue(input, values);
  if (value === '') return input.isOptional !== true;
  return input.pattern?.test(value) === false;
}

/** Returns the members that the template fills with the values. */
export function filledBy(id: TemplateId, values: TemplateValues): Partial<IssuerFields> {
  const { inputs, fill } = templateOf(id);
  const byName = new Map(inputs.map((input) => [input.name, typedValue(input, values)]));
  return fill((name) => byName.get(name) ?? '');
}

function wordsOf(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((word) => word !== ''))];
}

function ruleIf(claim: string, words: string) {
  const values = wordsOf(words);
  return values.length === 0 ? [] : [{ claim, in: values }];
}
