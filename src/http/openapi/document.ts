/** The description of the HTTP API (OpenAPI 3.1), generated from the endpoints and their schemas. */

import { isObject } from '../../domain/json.ts';
import type { DescribedAnswer } from '../answers.ts';
import { sizeText } from '../body-limits.ts';
import type { Endpoint } from '../endpoint.ts';
import { FORM } from '../form.ts';
import { takesIdempotencyKey } from '../idempotency.ts';
import { MERGE_PATCH } from '../patch.ts';
import { Components } from './components.ts';
import { describeHeaders } from './headers.ts';
import { type Json, plain } from './json.ts';
import { withMemberDescriptions } from './members.ts';
import { describeParameters } from './parameters.ts';
import { codesOf, describeRefusals, showsVersion } from './refusals.ts';

/** The prefixes are those of the tag's paths. The first matching tag applies. */
type Tag = readonly [name: string, description: string, ...prefixes: readonly string[]];

const TAGS: readonly Tag[] = [
  ['Authentication', "Logins, logouts, token refreshes, and the caller's own password and sessions.", '/v1/auth'],
  ['Users', 'People who can log in.', '/v1/iam/users'],
  ['Roles', 'Named sets of permissions that users hold.', '/v1/iam/roles', '/v1/iam/permissions'],
  ['Policies', 'Conditional rules that allow or deny.', '/v1/iam/policies'],
  [
    'Tenants',
    'Units whose users, keys, roles, policies and audit log are isolated from each other.',
    '/v1/iam/tenants',
  ],
  ['API keys', 'Credentials of programs.', '/v1/iam/api-keys'],
  [
    'Usage',
    'Used tokens and requests, their cost, limits, decisions, and the overview of a tenant.',
    '/v1/iam/usage',
    '/v1/iam/prices',
    '/v1/iam/decisions',
    '/v1/iam/overview',
  ],
  ['Budgets', 'Limits of what callers may spend in a period: money, tokens or requests.', '/v1/iam/budgets'],
  ['Audit', 'Records of every change: its actor, time and client address.', '/v1/iam/audit'],
  ['Explain', 'The decision about a request, and the reasons.', '/v1/iam/explain'],
  [
    'Issuers',
    'Authorities whose tokens a tenant accepts: OpenID providers, clusters, trust domains.',
    '/v1/iam/issuers',
  ],
  [
    'Webhooks',
    "Addresses that a tenant's events are sent to, signed as Standard Webhooks 1.0 asks for.",
    '/v1/iam/webhooks',
  ],
  ['Directory', 'Logins with a corporate directory.', '/v1/iam/directory'],
  ['Public keys and description', 'Resources that require no credential.', '/.well-known', '/openapi.json'],
];

function tagOf({ path }: Pick<Endpoint, 'path'>): Tag {
  const tag = TAGS.find(([, , ...prefixes]) => prefixes.some((prefix) => path.startsWith(prefix)));
  if (tag === undefined) throw new Error(`no tag of the API is for ${path}`);
  return tag;
}

const DESCRIPTION = `Manages the identities and the access of an AI platform.

Every error is \`application/problem+json\` with a stable \`code\`, except those of \`/v1/auth/token\`, which have the form of RFC 6749. The server rejects unknown members and parameters. Times are RFC 3339
in UTC. If a path exists but not with the request's method, the server answers 405 \`method_not_allowed\` with \`Allow\`. HEAD works wherever
GET works.`;

/** @throws Error if endpoints contradict each other */
export function describeApi(endpoints: readonly Endpoint[]): Json {
  const components = new Components();
  const paths = Map.groupBy(endpoints, (endpoint) => endpoint.path.replace(/:(\w+)/g, '{$1}'));
  return {
    openapi: '3.1.0',
    info: {
      title: 'Postern',
      version: '1',
      summary: 'Access control for AI platforms.',
      description: DESCRIPTION,
      contact: { name: 'Postern', url: 'https://postern.dev' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: TAGS.filter((tag) => endpoints.some((endpoint) => tagOf(endpoint) === tag)).map(([name, description]) => ({
      name,
      description,
    })),
    paths: Object.fromEntries(
      [...paths].map(([path, group]) => [
        path,
        Object.fromEntries(
          group.map((endpoint) => [endpoint.method.toLowerCase(), describeEndpoint(components, endpoint)]),
        ),
      ]),
    ),
    components: { ...withMemberDescriptions(components.all()), securitySchemes: SECURITY },
  };
}

const SECURITY: Json = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    description:
      'An access token from `/v1/auth/login`, or an API key (`psk_…`). The old secret of a rotated key, in its grace, only reads here.',
  },
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description:
      'An API key without a scheme. `api-key` works in the same way. If a request has several of these headers, they must carry the same key.',
  },
};

function describeEndpoint(components: Components, endpoint: Endpoint): Json {
  const codes = codesOf(endpoint);
  const parameters = describeParameters(components, endpoint);
  return {
    operationId: endpoint.operationId,
    tags: [tagOf(endpoint)[0]],
    summary: endpoint.summary,
    description: accessOf(endpoint),
    security:
      endpoint.access === 'public'
        ? endpoint.takesCredential
          ? [{ bearer: [] }, {}]
          : []
        : [{ bearer: [] }, { apiKey: [] }],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBody(components, endpoint),
    responses: {
      ...Object.fromEntries(
        Object.entries(endpoint.answers).map(([status, answer]) => [
          status,
          describeAnswer(components, endpoint, answer),
        ]),
      ),
      ...(showsVersion(endpoint)
        ? {
            304: {
              description: 'The client already has the current version.',
              headers: describeHeaders(components, ['etag']),
            },
          }
        : {}),
      ...describeRefusals(components, codes, endpoint.oauth),
    },
  };
}

function accessOf({ needs, access }: Endpoint): string {
  if (needs !== undefined) return `Requires ${needs}.`;
  return access === 'public' ? 'Requires no credential.' : 'Requires a credential, and no permission.';
}

/** An endpoint without members of a body takes no body, or an empty object. */
function requestBody(components: Components, endpoint: Endpoint): Json {
  const { properties, required } = plain(endpoint.bodySchema);
  const asksForSome = Array.isArray(required) && required.length > 0;
  if (!isObject(properties) || Object.keys(properties).length === 0) return {};
  return {
    requestBody: {
      description: `At most ${sizeText(endpoint.maxBodyBytes)}.`,
      required: asksForSome,
      content: Object.fromEntries(
        typesOfBody(endpoint).map((type) => [type, { schema: components.input(endpoint.bodySchema) }]),
      ),
    },
  };
}

function typesOfBody({ method, form }: Endpoint): readonly string[] {
  if (form) return [FORM];
  return method === 'PATCH' ? ['application/json', MERGE_PATCH] : ['application/json'];
}

function describeAnswer(components: Components, endpoint: Endpoint, answer: DescribedAnswer): Json {
  const content = Object.entries(answer.content ?? {});
  const replayed = takesIdempotencyKey(endpoint) ? (['idempotency-replayed'] as const) : [];
  const applied = endpoint.method === 'GET' ? [] : (['preference-applied', 'x-postern-pending-replicas'] as const);
  return {
    description: answer.description,
    headers: describeHeaders(components, [...(answer.headers ?? []), ...replayed, ...applied]),
    ...(content.length === 0
      ? {}
      : {
          content: Object.fromEntries(content.map(([type, schema]) => [type, { schema: components.schema(schema) }])),
        }),
  };
}
