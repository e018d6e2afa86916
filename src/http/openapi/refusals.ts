/** The error codes of each endpoint, and their responses. */

import { ERROR_CODES, ERRORS, type ErrorCode } from '../../domain/errors.ts';
import { PROBLEM_TYPE_BASE } from '../../domain/problem-details.ts';
import { BUDGET_PERIODS, BUDGET_UNITS } from '../../domain/records.ts';
import type { Endpoint } from '../endpoint.ts';
import { takesIdempotencyKey } from '../idempotency.ts';
import { OAUTH_ERRORS } from '../oauth-errors.ts';
import type { Components } from './components.ts';
import { describeHeaders } from './headers.ts';
import type { Json } from './json.ts';

type Coded = Pick<Endpoint, 'method' | 'path' | 'access' | 'refusals' | 'answers' | 'form'>;

/** A form is rejected with `invalid_parameter` in place of `invalid_json`. */
const OF_FORMS = ['malformed_request', 'body_too_large', 'unsupported_media_type', 'invalid_field'] as const;
const OF_BODIES = [...OF_FORMS, 'invalid_json'] as const;
const OF_CALLERS = [
  'missing_credential',
  'invalid_credential',
  'token_expired',
  'invalid_tenant',
  'tenant_mismatch',
  'tenant_suspended',
] as const;
const OF_PERMISSIONS = ['denied_by_policy', 'insufficient_permission'] as const;
const OF_CHANGES = ['rate_limit_exceeded'] as const;
const OF_KEYS = ['idempotency_in_progress', 'idempotency_mismatch'] as const;

/** Returns every code that an endpoint can answer with, in the order of the catalog. */
export function codesOf(endpoint: Coded): readonly ErrorCode[] {
  const codes = new Set<ErrorCode>([
    'invalid_parameter',
    'unavailable',
    ...(endpoint.method === 'GET' ? [] : endpoint.form ? OF_FORMS : OF_BODIES),
    ...(endpoint.access === 'public' ? [] : OF_CALLERS),
    ...(endpoint.access === 'public' || endpoint.access === 'any' ? [] : OF_PERMISSIONS),
    ...(changes(endpoint) ? OF_CHANGES : []),
    ...(takesIdempotencyKey(endpoint) ? OF_KEYS : []),
    ...(takesConditions(endpoint) ? (['precondition_failed'] as const) : []),
    ...endpoint.refusals,
  ]);
  return ERROR_CODES.filter((code) => codes.has(code));
}

function changes({ method, access, path }: Coded): boolean {
  return method !== 'GET' && access !== 'public' && !path.startsWith('/v1/iam/explain');
}

/** Reports whether the endpoint's resource has an entity tag that a request can have conditions on. */
export function takesConditions(endpoint: Coded): boolean {
  return endpoint.refusals.includes('precondition_failed') || (endpoint.access !== 'public' && showsVersion(endpoint));
}

/** Reports whether the endpoint is a GET that answers 304 if the client has the current version. */
export function showsVersion(endpoint: Pick<Endpoint, 'method' | 'answers'>): boolean {
  return endpoint.method === 'GET' && endpoint.answers[200]?.headers?.includes('etag') === true;
}

/**
 * Returns the error responses by status. Each is a component named for its codes.
 * @param oauth true: they have the form of RFC 6749, section 5.2
 */
export function describeRefusals(components: Components, codes: readonly ErrorCode[], oauth: boolean): Json {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, group]) => [
      String(status),
      components.keep(
        'responses',
        `${oauth ? 'oauth.' : ''}${group.join('.')}`,
        refusal(components, status, group, oauth),
      ),
    ]),
  );
}

function refusal(components: Components, status: number, codes: readonly ErrorCode[], oauth: boolean): Json {
  const problem = oauth
    ? components.keep('schemas', 'OAuthError', OAUTH_ERROR)
    : components.keep('schemas', 'Problem', PROBLEM);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERRORS[code].explanation}`).join(' '),
    headers: describeHeaders(components, headersOf(status, codes)),
    content: {
      [oauth ? 'application/json' : 'application/problem+json']: {
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
const AMOUNT: Json = {
  description: 'A number of tokens or requests, or a decimal text of money.',
  type: ['integer', 'string'],
};

const OAUTH_ERROR: Json = {
  description: 'An error of the token endpoint (RFC 6749, section 5.2).',
  type: 'object',
  required: ['error', 'error_description', 'code', 'status', 'request_id'],
  properties: {
    error: { type: 'string', enum: OAUTH_ERRORS, description: 'The error, in the words of RFC 6749 and RFC 8693.' },
    error_description: { type: 'string', description: 'A message for people. It may change at any time.' },
    code: { type: 'string', enum: ERROR_CODES, description: 'A code for programs. It does not change.' },
    status: { type: 'integer' },
    request_id: text,
  },
};

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
    code: { type: 'string', enum: ERROR_CODES, description: 'A code for programs. It does not change.' },
    request_id: text,
    policy: { type: 'string', description: 'The policy that denies.' },
    resets_at: {
      description: 'The end of the period of the quota. Null: it does not reset by itself.',
      type: ['string', 'null'],
      format: 'date-time',
    },
    budget: {
      type: 'object',
      description: 'The budget without room for the request. Only callers with `usage:read` get its unit and amounts.',
      required: ['id', 'name', 'period', 'resets_at'],
      properties: {
        id: text,
        name: text,
        period: { type: 'string', enum: BUDGET_PERIODS },
        resets_at: { type: ['string', 'null'], format: 'date-time' },
        unit: { type: 'string', enum: BUDGET_UNITS, description: 'The unit of the amounts.' },
        limit: AMOUNT,
        spent: AMOUNT,
        reserved: AMOUNT,
        remaining: AMOUNT,
      },
    },
    limit: {
      type: 'object',
      description: 'The exceeded limit by model. A long list of patterns is cut.',
      required: ['level', 'models', 'dimension'],
      properties: {
        level: { type: 'string', enum: ['tenant', 'user', 'key'], description: 'The owner of the limit.' },
        models: { type: 'array', items: text },
        dimension: {
          type: 'string',
          enum: ['requests_per_minute', 'tokens_per_minute', 'parallel'],
          description: 'The unit of the limit: requests or tokens per minute, or requests at the same time.',
        },
      },
    },
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
