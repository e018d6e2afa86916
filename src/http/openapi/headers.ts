/** The headers of responses. */

import type { AnswerHeader } from '../answers.ts';
import type { Components } from './components.ts';
import type { Json } from './json.ts';

interface DescribedHeader {
  /** The header's name in the description. */
  readonly name: string;
  readonly description: string;
  readonly schema: Json;
  readonly required?: boolean;
}

const text = { type: 'string' };

const HEADERS = {
  'x-request-id': {
    name: 'X-Request-ID',
    description: 'The id of this request. Logs, audit rows and problem documents have the same id.',
    schema: { type: 'string', pattern: '^req_[0-9a-z]{26}$' },
    required: true,
  },
  location: { name: 'Location', description: 'Where the resource is.', schema: text },
  etag: { name: 'ETag', description: 'The version of the resource, for If-Match and If-None-Match.', schema: text },
  'set-cookie': {
    name: 'Set-Cookie',
    description:
      'The refresh token of a browser that asked for a cookie, `__Secure-postern_refresh`: HttpOnly, Secure, SameSite=Strict. For a page without TLS, which only loopback may be, its name is `postern_refresh`.',
    schema: text,
  },
  'cache-control': { name: 'Cache-Control', description: 'How long a cache may use the response.', schema: text },
  'idempotency-replayed': {
    name: 'Idempotency-Replayed',
    description:
      '`true`: the server did nothing again, and this is the response to the first request with the Idempotency-Key.',
    schema: { type: 'string', enum: ['true'] },
  },
  'preference-applied': {
    name: 'Preference-Applied',
    description: 'For `Prefer: wait=applied`: whether every live replica has applied the change.',
    schema: { type: 'string', enum: ['wait=applied', 'wait=partial'] },
  },
  'x-postern-pending-replicas': {
    name: 'X-Postern-Pending-Replicas',
    description: 'For `wait=partial`: the number of replicas that have not applied the change, if it is known.',
    schema: { type: 'integer', minimum: 1 },
  },
  'www-authenticate': {
    name: 'WWW-Authenticate',
    description: 'The challenge of RFC 6750.',
    schema: text,
  },
  'retry-after': {
    name: 'Retry-After',
    description: 'Seconds to wait before the next attempt.',
    schema: { type: 'integer', minimum: 1 },
  },
  'x-should-retry': {
    name: 'X-Should-Retry',
    description: 'Whether the same request can succeed later.',
    schema: { type: 'string', enum: ['true', 'false'] },
  },
} as const satisfies Record<string, DescribedHeader>;

type HeaderName = keyof typeof HEADERS | AnswerHeader;

/** Returns the `headers` of a response: the given ones, and X-Request-ID, which every response has. */
export function describeHeaders(components: Components, names: readonly HeaderName[]): Json {
  return Object.fromEntries(
    [...names, 'x-request-id' as const].map((name) => {
      const { name: shown, ...header }: DescribedHeader = HEADERS[name];
      return [shown, components.keep('headers', shown, header)];
    }),
  );
}
