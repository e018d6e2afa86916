/** One request for each error code, for docs/errors.md. A test sends each of them to a real server and Envoy. */

import type { ErrorCode } from '../../../src/domain/errors.ts';

/** Credentials and ids that the page's set-up makes. In a path they stand as `$NAME`. */
export type Name =
  | 'ADMIN'
  | 'ADMIN_ID'
  | 'MANAGER'
  | 'KEY'
  | 'ONCE_KEY'
  | 'SPENT_KEY'
  | 'SUSPENDED_KEY'
  | 'REVOKED_KEY_ID';

export interface ErrorRequest {
  /** `platform`: through Envoy, to the AI platform. `api`: to Postern itself. */
  readonly at: 'platform' | 'api';
  readonly method: string;
  readonly path: string;
  readonly as?: Name | { readonly literal: string };
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON, or a text that is none. */
  readonly body?: string;
  /** Requests to send before this one: the same one so many times, or another one once. */
  readonly before?: number | Omit<ErrorRequest, 'before'>;
}

/** Codes that no single request causes, and why. */
export const WITHOUT_REQUEST: Partial<Readonly<Record<ErrorCode, string>>> = {
  malformed_request: 'A client that sends valid HTTP does not get it.',
  token_expired: 'Send an access token an hour after its login (`token.access-ttl`).',
  password_expired: 'Log in as a user of a directory whose password has expired there.',
  idempotency_in_progress: 'Send a request with an `Idempotency-Key` again while the first one runs.',
  unavailable: 'Send a request that needs the database while it is stopped.',
};

const CHAT = '/v1/chat/completions';
const IAM = '/v1/iam';

function chat(as: Name, model: string, more: object = {}): ErrorRequest {
  return {
    at: 'platform',
    method: 'POST',
    path: CHAT,
    as,
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], ...more }),
  };
}

/** A token exchange with these parameters in place of those of a well-formed one. */
function exchange(parameters: Readonly<Record<string, string>>): ErrorRequest {
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token_type: 'urn:ietf:params:oauth:token-type:jwt',
    subject_token: 'eyJhbGciOiJFUzI1NiJ9.e30.AA',
    ...parameters,
  };
  return {
    at: 'api',
    method: 'POST',
    path: '/v1/auth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams(form).toString(),
  };
}

/** @param tenant the tenant of the change; default: that of the caller */
function change(
  method: string,
  path: string,
  body: object | undefined,
  tenant: string,
  more: Partial<ErrorRequest> = {},
): ErrorRequest {
  return iam(method, path, body, { ...more, headers: { 'x-tenant-id': tenant, ...more.headers } });
}

function iam(method: string, path: string, body?: object, more: Partial<ErrorRequest> = {}): ErrorRequest {
  return {
    at: 'api',
    method,
    path: `${IAM}${path}`,
    as: 'ADMIN',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    ...more,
  };
}

const OFFERED_ROLE = { name: 'summarizer', permissions: ['chat:write'] };

export const ERROR_REQUESTS: Partial<Readonly<Record<ErrorCode, ErrorRequest>>> = {
  malformed_path: { at: 'platform', method: 'GET', path: '/v1/models/%252e%252e/x', as: 'KEY' },
  malformed_body: { at: 'platform', method: 'POST', path: CHAT, as: 'KEY', body: '{"model":' },
  invalid_tenant: iam('GET', '/users?tenant_id=acme', undefined, { headers: { 'x-tenant-id': 'globex' } }),
  max_tokens_exceeded: chat('KEY', 'llama-3-8b', { max_tokens: 100_000 }),
  usage_required: chat('SPENT_KEY', 'llama-3-8b', { stream: true }),
  invalid_json: change('POST', '/roles', undefined, 'acme', { body: '{"name":' }),
  invalid_parameter: iam('GET', '/users?tenant_id=acme&limit=500'),
  unsupported_grant_type: exchange({ grant_type: 'client_credentials' }),
  invalid_subject_token: exchange({}),
  invalid_scope: exchange({ scope: 'chat' }),
  invalid_target: exchange({ audience: 'elsewhere' }),
  missing_credential: { at: 'api', method: 'GET', path: `${IAM}/users` },
  invalid_credential: { at: 'api', method: 'GET', path: `${IAM}/users`, as: { literal: 'nonsense' } },
  no_route: { at: 'platform', method: 'GET', path: '/v1/nothing', as: 'KEY' },
  tenant_mismatch: {
    at: 'platform',
    method: 'GET',
    path: '/v1/models',
    as: 'KEY',
    headers: { 'x-tenant-id': 'globex' },
  },
  tenant_suspended: { at: 'platform', method: 'GET', path: '/v1/models', as: 'SUSPENDED_KEY' },
  denied_by_policy: {
    at: 'platform',
    method: 'POST',
    path: '/v1/images/generations',
    as: 'KEY',
    body: '{"model":"llama-3-8b","prompt":"a gate"}',
  },
  insufficient_permission: {
    at: 'platform',
    method: 'POST',
    path: '/v1/rag/query',
    as: 'KEY',
    body: '{"collection":"handbook","query":"gates"}',
  },
  resource_not_permitted: chat('KEY', 'gpt-4'),
  reauthentication_required: iam('POST', '/users/$ADMIN_ID/password-reset'),
  escalation: { ...iam('POST', '/roles', { name: 'everything', permissions: ['*:*'] }), as: 'MANAGER' },
  builtin_role: change('DELETE', '/roles/developer', undefined, 'acme'),
  not_found: iam('GET', '/users/usr_00000000000000000000000000'),
  method_not_allowed: iam('DELETE', '/users'),
  already_exists: iam('POST', '/tenants', { id: 'acme', name: 'Acme' }),
  in_use: change('DELETE', '/roles/writer', undefined, 'acme'),
  revoked: iam('POST', '/api-keys/$REVOKED_KEY_ID/rotate', {}),
  last_admin: iam('POST', '/users/$ADMIN_ID/deactivate'),
  would_lock_out: {
    ...iam('POST', '/policies', { name: 'closed', effect: 'deny', actions: ['admin:*'], resources: ['*'] }),
    as: 'MANAGER',
  },
  quota_exceeded: change('POST', '/users', { email: 'bob@example.com', name: 'Bob' }, 'spent'),
  precondition_failed: iam(
    'PUT',
    '/tenants/acme',
    { name: 'Acme Ltd' },
    { headers: { 'if-match': '"an-older-version"' } },
  ),
  body_too_large: { at: 'api', method: 'POST', path: '/v1/auth/login', body: `{"email":"${'x'.repeat(20_000)}"}` },
  unsupported_media_type: change('POST', '/roles', OFFERED_ROLE, 'acme', { headers: { 'content-type': 'text/plain' } }),
  invalid_field: change('POST', '/roles', { name: 5 }, 'acme'),
  idempotency_mismatch: change('POST', '/roles', { ...OFFERED_ROLE, name: 'translator' }, 'acme', {
    headers: { 'idempotency-key': 'one-key' },
    before: change('POST', '/roles', OFFERED_ROLE, 'acme', { headers: { 'idempotency-key': 'one-key' } }),
  }),
  rate_limit_exceeded: { at: 'platform', method: 'GET', path: '/v1/models', as: 'ONCE_KEY', before: 1 },
  insufficient_quota: chat('SPENT_KEY', 'llama-3-8b'),
  too_many_attempts: {
    at: 'api',
    method: 'POST',
    path: '/v1/auth/login',
    body: '{"email":"nobody@example.com","password":"a wrong guess"}',
    before: 10,
  },
};
