/**
 * The catalog of errors. The data plane and the management API answer from it, so a code has one meaning everywhere. An
 * error code is one entry here: `npm run docs` and `npm run client:types` write the documentation and the client's
 * types from it.
 */

type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'rate_limit_error'
  | 'insufficient_quota'
  | 'server_error';

/** The types of errors that Anthropic's SDKs know and that this server answers with. */
export type AnthropicErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'not_found_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'overloaded_error';

export interface ErrorDefinition {
  readonly status: number;
  readonly title: string;
  /** The `error.type` that OpenAI-compatible clients read. */
  readonly type: ErrorType;
  /** The cause, in one sentence of Markdown, for the API's description and the documentation. */
  readonly explanation: string;
  /** The next step of the client or its administrator, in Markdown, for the documentation. */
  readonly advice: string;
}

export const ERRORS = {
  malformed_request: {
    status: 400,
    title: 'Malformed request',
    type: 'invalid_request_error',
    explanation: 'The request is not valid HTTP, or its length differs from its `content-length`.',
    advice: 'Use an HTTP client library, and let it set `content-length`.',
  },
  malformed_path: {
    status: 400,
    title: 'Malformed path',
    type: 'invalid_request_error',
    explanation: 'The path is not in normal form.',
    advice:
      'Send the path in its normal form: one slash between segments, no `.` or `..`, each character encoded at most once.',
  },
  malformed_body: {
    status: 400,
    title: 'Malformed body',
    type: 'invalid_request_error',
    explanation: 'The body of a platform request is not what its route requires.',
    advice: 'Send the JSON body that the endpoint of the platform requires; `detail` names the member.',
  },
  invalid_tenant: {
    status: 400,
    title: 'Invalid tenant',
    type: 'invalid_request_error',
    explanation: '`X-Tenant-ID` or `tenant_id` is malformed or repeated, or they name different tenants.',
    advice: 'Name one tenant, in `X-Tenant-ID` or in `tenant_id`.',
  },
  max_tokens_exceeded: {
    status: 400,
    title: 'Token limit exceeded',
    type: 'invalid_request_error',
    explanation: "The request asks for more tokens than the tenant's `max_tokens_per_request`.",
    advice: "Ask for fewer tokens (`max_tokens`, `n`), or raise the tenant's `max_tokens_per_request`.",
  },
  usage_required: {
    status: 400,
    title: 'Usage required',
    type: 'invalid_request_error',
    explanation:
      'The tenant has `require_stream_usage`, and the request asks for a stream of completions without its usage.',
    advice: 'Send `"stream_options": {"include_usage": true}` with `"stream": true`, each member once.',
  },
  invalid_json: {
    status: 400,
    title: 'Invalid JSON',
    type: 'invalid_request_error',
    explanation:
      'The body is missing, is not JSON in UTF-8, repeats a member, or has a member whose name ends with a backslash.',
    advice: 'Send one JSON value in UTF-8, without repeated members.',
  },
  invalid_parameter: {
    status: 400,
    title: 'Invalid parameter',
    type: 'invalid_request_error',
    explanation: 'A query parameter, a cursor, a header or a parameter of a form is unknown or malformed.',
    advice:
      'Correct the parameter that `detail` names. Cursors belong to the list and the filters that they came from.',
  },
  unsupported_grant_type: {
    status: 400,
    title: 'Unsupported grant type',
    type: 'invalid_request_error',
    explanation: 'The token endpoint supports the exchange of tokens only (RFC 8693).',
    advice: 'Send `grant_type=urn:ietf:params:oauth:grant-type:token-exchange`.',
  },
  invalid_subject_token: {
    status: 400,
    title: 'Invalid subject token',
    type: 'invalid_request_error',
    explanation: 'The `subject_token` proves no principal, or it is no token of another issuer.',
    advice:
      'Send a current token of an issuer that the tenant accepts. `POST /v1/iam/issuers/{id}/test` shows which check a token fails.',
  },
  invalid_scope: {
    status: 400,
    title: 'Invalid scope',
    type: 'invalid_request_error',
    explanation: 'A pattern of `scope` is malformed, or the principal has none of its permissions.',
    advice: 'Name permission patterns such as `chat:write`, separated by spaces, or leave `scope` out.',
  },
  invalid_target: {
    status: 400,
    title: 'Invalid target',
    type: 'invalid_request_error',
    explanation: 'The `audience` or `resource` is not this installation.',
    advice: 'Leave `audience` and `resource` out, or send the audience of this installation.',
  },
  missing_credential: {
    status: 401,
    title: 'Missing credential',
    type: 'authentication_error',
    explanation: 'The request carries no credential.',
    advice: 'Send an API key or an access token: `Authorization: Bearer …`, or an API key in `x-api-key`.',
  },
  invalid_credential: {
    status: 401,
    title: 'Invalid credential',
    type: 'authentication_error',
    explanation:
      'The credential proves no principal, or it is the old secret of a rotated key, which only reads during its grace period.',
    advice:
      'Check that the key or token is complete, and neither revoked, expired nor of another installation. Log in again, or create a key.',
  },
  token_expired: {
    status: 401,
    title: 'Token expired',
    type: 'authentication_error',
    explanation: 'The access token has expired.',
    advice: 'Get a new access token with the refresh token (`POST /v1/auth/refresh`).',
  },
  no_route: {
    status: 403,
    title: 'No such route',
    type: 'permission_error',
    explanation: 'The platform has no such route.',
    advice: 'Check method and path. An operator adds routes of the platform with `routes`.',
  },
  tenant_mismatch: {
    status: 403,
    title: 'Tenant mismatch',
    type: 'permission_error',
    explanation: 'The principal may not act in that tenant, or the tenant does not exist.',
    advice: 'Leave out `X-Tenant-ID`, or name the tenant of the credential.',
  },
  tenant_suspended: {
    status: 403,
    title: 'Tenant suspended',
    type: 'permission_error',
    explanation: 'The tenant is suspended.',
    advice: 'Ask a platform administrator to reactivate the tenant.',
  },
  denied_by_policy: {
    status: 403,
    title: 'Denied by policy',
    type: 'permission_error',
    explanation: 'A deny policy matches; `policy` names it.',
    advice: '`policy` names the policy. An administrator sees why with `explain` and the `request_id`.',
  },
  insufficient_permission: {
    status: 403,
    title: 'Insufficient permission',
    type: 'permission_error',
    explanation: 'The principal does not have the permission.',
    advice:
      'Ask an administrator for a role with the permission that `detail` names. A key also needs it in its scopes.',
  },
  resource_not_permitted: {
    status: 403,
    title: 'Resource not permitted',
    type: 'permission_error',
    explanation: 'The principal has the permission, but not for the resources of the request.',
    advice: 'Use a model, collection or agent that the role or the key permits, or ask for a wider constraint.',
  },
  escalation: {
    status: 403,
    title: 'Escalation refused',
    type: 'permission_error',
    explanation:
      'The change would give a permission that the caller does not have, or affect a principal with more permissions.',
    advice: 'Ask an administrator that has the permission itself.',
  },
  builtin_role: {
    status: 403,
    title: 'Built-in role',
    type: 'permission_error',
    explanation: 'Built-in roles cannot be changed or deleted.',
    advice: 'Create a role of your own with the permissions that you need.',
  },
  reauthentication_required: {
    status: 403,
    title: 'Reauthentication required',
    type: 'permission_error',
    explanation:
      'The change needs the current password of the caller, in `current_password`. An API key cannot make it for its owner.',
    advice: 'Send the request with an access token, and your current password in `current_password`.',
  },
  password_expired: {
    status: 403,
    title: 'Password expired',
    type: 'permission_error',
    explanation: 'The password has expired in the directory.',
    advice: 'Change the password in the directory.',
  },
  not_found: {
    status: 404,
    title: 'Not found',
    type: 'invalid_request_error',
    explanation: 'The resource does not exist, or it belongs to another tenant.',
    advice: 'Check the id, and that the resource belongs to the tenant of the request.',
  },
  method_not_allowed: {
    status: 405,
    title: 'Method not allowed',
    type: 'invalid_request_error',
    explanation: 'The path exists, but not with this method; the header `Allow` lists its methods.',
    advice: 'Use a method that the header `Allow` lists.',
  },
  already_exists: {
    status: 409,
    title: 'Already exists',
    type: 'invalid_request_error',
    explanation: 'The name, id or email address is in use.',
    advice: 'Choose another name, or update the existing resource.',
  },
  in_use: {
    status: 409,
    title: 'In use',
    type: 'invalid_request_error',
    explanation: 'Another resource depends on this one.',
    advice: 'Remove what depends on it first; `detail` says what.',
  },
  revoked: {
    status: 409,
    title: 'Revoked',
    type: 'invalid_request_error',
    explanation: 'The key is revoked. A revocation is permanent.',
    advice: 'Create a new key. A revoked key never works again.',
  },
  last_admin: {
    status: 409,
    title: 'Last administrator',
    type: 'invalid_request_error',
    explanation: 'The change would leave no active local platform administrator that can log in.',
    advice: 'Create or activate another local platform administrator first.',
  },
  would_lock_out: {
    status: 409,
    title: 'Would lock out its author',
    type: 'invalid_request_error',
    explanation: 'The change would lock out its author; `force=true` makes it nevertheless.',
    advice: 'Exempt yourself from the policy, or repeat the request with `?force=true`.',
  },
  quota_exceeded: {
    status: 409,
    title: 'Quota exceeded',
    type: 'invalid_request_error',
    explanation: "The quota of the tenant, or of a key's owner, is reached.",
    advice: "Delete what is no longer needed, or ask a platform administrator to raise the tenant's quota.",
  },
  idempotency_in_progress: {
    status: 409,
    title: 'Request in progress',
    type: 'invalid_request_error',
    explanation: 'The first request with this Idempotency-Key is still running.',
    advice: 'Wait for `Retry-After`, then send the same request again.',
  },
  precondition_failed: {
    status: 412,
    title: 'Precondition failed',
    type: 'invalid_request_error',
    explanation: 'The current version of the resource is not one that `If-Match` names.',
    advice: 'Read the resource again, apply the change to it, and send its new ETag.',
  },
  body_too_large: {
    status: 413,
    title: 'Body too large',
    type: 'invalid_request_error',
    explanation: 'The body is larger than its endpoint accepts.',
    advice: 'Send a smaller body. For bodies of the platform, an operator raises `inspect.max-body`.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'Unsupported media type',
    type: 'invalid_request_error',
    explanation:
      'The body is not application/json (for PATCH also application/merge-patch+json) in UTF-8, or is compressed.',
    advice: 'Send `content-type: application/json`, uncompressed.',
  },
  invalid_field: {
    status: 422,
    title: 'Invalid field',
    type: 'invalid_request_error',
    explanation: 'Members of the body are unknown, missing or malformed; `errors` names them.',
    advice: 'Correct the members that `errors` lists.',
  },
  idempotency_mismatch: {
    status: 422,
    title: 'Idempotency key reused',
    type: 'invalid_request_error',
    explanation: 'The `Idempotency-Key` was used with a different request.',
    advice: 'Use a new `Idempotency-Key` for a different request.',
  },
  rate_limit_exceeded: {
    status: 429,
    title: 'Rate limit exceeded',
    type: 'rate_limit_error',
    explanation:
      'Too many requests or tokens within the current minute, too many requests at the same time, more bytes of bodies than the server reads in a second, too many new keys of one owner, or changes that write more than one caller may.',
    advice:
      'Wait for `Retry-After`. `limit` names a limit by model. An administrator raises the limit of the tenant, the user or the key. The number of new keys and the bytes that one caller writes have fixed limits.',
  },
  insufficient_quota: {
    status: 429,
    title: 'Insufficient quota',
    type: 'insufficient_quota',
    explanation:
      'A budget, or the monthly tokens of the tenant, have less left than the request may spend. `budget` names the budget.',
    advice:
      "Wait until `resets_at`, or ask an administrator to raise the budget. A platform administrator raises the tenant's `monthly_tokens`.",
  },
  too_many_attempts: {
    status: 429,
    title: 'Too many attempts',
    type: 'rate_limit_error',
    explanation: 'Too many failed logins for the account, or from the address.',
    advice: 'Wait for `Retry-After`. An administrator unlocks a user with `POST /v1/iam/users/{id}/unlock`.',
  },
  unavailable: {
    status: 503,
    title: 'Unavailable',
    type: 'server_error',
    explanation: 'The server cannot decide or complete the request now.',
    advice: 'Send the request again after `Retry-After`. The log of the server names the cause.',
  },
} as const satisfies Record<string, ErrorDefinition>;

export type ErrorCode = keyof typeof ERRORS;

/** In the order of the catalog. */
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(ERRORS).filter(
  (name): name is ErrorCode => name in ERRORS,
);

/** The codes of the decision itself, in the order of its steps. */
export type DenyCode =
  | 'malformed_path'
  | 'no_route'
  | 'missing_credential'
  | 'invalid_credential'
  | 'token_expired'
  | 'invalid_tenant'
  | 'tenant_mismatch'
  | 'tenant_suspended'
  | 'malformed_body'
  | 'body_too_large'
  | 'denied_by_policy'
  | 'insufficient_permission'
  | 'resource_not_permitted'
  | 'max_tokens_exceeded'
  | 'usage_required'
  | 'rate_limit_exceeded'
  | 'insufficient_quota';

/**
 * "Cannot decide": the store is unreachable, a queue is full, or there is a bug. Never a denial and never an allow; the
 * answer is 503. The message is for logs and contains no secret.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
}

/** Returns the message of anything that was thrown. */
export function reasonOf(error: unknown): string {
  // A host with several addresses fails with one error for each, and without a message.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of an error of the system or a library, such as `ENOENT`; undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

export interface RefusalExtras {
  readonly policy?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
  readonly param?: string;
  /** Seconds, for `Retry-After`. */
  readonly retryAfter?: number;
  /** The missing permission, for RFC 6750's `scope`. */
  readonly scope?: string;
  /**
   * Why the credential proves no principal, for the audit log. No response has it. With `scheme`, the request has no
   * token that could be invalid.
   */
  readonly reason?: string | undefined;
}

/** A rejection by a use case, with a code of the catalog. The detail is public: no secret, no other tenant's data. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: ErrorCode;
  readonly extras: RefusalExtras;
  /** True after a row of the audit log has recorded it. */
  audited = false;

  constructor(code: ErrorCode, detail: string, extras: RefusalExtras = {}) {
    super(detail);
    this.code = code;
    this.extras = extras;
  }

  /** Marks a refusal that a row of the audit log records. */
  asAudited(): this {
    this.audited = true;
    return this;
  }
}
