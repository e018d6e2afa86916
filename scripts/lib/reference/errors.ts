/** docs/errors.md: every error code, from the catalogue, with a request that causes it. */

import { ERROR_CODES, ERRORS, type ErrorCode } from '../../../src/domain/errors.ts';
import { ERROR_REQUESTS, type ErrorRequest, WITHOUT_REQUEST } from './error-requests.ts';

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

${ERROR_CODES.map(section).join('\n')}`;
}

function section(code: ErrorCode): string {
  const { status, type, explanation, advice } = ERRORS[code];
  const request = ERROR_REQUESTS[code];
  const cause =
    request === undefined
      ? `**Cause it**: ${withoutRequest(code)}`
      : `\`\`\`sh\n${curlsOf(request).join('\n')}\n\`\`\``;
  return `## ${code}

${status}, \`${type}\`. ${explanation}

**Do**: ${advice}

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
