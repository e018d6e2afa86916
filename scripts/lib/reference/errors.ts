/** docs/errors.md: every error code, from the catalogue, with a request that causes it. */

import { ERRORS, type ErrorCode } from '../../../src/domain/errors.ts';
import { ALL_CODES, EXPLAINED } from '../../../src/http/openapi/refusals.ts';
import { ERROR_REQUESTS, type ErrorRequest, WITHOUT_REQUEST } from './error-requests.ts';

/** What the client, or its administrator, does next. */
const ADVICE: Readonly<Record<ErrorCode, string>> = {
  malformed_request: 'Use an HTTP client library, and let it set `content-length`.',
  malformed_path:
    'Send the path in its normal form: one slash between segments, no `.` or `..`, each character encoded at most once.',
  malformed_body: 'Send the JSON body that the endpoint of the platform requires; `detail` names the member.',
  invalid_tenant: 'Name one tenant, in `X-Tenant-ID` or in `tenant_id`.',
  max_tokens_exceeded: "Ask for fewer tokens (`max_tokens`, `n`), or raise the tenant's `max_tokens_per_request`.",
  usage_required: 'Send `"stream_options": {"include_usage": true}` with `"stream": true`, each member once.',
  invalid_json: 'Send one JSON value in UTF-8, without repeated members.',
  invalid_parameter:
    'Correct the parameter that `detail` names. Cursors belong to the list and the filters that they came from.',
  missing_credential: 'Send an API key or an access token: `Authorization: Bearer …`, or an API key in `x-api-key`.',
  invalid_credential:
    'Check that the key or token is complete, and neither revoked, expired nor of another installation. Log in again, or create a key.',
  token_expired: 'Get a new access token with the refresh token (`POST /v1/auth/refresh`).',
  no_route: 'Check method and path. An operator adds routes of the platform with `routes`.',
  tenant_mismatch: 'Leave out `X-Tenant-ID`, or name the tenant of the credential.',
  tenant_suspended: 'Ask a platform administrator to reactivate the tenant.',
  denied_by_policy: '`policy` names the policy. An administrator sees why with `explain` and the `request_id`.',
  insufficient_permission:
    'Ask an administrator for a role with the permission that `detail` names. A key also needs it in its scopes.',
  resource_not_permitted:
    'Use a model, collection or agent that the role or the key permits, or ask for a wider constraint.',
  escalation: 'Ask an administrator that has the permission itself.',
  builtin_role: 'Create a role of your own with the permissions that you need.',
  reauthentication_required: 'Send the request with an access token, and your current password in `current_password`.',
  password_expired: 'Change the password in the directory.',
  not_found: 'Check the id, and that the resource belongs to the tenant of the request.',
  method_not_allowed: 'Use a method that the header `Allow` lists.',
  already_exists: 'Choose another name, or update the existing resource.',
  in_use: 'Remove what depends on it first; `detail` says what.',
  revoked: 'Create a new key. A revoked key never works again.',
  last_admin: 'Create or activate another local platform administrator first.',
  would_lock_out: 'Exempt yourself from the policy, or repeat the request with `?force=true`.',
  quota_exceeded: "Delete what is no longer needed, or ask a platform administrator to raise the tenant's quota.",
  idempotency_in_progress: 'Wait for `Retry-After`, then send the same request again.',
  precondition_failed: 'Read the resource again, apply the change to it, and send its new ETag.',
  body_too_large: 'Send a smaller body. For bodies of the platform, an operator raises `inspect.max-body`.',
  unsupported_media_type: 'Send `content-type: application/json`, uncompressed.',
  invalid_field: 'Correct the members that `errors` lists.',
  idempotency_mismatch: 'Use a new `Idempotency-Key` for a different request.',
  rate_limit_exceeded:
    'Wait for `Retry-After`. An administrator raises the limit of the tenant or the key. The number of new keys and the bytes that one caller writes have fixed limits.',
  insufficient_quota: "Wait until `resets_at`, or ask a platform administrator to raise the tenant's `monthly_tokens`.",
  too_many_attempts: 'Wait for `Retry-After`. An administrator unlocks a user with `POST /v1/iam/users/{id}/unlock`.',
  unavailable: 'Send the request again after `Retry-After`. The log of the server names the cause.',
};

export function errorsPage(): string {
  return `# Errors

<!-- Written by npm run docs. -->

[The format](api.md#errors) of all errors is the same. \`code\` is for programs and never changes its meaning; \`detail\` is for people. The
requests below use two addresses and these credentials:

| variable | meaning |
|---|---|
| \`$PLATFORM\` | Envoy, in front of the AI platform |
| \`$POSTERN\` | Postern's API |
| \`$ADMIN\`, \`$ADMIN_ID\` | access token and id of the only platform administrator |
| \`$MANAGER\` | access token of a \`tenant-admin\` of the tenant \`acme\` |
| \`$KEY\` | an API key of \`acme\` with the scope \`chat:*\`, for the models \`llama-*\`. \`acme\` has \`max_tokens_per_request\` 1000, a policy that denies \`images:*\`, and a role \`writer\` that a user has |
| \`$ONCE_KEY\` | an API key with \`rate_limit_rpm\` 1 |
| \`$SPENT_KEY\` | an API key of the tenant \`spent\`, with the quotas \`monthly_tokens\` 1 and \`max_users\` 0, and \`require_stream_usage\` |
| \`$SUSPENDED_KEY\` | an API key of a suspended tenant |
| \`$REVOKED_KEY_ID\` | the id of a revoked API key |

${ALL_CODES.map(section).join('\n')}`;
}

function section(code: ErrorCode): string {
  const { status, type } = ERRORS[code];
  const request = ERROR_REQUESTS[code];
  const cause =
    request === undefined
      ? `**Cause it**: ${withoutRequest(code)}`
      : `\`\`\`sh\n${curlsOf(request).join('\n')}\n\`\`\``;
  return `## ${code}

${status}, \`${type}\`. ${EXPLAINED[code]}

**Do**: ${ADVICE[code]}

${cause}
`;
}

function withoutRequest(code: ErrorCode): string {
  const reason = WITHOUT_REQUEST[code];
  if (reason === undefined) throw new Error(`${code} needs a request in scripts/lib/reference/error-requests.ts`);
  return reason;
}

function curlsOf({ before, ...request }: ErrorRequest): readonly string[] {
  const last = curl(request);
  if (before === undefined) return [last];
  return typeof before === 'number' ? [`for i in $(seq ${before + 1}); do ${last}; done`] : [curl(before), last];
}

const LONG = /x{1000,}/;

function curl({ at, method, path, as, headers = {}, body }: Omit<ErrorRequest, 'before'>): string {
  const credential = as === undefined ? undefined : typeof as === 'string' ? `$${as}` : as.literal;
  const sent = {
    ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...headers,
  };
  const words = [
    `curl -s${method === 'GET' ? '' : ` -X ${method}`} "$${at === 'platform' ? 'PLATFORM' : 'POSTERN'}${path}"`,
    ...Object.entries(sent).map(([name, value]) =>
      value.includes('"') ? `-H '${name}: ${value}'` : `-H "${name}: ${value}"`,
    ),
    ...(body === undefined
      ? []
      : [
          LONG.test(body)
            ? `-d "${body.replaceAll('"', '\\"').replace(LONG, '$(printf %020000d 0)')}"`
            : `-d '${body}'`,
        ]),
  ];
  return words.join(' ');
}
