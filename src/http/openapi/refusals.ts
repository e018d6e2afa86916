/** Which codes an endpoint can answer with, and what those answers look like. */

import { ERRORS, type ErrorCode } from '../../domain/errors.ts';
import { PROBLEM_TYPE_BASE } from '../../domain/problem-details.ts';
import type { Endpoint } from '../endpoint.ts';
import { takesIdempotencyKey } from '../idempotency.ts';
import type { Components } from './components.ts';
import { describeHeaders } from './headers.ts';
import type { Json } from './json.ts';

type Coded = Pick<Endpoint, 'method' | 'path' | 'access' | 'refusals' | 'answers'>;

const OF_BODIES = [
  'malformed_request',
  'invalid_json',
  'body_too_large',
  'unsupported_media_type',
  'invalid_field',
] as const;
const OF_CALLERS = [
  'missing_credential',
  'invalid_credential',
  'token_expired',
  'invalid_tenant',
  'tenant_mismatch',
  'tenant_suspended',
] as const;
const OF_PERMISSIONS = ['denied_by_policy', 'insufficient_permission'] as const;
/** Of changes; the endpoints that change nothing do not have it. */
const OF_CHANGES = ['rate_limit_exceeded'] as const;
const OF_KEYS = ['idempotency_in_progress', 'idempotency_mismatch'] as const;

/** Every code that an endpoint can answer with, in the order of the catalogue. */
export function codesOf(endpoint: Coded): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([
    'invalid_parameter',
    'unavailable',
    ...(endpoint.method === 'GET' ? [] : OF_BODIES),
    ...(endpoint.access === 'public' ? [] : OF_CALLERS),
    ...(endpoint.access === 'public' || endpoint.access === 'any' ? [] : OF_PERMISSIONS),
    ...(changes(endpoint) ? OF_CHANGES : []),
    ...(takesIdempotencyKey(endpoint) ? OF_KEYS : []),
    ...(takesConditions(endpoint) ? (['precondition_failed'] as const) : []),
    ...endpoint.refusals,
  ]);
  return ALL_CODES.filter((code) => codes.has(code));
}

function changes({ method, access, path }: Coded): boolean {
  return method !== 'GET' && access !== 'public' && !path.startsWith('/v1/iam/explain');
}

/** A resource with an ETag that the caller may be wrong about. */
export function takesConditions(endpoint: Coded): boolean {
  return endpoint.refusals.includes('precondition_failed') || (endpoint.access !== 'public' && showsVersion(endpoint));
}

/** A GET that answers 304 to who has its ETag. */
export function showsVersion(endpoint: Pick<Endpoint, 'method' | 'answers'>): boolean {
  return endpoint.method === 'GET' && endpoint.answers[200]?.headers?.includes('etag') === true;
}

export const ALL_CODES: readonly ErrorCode[] = Object.keys(ERRORS).filter((name): name is ErrorCode => name in ERRORS);

/** Problem answers by status, each a component that is named for its codes. */
export function describeRefusals(components: Components, codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      String(status),
      components.keep('responses', group.join('.'), refusal(components, status, group)),
    ]),
  );
}

function refusal(components: Components, status: number, codes: readonly ErrorCode[]): Json {
  const problem = components.keep('schemas', 'Problem', PROBLEM);
  return {
    description: codes.map((code) => `\`${code}\`: ${EXPLAINED[code]}`).join(' '),
    headers: describeHeaders(components, headersOf(status, codes)),
    content: {
      'application/problem+json': {
        schema: { allOf: [problem, { properties: { status: { const: status }, code: { enum: codes } } }] },
      },
    },
  };
}

function headersOf(status: number, codes: readonly ErrorCode[]) {
  if (status === 401 || codes.includes('insufficient_permission')) return ['www-authenticate'] as const;
  if (status === 409) return ['retry-after', 'x-should-retry'] as const;
  return status === 429 || status === 503 ? (['retry-after'] as const) : [];
}

const text = { type: 'string' };

/** RFC 9457, with the `error` member of the OpenAI API. */
const PROBLEM: Json = {
  description: 'Every error: problem details (RFC 9457) that also have the `error` member of the OpenAI API.',
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code', 'request_id', 'error'],
  properties: {
    type: { type: 'string', format: 'uri', examples: [`${PROBLEM_TYPE_BASE}denied_by_policy`] },
    title: text,
    status: { type: 'integer' },
    detail: { type: 'string', description: 'A message for people. It may change at any time.' },
    code: { type: 'string', enum: ALL_CODES, description: 'A code for programs. It does not change.' },
    request_id: text,
    policy: { type: 'string', description: 'The policy that denies.' },
    resets_at: { type: 'string', format: 'date-time' },
    errors: {
      type: 'array',
      description: 'The problems of the body, by member.',
      items: {
        type: 'object',
        required: ['path', 'message'],
        properties: { path: { type: 'string', description: 'A JSON pointer (RFC 6901).' }, message: text },
      },
    },
    error: {
      type: 'object',
      required: ['message', 'type', 'param', 'code'],
      properties: {
        message: text,
        type: { type: 'string', enum: [...new Set(Object.values(ERRORS).map(({ type }) => type))] },
        param: { type: ['string', 'null'] },
        code: text,
      },
    },
  },
};

/** What each code tells a client, in one sentence. */
export const EXPLAINED: Readonly<Record<ErrorCode, string>> = {
  malformed_request: 'The request is not valid HTTP, or its length differs from its `content-length`.',
  malformed_path: 'The path is not in normal form.',
  malformed_body: 'The body of a platform request is not what its route requires.',
  invalid_tenant: '`X-Tenant-ID` or `tenant_id` is malformed or repeated, or they name different tenants.',
  max_tokens_exceeded: "The request asks for more tokens than the tenant's `max_tokens_per_request`.",
  usage_required:
    'The tenant has `require_stream_usage`, and the request asks for a stream of completions without its usage.',
  invalid_json:
    'The body is missing, is not JSON in UTF-8, repeats a member, or has a member whose name ends with a backslash.',
  invalid_parameter: 'A query parameter, a cursor or a header is unknown or malformed.',
  missing_credential: 'The request carries no credential.',
  invalid_credential:
    'The credential proves no principal, or it is the old secret of a rotated key, which only reads during its grace period.',
  token_expired: 'The access token has expired.',
  no_route: 'The platform has no such route.',
  tenant_mismatch: 'The principal may not act in that tenant, or the tenant does not exist.',
  tenant_suspended: 'The tenant is suspended.',
  denied_by_policy: 'A deny policy matches; `policy` names it.',
  insufficient_permission: 'The principal does not have the permission.',
  resource_not_permitted: 'The principal has the permission, but not for the resources of the request.',
  escalation:
    'The change would give a permission that the caller does not have, or affect a principal with more permissions.',
  builtin_role: 'Built-in roles cannot be changed or deleted.',
  reauthentication_required:
    'The change needs the current password of the caller, in `current_password`. An API key cannot make it for its owner.',
  password_expired: 'The password has expired in the directory.',
  not_found: 'The resource does not exist, or it belongs to another tenant.',
  method_not_allowed: 'The path exists, but not with this method; the header `Allow` lists its methods.',
  already_exists: 'The name, id or email address is in use.',
  in_use: 'Another resource depends on this one.',
  revoked: 'The key is revoked. A revocation is permanent.',
  last_admin: 'The change would leave no active local platform administrator that can log in.',
  would_lock_out: 'The change would lock out its author; `force=true` makes it nevertheless.',
  quota_exceeded: "The quota of the tenant, or of a key's owner, is reached.",
  idempotency_in_progress: 'The first request with this Idempotency-Key is still running.',
  precondition_failed: 'The current version of the resource is not one that `If-Match` names.',
  body_too_large: 'The body is larger than its endpoint accepts.',
  unsupported_media_type:
    'The body is not application/json (for PATCH also application/merge-patch+json) in UTF-8, or is compressed.',
  invalid_field: 'Members of the body are unknown, missing or malformed; `errors` names them.',
  idempotency_mismatch: 'The `Idempotency-Key` was used with a different request.',
  rate_limit_exceeded:
    'Too many requests within the current minute, more bytes of bodies than the server reads in a second, too many new keys of one owner, or changes that write more than one caller may.',
  insufficient_quota: 'The tenant has fewer tokens left than the request may spend.',
  too_many_attempts: 'Too many failed logins for the account, or from the address.',
  unavailable: 'The server cannot decide or complete the request now.',
};
