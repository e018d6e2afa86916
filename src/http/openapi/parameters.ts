/** The parameters of an endpoint: of its path, its query and its headers. */

import { isObject } from '../../domain/json.ts';
import type { Endpoint } from '../endpoint.ts';
import { takesIdempotencyKey } from '../idempotency.ts';
import type { Components } from './components.ts';
import { type Json, plain } from './json.ts';
import { parameterDescription } from './members.ts';
import { showsVersion, takesConditions } from './refusals.ts';

/** RFC 9110, section 8.8.3. */
const TAG = '(W/)?"[!#-~]*"';
const TAGS = `^(\\*|${TAG}([ \\t]*,[ \\t]*${TAG})*)$`;

const HEADER_PARAMETERS = {
  tenant: {
    name: 'X-Tenant-ID',
    description:
      "The tenant to act in. Default: the caller's own. Only platform administrators may name another tenant.",
    schema: { type: 'string', pattern: '^[a-z0-9][a-z0-9-]{0,62}$', examples: ['acme'] },
  },
  ifMatch: {
    name: 'If-Match',
    description:
      'Entity tags of which the resource must have one, or `*`; otherwise 412. Keeps two writers from overwriting each other.',
    schema: { type: 'string', pattern: TAGS, examples: ['*'] },
  },
  ifNoneMatch: {
    name: 'If-None-Match',
    description: 'Entity tags that the client has. The server answers 304 if the resource still has one of them.',
    schema: { type: 'string', pattern: TAGS, examples: ['"x"'] },
  },
  idempotencyKey: {
    name: 'Idempotency-Key',
    description:
      'A text that the client chooses for each operation. If the client repeats the request with it within 24 hours, the server does nothing twice.',
    schema: { type: 'string', pattern: '^[ -~]{1,255}$', examples: ['7a1c2e0e-6d5b-4c7e-9d6e-3f1f5b0a8d11'] },
  },
  prefer: {
    name: 'Prefer',
    description: '`wait=applied`: the server answers after every live replica has applied the change, or after 5 s.',
    schema: { type: 'string', examples: ['wait=applied'] },
  },
} as const;

export function describeParameters(components: Components, endpoint: Endpoint): readonly Json[] {
  return [
    ...pathParameters(components, endpoint),
    ...queryParameters(components, endpoint),
    ...headerParameters(components, endpoint),
  ];
}

function headerParameters(components: Components, endpoint: Endpoint): readonly Json[] {
  const shown = [
    // If the query has `tenant_id`, the header X-Tenant-ID is no parameter: both would have to name the same tenant.
    ...(endpoint.access === 'public' || endpoint.takesTenant ? [] : [HEADER_PARAMETERS.tenant]),
    ...(takesConditions(endpoint) ? [HEADER_PARAMETERS.ifMatch] : []),
    ...(endpoint.access !== 'public' && showsVersion(endpoint) ? [HEADER_PARAMETERS.ifNoneMatch] : []),
    ...(takesIdempotencyKey(endpoint) ? [HEADER_PARAMETERS.idempotencyKey] : []),
    ...(endpoint.method === 'GET' ? [] : [HEADER_PARAMETERS.prefer]),
  ];
  return shown.map((header) => components.keep('parameters', header.name, { ...header, in: 'header' }));
}

function queryParameters(components: Components, endpoint: Endpoint): readonly Json[] {
  const { properties, required } = plain(endpoint.querySchema);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(isObject(properties) ? properties : {}).map(([name, value]) => {
    const { description = parameterDescription(name), ...schema } = isObject(value) ? value : {};
    return {
      name,
      in: 'query',
      required: needed.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: components.input(schema),
    };
  });
}

const NAME = '^[a-z][a-z0-9_-]{0,62}$';

/** The schemas of path parameters, by the preceding segment of the path. */
const NAMED: Readonly<Record<string, Json>> = {
  users: id('usr', 'The id of the user.'),
  'api-keys': id('key', 'The id of the API key.'),
  sessions: id('ses', 'The id of the session.'),
  recent: id('req', 'The id of the request.'),
  issuers: id('iss', 'The id of the issuer.'),
  budgets: id('bud', 'The id of the budget.'),
  webhooks: id('whk', 'The id of the webhook.'),
  deliveries: id('dlv', 'The id of the delivery.'),
  // Any other text leads back to the sign-in page, as an unknown issuer does.
  sso: { description: 'The id of the issuer.', type: 'string', examples: ['iss_01jd5k3v8m2x7q9w4r6t0y1z3b'] },
  tenants: {
    description: 'The id of the tenant.',
    type: 'string',
    pattern: '^[a-z0-9][a-z0-9-]{0,62}$',
    examples: ['acme'],
  },
  roles: { description: 'The name of the role.', type: 'string', pattern: NAME, examples: ['developer'] },
  policies: { description: 'The name of the policy.', type: 'string', pattern: NAME, examples: ['office-hours'] },
};

function id(prefix: string, description: string): Json {
  return {
    description,
    type: 'string',
    pattern: `^${prefix}_[0-9a-hjkmnp-tv-z]{26}$`,
    examples: [`${prefix}_01jd5k3v8m2x7q9w4r6t0y1z3b`],
  };
}

function pathParameters(components: Components, endpoint: Endpoint): readonly Json[] {
  const segments = endpoint.path.split('/');
  return segments.flatMap((segment, i) => {
    if (!segment.startsWith(':')) return [];
    const known = NAMED[segments[i - 1] ?? ''];
    if (known === undefined) throw new Error(`nothing is known about ${segment} of ${endpoint.path}`);
    const { description, ...schema } = known;
    return [{ name: segment.slice(1), in: 'path', required: true, description, schema: components.schema(schema) }];
  });
}
