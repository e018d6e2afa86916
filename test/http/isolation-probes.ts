/**
 * The names in a request of the API, derived from its route: path parameters, query parameters, members of the body and
 * X-Tenant-ID. Each place is a probe: the same request with another tenant's name there, and with an unknown name.
 * A route or a member without an entry here is an error, so that every new one gets an entry.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import type { Endpoint } from '../../src/http/endpoint.ts';
import type { Json } from './harness.ts';

export type Kind =
  | 'user'
  | 'key'
  | 'role'
  | 'policy'
  | 'tenant'
  | 'session'
  | 'subject'
  | 'credential'
  | 'email'
  | 'person'
  | 'target'
  | 'issuer'
  | 'webhook'
  | 'delivery'
  | 'issuer_name'
  | 'budget'
  | 'request'
  | 'decision'
  | 'event'
  | 'cursor'
  /** Names that the request gives to something new. */
  | 'new_role'
  | 'new_policy';

/** A name of another tenant and an unknown name. Both have the same length, so that an echo of them has too. */
export interface Pair {
  readonly theirs: string;
  readonly nobodys: string;
}

export interface Cast {
  pairs(kind: Kind, route: Endpoint): readonly Pair[];
  /** The caller's own, for the places that are not probed. */
  own(kind: Kind): string;
}

/** The kind of name after this segment of a path. */
const COLLECTIONS: Readonly<Record<string, Kind>> = {
  users: 'user',
  roles: 'role',
  policies: 'policy',
  tenants: 'tenant',
  'api-keys': 'key',
  sessions: 'session',
  issuers: 'issuer',
  webhooks: 'webhook',
  deliveries: 'delivery',
  budgets: 'budget',
  recent: 'decision',
};

type Meaning =
  | Kind
  | 'plain'
  | readonly [Kind]
  | 'proposed_policies'
  | 'proposed_roles'
  | 'removed_rules'
  | 'usage_events'
  | 'imported_keys'
  | 'identities'
  | 'proof'
  | 'mapping'
  | 'budget_scope';

/** The kind of name in query parameters and members of bodies. `plain`: no name of a resource. */
const MEMBERS: Readonly<Record<string, Meaning>> = {
  current_password: 'plain',
  tenant_id: 'tenant',
  user_id: 'user',
  created_by: 'user',
  key_id: 'key',
  role: 'role',
  roles: ['role'],
  attached_roles: ['role'],
  subject: 'subject',
  credential: 'credential',
  actor: 'subject',
  principal: 'subject',
  target: 'target',
  request_id: 'request',
  cursor: 'cursor',
  q: 'person',
  ids: ['key'],
  keys: 'imported_keys',
  issuer: 'issuer_name',
  identities: 'identities',
  proof: 'proof',
  ...plain('count dry_run filter metadata prefix'),
  ...plain(
    'action actions allow_keys_without_expiry applies_to body client_ip collections conditions content_type current department',
  ),
  ...plain(
    'builtin description directory_status effect email_conflict enabled expires_at expires_before expires_in_days force from global grace_seconds group_by include limit method',
  ),
  ...plain(
    'require_stream_usage locked metadata monthly_tokens_used name new_password old_password password path period permission permissions quotas rate_limit_rpm rate_limits',
  ),
  ...plain('pattern resource resource_constraints resources result scopes settings sort status strict time to'),
  ...plain(
    'code differs include interval mode near_limit notices other outcome route shadow unused_days wider_than_used without_expiry would',
  ),
  // A directory is the platform's own, and so are the names in it.
  ...plain('directory username'),
  ...plain('algorithms audiences ca jwks jwks_uri kind leeway_seconds max_age_seconds required_claims sso'),
  ...plain('token token_types'),
  // The platform's own.
  ...plain('prices provider'),
  ...plain('url state'),
  ...plain('alerts models per reason timezone unit'),
  // An address is unique on the whole platform, so a request can find out that it is taken. Lists do not reveal its
  // owner.
  email: 'plain',
};

/** Where a member means something else than elsewhere. */
const MEMBERS_OF: Readonly<Record<string, Readonly<Record<string, Meaning>>>> = {
  'GET /v1/iam/users': { email: 'email' },
  'GET /v1/iam/decisions/recent': { report: 'policy' },
  'POST /v1/iam/users/change': { ids: ['user'] },
  ...Object.fromEntries(
    ['POST /v1/iam/webhooks', 'PUT /v1/iam/webhooks/:id', 'PATCH /v1/iam/webhooks/:id'].map((title) => [
      title,
      { events: 'plain' as const },
    ]),
  ),
  // A value of `iss` has one enabled issuer on the whole platform, as an address has one user.
  'POST /v1/iam/issuers': { issuer: 'plain', users: 'mapping' },
  'PUT /v1/iam/issuers/:id': { issuer: 'plain', users: 'mapping' },
  'PATCH /v1/iam/issuers/:id': { issuer: 'plain', users: 'mapping' },
  ...Object.fromEntries(
    [
      'POST /v1/iam/budgets',
      'POST /v1/iam/budgets/preview',
      'PUT /v1/iam/budgets/:id',
      'PATCH /v1/iam/budgets/:id',
    ].map((title) => [title, { applies_to: 'budget_scope' } as const]),
  ),
  'POST /v1/iam/roles': { name: 'new_role' },
  'POST /v1/iam/policies': { name: 'new_policy' },
  'POST /v1/iam/tenants': { id: 'tenant' },
  'POST /v1/iam/usage/events': { events: 'usage_events' },
  'POST /v1/iam/explain/simulate': {
    policies: 'proposed_policies',
    roles: 'proposed_roles',
    remove: 'removed_rules',
  },
  'POST /v1/iam/explain/difference': {
    policies: 'proposed_policies',
    roles: 'proposed_roles',
    remove: 'removed_rules',
  },
};

function plain(names: string): Readonly<Record<string, 'plain'>> {
  return Object.fromEntries(names.split(' ').map((name) => [name, 'plain']));
}

const DENY = { effect: 'deny', actions: ['rag:*'], resources: ['*'], attached_roles: ['developer'] };
const BUDGET = {
  name: 'made-by-a-probe',
  unit: 'tokens',
  limit: 1,
  period: 'day',
  applies_to: { metadata: { made: 'by a probe' } },
};
const CHAT = { method: 'GET', path: '/v1/chat/history' };

/** Returns a new event each time, because a repeated event gets another answer. */
export function usageEvent() {
  return { id: randomUUID(), model: 'llama-3', time: new Date().toISOString(), prompt_tokens: 2, completion_tokens: 1 };
}

/** Returns a row of an import, with a new key each time. */
export function importedKey() {
  const digest = randomBytes(32).toString('hex');
  return {
    digest,
    prefix: 'sk-old',
    last_four: 'abcd',
    description: 'imported',
    scopes: ['chat:read'],
    expires_in_days: 1,
  };
}

/** The query that the other parameters require. */
const QUERIES: Readonly<Record<string, string>> = {
  'GET /v1/iam/usage': 'group_by=model',
  'GET /v1/iam/explain/who-can': 'permission=chat:read',
};

/** Valid bodies, for routes that need one. */
const BODIES: Readonly<Record<string, Json>> = {
  'POST /v1/iam/users': { email: 'somebody-new@acme.example', name: 'Somebody' },
  'POST /v1/iam/users/change': { action: 'add_role', role: 'auditor', ids: [`usr_${'0'.repeat(26)}`] },
  'POST /v1/iam/roles': { name: 'made-by-a-probe', permissions: [] },
  'POST /v1/iam/policies': { name: 'made-by-a-probe', ...DENY },
  'POST /v1/iam/tenants': { id: 'made-by-a-probe', name: 'Made' },
  'POST /v1/iam/api-keys': { description: 'k', scopes: ['chat:read'], expires_in_days: 1 },
  'POST /v1/iam/issuers': { name: 'made-by-a-probe', issuer: 'https://127.0.0.1:1/probe', audiences: ['postern'] },
  'POST /v1/iam/issuers/:id/test': { token: 'hello' },
  'POST /v1/iam/webhooks': { url: 'https://hooks.example/made-by-a-probe', events: ['key.*'] },
  'POST /v1/iam/budgets': BUDGET,
  'POST /v1/iam/budgets/preview': BUDGET,
  'POST /v1/iam/budgets/:id/reset': { reason: 'a probe' },
  'PUT /v1/iam/prices': { prices: [] },
  'PATCH /v1/iam/prices': { prices: [] },
  'POST /v1/iam/explain': CHAT,
  'POST /v1/iam/explain/simulate': CHAT,
  'POST /v1/iam/explain/difference': { policies: [{ name: 'made-by-a-probe', ...DENY }] },
  'POST /v1/iam/explain/who-can': { permission: 'chat:read' },
  'POST /v1/iam/directory/test': { username: 'alice' },
  'POST /v1/auth/password': { old_password: 'not the password', new_password: 'another one that is long enough' },
};

export interface Probe {
  /** The place: `path id`, `query role`, `body /roles`, `header x-tenant-id`. */
  readonly place: string;
  readonly pair: Pair;
  /** The request with a name at that place. */
  readonly request: (name: string) => {
    readonly path: string;
    readonly tenant?: string;
    readonly body?: Json;
  };
}

export function titleOf(route: Pick<Endpoint, 'method' | 'path'>): string {
  return `${route.method} ${route.path}`;
}

/** @throws Error for a parameter or member without an entry here */
export function probesOf(route: Endpoint, cast: Cast): readonly Probe[] {
  const params = paramsOf(route.path);
  const own = new Map(params.map(({ name, kind }) => [name, cast.own(kind)]));
  const pathWith = (names: ReadonlyMap<string, string>) =>
    route.path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(names.get(name) ?? ''));
  const path = pathWith(own);
  const base = bodyOf(route);
  const query = queryOf(route);
  const withBody = (body: Json | undefined) => (body === undefined ? {} : { body });

  const ofPath = params.flatMap(({ name, kind }) =>
    cast.pairs(kind, route).map((pair) => ({
      place: `path ${name}`,
      pair,
      request: (text: string) => ({ path: pathWith(new Map([...own, [name, text]])), ...withBody(base) }),
    })),
  );
  const ofQuery = membersOf(route.querySchema).flatMap((name) =>
    kindsOf(route, name).flatMap(({ kind }) =>
      cast.pairs(kind, route).map((pair) => ({
        place: `query ${name}`,
        pair,
        request: (text: string) => ({ path: `${path}?${query}${name}=${encodeURIComponent(text)}`, ...withBody(base) }),
      })),
    ),
  );
  const ofBody = membersOf(route.bodySchema).flatMap((name) =>
    kindsOf(route, name).flatMap(({ kind, wrap }) =>
      cast.pairs(kind, route).map((pair) => ({
        place: `body /${name}`,
        pair,
        request: (text: string) => ({ path, body: { ...base, ...beside(route, name, cast), [name]: wrap(text) } }),
      })),
    ),
  );
  const ofHeader = cast.pairs('tenant', route).map((pair) => ({
    place: 'header x-tenant-id',
    pair,
    request: (tenant: string) => ({ path, tenant, ...withBody(base) }),
  }));
  return [...ofPath, ...ofQuery, ...ofBody, ...ofHeader];
}

/** Returns the members that a member requires. */
function beside(route: Endpoint, name: string, cast: Cast): Json {
  return name === 'tenant_id' && membersOf(route.bodySchema).includes('subject') ? { subject: cast.own('user') } : {};
}

/** Another method of a path, to which no route belongs. */
export function strayProbes(template: string, cast: Cast, route: Endpoint): readonly Probe[] {
  // Of the method GET, which has no body here.
  return probesOf({ ...route, method: 'GET', path: template, querySchema: {}, bodySchema: {} }, cast).filter(
    ({ place }) => place.startsWith('path'),
  );
}

function paramsOf(path: string): readonly { readonly name: string; readonly kind: Kind }[] {
  const segments = path.split('/');
  return segments.flatMap((segment, i) => {
    if (!segment.startsWith(':')) return [];
    const kind = COLLECTIONS[segments[i - 1] ?? ''];
    if (kind === undefined) throw new Error(`say in COLLECTIONS what ${segment} of ${path} names`);
    return [{ name: segment.slice(1), kind }];
  });
}

function membersOf(schema: object): readonly string[] {
  const properties: unknown = 'properties' in schema ? schema.properties : {};
  return Object.keys(typeof properties === 'object' && properties !== null ? properties : {});
}

interface Named {
  readonly kind: Kind;
  readonly wrap: (text: string) => unknown;
}

function kindsOf(route: Endpoint, name: string): readonly Named[] {
  const meaning = MEMBERS_OF[titleOf(route)]?.[name] ?? MEMBERS[name];
  if (meaning === undefined) throw new Error(`say in MEMBERS what ${name} of ${titleOf(route)} names`);
  if (meaning === 'plain') return [];
  if (meaning === 'proposed_policies') {
    return [
      { kind: 'policy', wrap: (text) => [{ name: text, ...DENY }] },
      { kind: 'role', wrap: (text) => [{ name: 'proposed', ...DENY, attached_roles: [text] }] },
    ];
  }
  if (meaning === 'removed_rules') {
    return [
      { kind: 'policy', wrap: (text) => ({ policies: [text] }) },
      { kind: 'role', wrap: (text) => ({ roles: [text] }) },
    ];
  }
  if (meaning === 'proposed_roles') return [{ kind: 'role', wrap: (text) => [{ name: text, permissions: [] }] }];
  if (meaning === 'budget_scope') {
    return [
      { kind: 'key', wrap: (text) => ({ keys: [text] }) },
      { kind: 'user', wrap: (text) => ({ users: [text] }) },
      { kind: 'role', wrap: (text) => ({ roles: [text] }) },
    ];
  }
  if (meaning === 'mapping') return [{ kind: 'role', wrap: (text) => ({ default_roles: [text] }) }];
  if (meaning === 'imported_keys') {
    return [{ kind: 'user', wrap: (text) => [{ ...importedKey(), user_id: text }] }];
  }
  if (meaning === 'identities') return [{ kind: 'issuer_name', wrap: (text) => [{ issuer: text, subject: 's' }] }];
  if (meaning === 'proof') return [{ kind: 'issuer_name', wrap: (text) => ({ issuer: text, subject: 's' }) }];
  if (meaning === 'usage_events') {
    return [
      { kind: 'event', wrap: (text) => [{ ...usageEvent(), id: text }] },
      { kind: 'key', wrap: (text) => [{ ...usageEvent(), key_id: text }] },
      { kind: 'user', wrap: (text) => [{ ...usageEvent(), user_id: text }] },
    ];
  }
  if (typeof meaning !== 'string') return [{ kind: meaning[0], wrap: (text) => [text] }];
  return [{ kind: meaning, wrap: (text) => text }];
}

/** Ready to be followed by a parameter. */
export function queryOf(route: Pick<Endpoint, 'method' | 'path'>): string {
  const query = QUERIES[titleOf(route)];
  return query === undefined ? '' : `${query}&`;
}

function bodyOf(route: Endpoint): Json | undefined {
  if (titleOf(route) === 'POST /v1/iam/usage/events') return { events: [usageEvent()] };
  if (titleOf(route) === 'POST /v1/iam/api-keys/import') return { keys: [importedKey()] };
  const body = BODIES[titleOf(route)];
  if (body === undefined && 'required' in route.bodySchema)
    throw new Error(`say in BODIES what ${titleOf(route)} may be sent`);
  return body;
}
