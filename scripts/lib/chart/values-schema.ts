/**
 * The JSON Schema of the chart's values. Descriptions come from the comments of values.yaml, so that each is written
 * once.
 */

import type { JsonSchema } from '../../../src/config/parsers.ts';
import { configSchema, object } from './config-schema.ts';
import type { DocumentedValue } from './values-docs.ts';

const TEXT: JsonSchema = { type: 'string' };
const FLAG: JsonSchema = { type: 'boolean' };
const NAME: JsonSchema = { type: 'string', maxLength: 253 };
const ANY_MAP: JsonSchema = { type: 'object' };
const TEXT_MAP: JsonSchema = { type: 'object', additionalProperties: { type: 'string' } };
const MAPS: JsonSchema = { type: 'array', items: ANY_MAP };
const TEXTS: JsonSchema = { type: 'array', items: TEXT };
const RESOURCES: JsonSchema = object({ requests: ANY_MAP, limits: ANY_MAP, claims: MAPS });
const DURATION: JsonSchema = { type: 'string', pattern: '^[0-9]+(ms|s|m|h)$' };
const DIGEST: JsonSchema = { type: 'string', pattern: '^(sha256:[0-9a-f]{64})?$' };
const SERVICE_TYPE: JsonSchema = { enum: ['ClusterIP', 'NodePort', 'LoadBalancer'] };

function words(...list: readonly string[]): JsonSchema {
  return { enum: list };
}

function number(minimum: number, maximum: number): JsonSchema {
  return { type: 'integer', minimum, maximum };
}

/** Nothing, or a text of that length. Not by a pattern: the refusal of a pattern shows the value. */
function secretText(minLength: number, maxLength: number): JsonSchema {
  return { type: 'string', anyOf: [{ maxLength: 0 }, { minLength }], maxLength };
}

const PORT = number(1, 65_535);
const KEY_REF = object({ name: NAME, key: TEXT });
const PROBE = { periodSeconds: number(1, 300), timeoutSeconds: number(1, 60), failureThreshold: number(1, 10_000) };

const VALUES: JsonSchema = object({
  global: ANY_MAP,
  enabled: FLAG,
  nameOverride: NAME,
  fullnameOverride: NAME,
  commonLabels: TEXT_MAP,
  commonAnnotations: TEXT_MAP,
  mode: words('central', 'sidecar'),
  image: object({
    registry: TEXT,
    repository: { type: 'string', minLength: 1 },
    tag: TEXT,
    digest: DIGEST,
    pullPolicy: words('Always', 'IfNotPresent', 'Never'),
    command: { ...TEXTS, minItems: 1 },
  }),
  imagePullSecrets: {
    type: 'array',
    items: {
      anyOf: [
        { type: 'string', minLength: 1 },
        { ...object({ name: NAME }), required: ['name'] },
      ],
    },
  },
  config: configSchema(),
  database: object({ url: TEXT, existingSecret: KEY_REF }),
  secretKey: object({ value: secretText(32, 1024), existingSecret: KEY_REF }),
  bootstrap: object({ password: secretText(15, 256), existingSecret: KEY_REF }),
  secretFiles: {
    type: 'array',
    items: {
      ...object({ env: { type: 'string', pattern: '^POSTERN_[A-Z0-9_]+_FILE$' }, name: NAME, key: TEXT }),
      required: ['env', 'name', 'key'],
    },
  },
  migrations: object({
    mode: words('server', 'job'),
    serverRole: { type: 'string', maxLength: 63 },
    backoffLimit: number(0, 100),
    existingSecret: KEY_REF,
    resources: RESOURCES,
  }),
  replicaCount: number(0, 1000),
  autoscaling: object({
    enabled: FLAG,
    minReplicas: number(1, 1000),
    maxReplicas: number(1, 1000),
    targetCPUUtilizationPercentage: number(0, 1000),
    targetMemoryUtilizationPercentage: number(0, 1000),
    behavior: object({ scaleUp: ANY_MAP, scaleDown: ANY_MAP }),
  }),
  podDisruptionBudget: object({
    enabled: FLAG,
    maxUnavailable: { type: ['integer', 'string'], minimum: 0, pattern: '^[0-9]{1,3}%$' },
    minAvailable: { type: ['integer', 'string'], minimum: 0, pattern: '^([0-9]{1,3}%)?$' },
  }),
  strategy: object({ type: words('RollingUpdate', 'Recreate'), rollingUpdate: { type: ['object', 'null'] } }),
  revisionHistoryLimit: number(0, 100),
  topologySpread: object({
    enabled: FLAG,
    whenUnsatisfiable: words('ScheduleAnyway', 'DoNotSchedule'),
    constraints: MAPS,
  }),
  resources: RESOURCES,
  podSecurityContext: ANY_MAP,
  securityContext: ANY_MAP,
  terminationGracePeriodSeconds: number(1, 3600),
  preStopSeconds: number(0, 600),
  probes: object({
    startup: object({ periodSeconds: PROBE.periodSeconds, failureThreshold: PROBE.failureThreshold }),
    liveness: object(PROBE),
    readiness: object({ type: words('http', 'grpc'), ...PROBE }),
  }),
  serviceAccount: object({ create: FLAG, name: NAME, annotations: TEXT_MAP }),
  listenAddress: words('0.0.0.0', '::'),
  service: object({
    ipFamilyPolicy: words('', 'SingleStack', 'PreferDualStack', 'RequireDualStack'),
    ipFamilies: { type: 'array', items: words('IPv4', 'IPv6'), maxItems: 2, uniqueItems: true },
    grpc: object({
      port: PORT,
      type: SERVICE_TYPE,
      headless: FLAG,
      trafficDistribution: words('', 'PreferSameZone', 'PreferSameNode', 'PreferClose'),
      annotations: TEXT_MAP,
    }),
    http: object({ port: PORT, type: SERVICE_TYPE, annotations: TEXT_MAP }),
    admin: object({ port: PORT, annotations: TEXT_MAP }),
  }),
  tls: object({
    enabled: FLAG,
    clientCertificates: FLAG,
    existingSecret: NAME,
    certManager: object({
      enabled: FLAG,
      issuerRef: object({ name: NAME, kind: TEXT, group: TEXT }),
      dnsNames: TEXTS,
      duration: DURATION,
      renewBefore: DURATION,
      clientCertificate: FLAG,
    }),
  }),
  ingress: object({
    enabled: FLAG,
    className: TEXT,
    annotations: TEXT_MAP,
    hosts: TEXTS,
    tls: { type: 'array', items: object({ hosts: TEXTS, secretName: NAME }) },
  }),
  httpRoute: object({
    enabled: FLAG,
    parentRefs: {
      type: 'array',
      items: {
        ...object({ group: TEXT, kind: TEXT, name: NAME, namespace: NAME, sectionName: TEXT, port: PORT }),
        required: ['name'],
      },
    },
    hostnames: TEXTS,
    annotations: TEXT_MAP,
  }),
  networkPolicy: object({
    enabled: FLAG,
    grpcFrom: MAPS,
    httpFrom: MAPS,
    adminFrom: MAPS,
    egress: object({ enabled: FLAG, rules: MAPS }),
  }),
  metrics: object({
    serviceMonitor: object({
      enabled: FLAG,
      interval: DURATION,
      scrapeTimeout: DURATION,
      labels: TEXT_MAP,
      relabelings: MAPS,
      metricRelabelings: MAPS,
    }),
    prometheusRule: object({
      enabled: FLAG,
      labels: TEXT_MAP,
      runbookBaseUrl: { type: 'string', pattern: '^https?://[^\\s"\']+$' },
    }),
    dashboard: object({ enabled: FLAG, labels: TEXT_MAP, annotations: TEXT_MAP }),
  }),
  envoy: object({
    image: object({ registry: TEXT, repository: { type: 'string', minLength: 1 }, tag: TEXT, digest: DIGEST }),
    replicaCount: number(0, 1000),
    upstream: {
      type: 'string',
      pattern:
        '^([A-Za-z0-9.-]+:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]))?$',
    },
    shadow: FLAG,
    config: TEXT,
    existingConfigMap: NAME,
    port: PORT,
    readyPath: TEXT,
    adminPort: PORT,
    serviceType: SERVICE_TYPE,
    servicePort: PORT,
    serviceAnnotations: TEXT_MAP,
    podAnnotations: TEXT_MAP,
    tls: object({ existingSecret: NAME }),
    probes: object({ startup: ANY_MAP, liveness: ANY_MAP, readiness: ANY_MAP }),
    extraVolumes: MAPS,
    extraVolumeMounts: MAPS,
    resources: RESOURCES,
    drainResources: RESOURCES,
    gateResources: RESOURCES,
  }),
  mesh: object({
    maxRequestBytes: number(1024, 16 * 1024 * 1024),
    // 0 would be no limit.
    timeout: { type: 'string', pattern: '^[1-9][0-9]*(ms|s)$' },
    istio: object({
      profile: words('none', 'plain', 'full'),
      namespace: NAME,
      gateway: NAME,
      provider: { type: 'string', minLength: 1 },
      mutualTls: FLAG,
      usageProvider: TEXT,
    }),
    envoyGateway: object({
      profile: words('none', 'plain', 'full'),
      namespace: NAME,
      gateway: NAME,
      listener: NAME,
      clientSecret: NAME,
      corsOrigins: TEXTS,
      admission: object({
        enabled: FLAG,
        namespaces: { type: 'array', items: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$' } },
        actions: { type: 'array', items: words('Deny', 'Warn', 'Audit'), minItems: 1 },
      }),
    }),
  }),
  tests: object({ enabled: FLAG }),
  annotations: object({ helmHooks: FLAG, argoSyncWaves: FLAG }),
  extraEnv: {
    type: 'array',
    items: { ...object({ name: TEXT, value: TEXT, valueFrom: ANY_MAP }), required: ['name'] },
  },
  extraEnvFrom: MAPS,
  extraVolumes: MAPS,
  extraVolumeMounts: MAPS,
  extraContainers: MAPS,
  initContainers: MAPS,
  podAnnotations: TEXT_MAP,
  podLabels: TEXT_MAP,
  nodeSelector: TEXT_MAP,
  tolerations: MAPS,
  affinity: ANY_MAP,
  priorityClassName: TEXT,
  podSpecExtra: ANY_MAP,
  extraObjects: { type: 'array', items: { type: ['object', 'string'] } },
});

/** @param values the documented values; each description goes to the schema of its path */
export function valuesSchema(values: readonly DocumentedValue[]): JsonSchema {
  const descriptions = new Map(values.map(({ path, description }) => [path.join('.'), description]));
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Values of the chart postern',
    ...described(VALUES, [], descriptions),
  };
}

/** The paths that the schema has a type for, below `config` only as far as values.yaml goes. */
export function schemaHas(path: readonly string[]): boolean {
  let node: unknown = VALUES;
  for (const step of path) {
    const members: unknown = memberOf(node, 'properties');
    node = memberOf(members, step);
    if (node === undefined) return false;
  }
  return true;
}

function memberOf(node: unknown, name: string): unknown {
  return typeof node === 'object' && node !== null
    ? new Map<string, unknown>(Object.entries(node)).get(name)
    : undefined;
}

function described(schema: JsonSchema, path: readonly string[], descriptions: ReadonlyMap<string, string>): JsonSchema {
  const own = descriptions.get(path.join('.'));
  const members = schema['properties'];
  return {
    ...(own === undefined ? {} : { description: own }),
    ...schema,
    ...(typeof members === 'object' && members !== null
      ? {
          properties: Object.fromEntries(
            Object.entries(members).map(([name, member]) => [name, described(member, [...path, name], descriptions)]),
          ),
        }
      : {}),
  };
}
