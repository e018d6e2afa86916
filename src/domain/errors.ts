/**
 * The catalog of everything Postern may answer with. One entry per code: its HTTP status, its title, and the `error.type` that
 * OpenAI-compatible clients read. The data plane and the management API both answer from it, so a code means one thing everywhere.
 */

export type ErrorType =
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

interface CatalogueEntry {
  readonly status: number;
  readonly title: string;
  readonly type: ErrorType;
}

export const ERRORS = {
  malformed_request: { status: 400, title: 'Malformed request', type: 'invalid_request_error' },
  malformed_path: { status: 400, title: 'Malformed path', type: 'invalid_request_error' },
  malformed_body: { status: 400, title: 'Malformed body', type: 'invalid_request_error' },
  invalid_tenant: { status: 400, title: 'Invalid tenant', type: 'invalid_request_error' },
  max_tokens_exceeded: { status: 400, title: 'Token limit exceeded', type: 'invalid_request_error' },
  usage_required: { status: 400, title: 'Usage required', type: 'invalid_request_error' },
  invalid_json: { status: 400, title: 'Invalid JSON', type: 'invalid_request_error' },
  invalid_parameter: { status: 400, title: 'Invalid parameter', type: 'invalid_request_error' },
  missing_credential: { status: 401, title: 'Missing credential', type: 'authentication_error' },
  invalid_credential: { status: 401, title: 'Invalid credential', type: 'authentication_error' },
  token_expired: { status: 401, title: 'Token expired', type: 'authentication_error' },
  no_route: { status: 403, title: 'No such route', type: 'permission_error' },
  tenant_mismatch: { status: 403, title: 'Tenant mismatch', type: 'permission_error' },
  tenant_suspended: { status: 403, title: 'Tenant suspended', type: 'permission_error' },
  denied_by_policy: { status: 403, title: 'Denied by policy', type: 'permission_error' },
  insufficient_permission: { status: 403, title: 'Insufficient permission', type: 'permission_error' },
  resource_not_permitted: { status: 403, title: 'Resource not permitted', type: 'permission_error' },
  escalation: { status: 403, title: 'Escalation refused', type: 'permission_error' },
  builtin_role: { status: 403, title: 'Built-in role', type: 'permission_error' },
  reauthentication_required: { status: 403, title: 'Reauthentication required', type: 'permission_error' },
  password_expired: { status: 403, title: 'Password expired', type: 'permission_error' },
  not_found: { status: 404, title: 'Not found', type: 'invalid_request_error' },
  method_not_allowed: { status: 405, title: 'Method not allowed', type: 'invalid_request_error' },
  already_exists: { status: 409, title: 'Already exists', type: 'invalid_request_error' },
  in_use: { status: 409, title: 'In use', type: 'invalid_request_error' },
  revoked: { status: 409, title: 'Revoked', type: 'invalid_request_error' },
  last_admin: { status: 409, title: 'Last administrator', type: 'invalid_request_error' },
  would_lock_out: { status: 409, title: 'Would lock out its author', type: 'invalid_request_error' },
  quota_exceeded: { status: 409, title: 'Quota exceeded', type: 'invalid_request_error' },
  idempotency_in_progress: { status: 409, title: 'Request in progress', type: 'invalid_request_error' },
  precondition_failed: { status: 412, title: 'Precondition failed', type: 'invalid_request_error' },
  body_too_large: { status: 413, title: 'Body too large', type: 'invalid_request_error' },
  unsupported_media_type: { status: 415, title: 'Unsupported media type', type: 'invalid_request_error' },
  invalid_field: { status: 422, title: 'Invalid field', type: 'invalid_request_error' },
  idempotency_mismatch: { status: 422, title: 'Idempotency key reused', type: 'invalid_request_error' },
  rate_limit_exceeded: { status: 429, title: 'Rate limit exceeded', type: 'rate_limit_error' },
  insufficient_quota: { status: 429, title: 'Insufficient quota', type: 'insufficient_quota' },
  too_many_attempts: { status: 429, title: 'Too many attempts', type: 'rate_limit_error' },
  unavailable: { status: 503, title: 'Unavailable', type: 'server_error' },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof ERRORS;

/** The codes that the decision itself can end in, in the order of its lines. */
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
 * "Cannot decide": the store is unreachable, a queue is full, or there is a bug. Never a denial and never an allow; answered 503.
 * The message is for logs and carries no secret.
 */
export class Fault extends Error {
  override readonly name = 'Fault';
}

export interface RefusalExtras {
  readonly policy?: string;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
  readonly param?: string;
  /** Seconds, for `Retry-After`. */
  readonly retryAfter?: number;
  /** The permission that is missing, for RFC 6750's `scope`. */
  readonly scope?: string;
  /** True: the request used another authentication scheme, so it brought no token that could be invalid. */
  readonly otherScheme?: boolean;
}

/** An answer from the catalogue, on its way out of a use case. The detail is public: plain words, no secret, no other tenant's data. */
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
