/**
 * The parts of schemas that the guides use and that do not come from a module.
 *
 * kgateway: `gateway_extensions_types.go`, `ext_auth_types.go`, `traffic_policy_types.go` and `listener_policy_types.go` in
 * `api/v1alpha1/kgateway` of kgateway-dev/kgateway at commit 049cb625, `backend_config_policy_types.go` at commit 007f5591. agentgateway's own configuration: `schema/config.json`
 * of agentgateway/agentgateway 1.4.1.
 */

import type { Mapping } from './guides.ts';

const TEXT = { type: 'string', minLength: 1 };
const FLAG = { type: 'boolean' };
const PORT = { type: 'integer', minimum: 1, maximum: 65_535 };
const DURATION = { type: 'string', pattern: '^([0-9]{1,5}(h|m|s|ms)){1,4}$' };
const object = (properties: Mapping, ...required: readonly string[]): Mapping => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
});
const list = (items: Mapping): Mapping => ({ type: 'array', minItems: 1, items });
const textMap = { type: 'object', additionalProperties: { type: 'string' } };

const resource = (spec: Mapping): Mapping => object({ metadata: { type: 'object' }, spec }, 'spec');
const backendRef = object({ group: { type: 'string' }, kind: TEXT, name: TEXT, namespace: TEXT, port: PORT }, 'name');
const targetRefs = list(
  object({ group: { type: 'string' }, kind: TEXT, name: TEXT, sectionName: TEXT }, 'group', 'kind', 'name'),
);
const withRequestBody = object(
  { maxRequestBytes: { type: 'integer', minimum: 1 }, allowPartialMessage: FLAG, packAsBytes: FLAG },
  'maxRequestBytes',
);

const agentgatewayExtAuthz = object(
  {
    host: TEXT,
    protocol: object({ grpc: object({ context: textMap, metadata: textMap }) }),
    policies: object({ http: object({ requestTimeout: DURATION, version: TEXT }) }),
    failureMode: {
      oneOf: [
        { enum: ['allow', 'deny'] },
        object({ denyWithStatus: { type: 'integer', maximum: 65_535 } }, 'denyWithStatus'),
      ],
    },
    includeRequestHeaders: list(TEXT),
    includeRequestBody: object({
      maxRequestBytes: { type: 'integer', minimum: 0 },
      allowPartialMessage: FLAG,
      packAsBytes: FLAG,
    }),
    cache: object({ key: list(TEXT), ttl: TEXT, maxEntries: { type: 'integer' } }, 'key', 'ttl'),
  },
  'host',
);
const pathMatch = { oneOf: ['exact', 'pathPrefix', 'regex'].map((kind) => object({ [kind]: TEXT }, kind)) };

/** By API version and kind. */
export const WRITTEN: Readonly<Record<string, Mapping>> = {
  'gateway.kgateway.dev/v1alpha1 GatewayExtension': resource(
    object(
      {
        extAuth: object(
          {
            grpcService: object(
              {
                backendRef,
                authority: TEXT,
                requestTimeout: DURATION,
                retry: object({ attempts: { type: 'integer', minimum: 0 }, backoff: { type: 'object' } }),
              },
              'backendRef',
            ),
            headersToForward: list(TEXT),
            failOpen: FLAG,
            clearRouteCache: FLAG,
            withRequestBody,
            statusOnError: { type: 'integer', minimum: 100, maximum: 511 },
            statPrefix: TEXT,
            percentageEnabled: { type: 'integer', minimum: 0, maximum: 100 },
          },
          'grpcService',
        ),
      },
      'extAuth',
    ),
  ),
  'gateway.kgateway.dev/v1alpha1 TrafficPolicy': resource(
    object({
      targetRefs,
      extAuth: {
        ...object({
          extensionRef: object({ name: TEXT, namespace: TEXT }, 'name'),
          withRequestBody,
          contextExtensions: textMap,
          disable: object({}),
        }),
        oneOf: [{ required: ['extensionRef'] }, { required: ['disable'] }],
      },
    }),
  ),
  'gateway.kgateway.dev/v1alpha1 BackendConfigPolicy': resource(
    object({
      targetRefs,
      circuitBreakers: object({
        maxConnections: { type: 'integer', minimum: 1 },
        maxPendingRequests: { type: 'integer', minimum: 1 },
        maxRequests: { type: 'integer', minimum: 1 },
      }),
    }),
  ),
  'gateway.kgateway.dev/v1alpha1 ListenerPolicy': resource(
    object({
      targetRefs,
      default: object({
        perConnectionBufferLimitBytes: { type: 'integer', minimum: 0 },
        httpSettings: object({
          accessLog: list(
            object({ grpcService: object({ logName: TEXT, backendRef, authority: TEXT }, 'backendRef', 'logName') }),
          ),
          upgradeConfig: object({ enabledUpgrades: list(TEXT) }),
        }),
      }),
    }),
  ),
  'agentgateway configuration': object(
    {
      binds: list(
        object(
          {
            port: PORT,
            listeners: list(
              object({
                name: TEXT,
                protocol: { enum: ['HTTP', 'HTTPS', 'TLS', 'TCP', 'HBONE'] },
                policies: object({ extAuthz: agentgatewayExtAuthz }),
                routes: list(
                  object({
                    name: TEXT,
                    matches: list(object({ path: pathMatch })),
                    backends: list(object({ host: TEXT }, 'host')),
                  }),
                ),
              }),
            ),
          },
          'listeners',
        ),
      ),
    },
    'binds',
  ),
};
