/**
 * The schemas of the resources in the guides for meshes, from the CRDs of their projects. Descriptions are left out,
 * and large parts that no guide has.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** Where each kind's definition is. */
export const SOURCES: readonly {
  readonly module: string;
  readonly folder: string;
  readonly kinds: readonly string[];
}[] = [
  {
    module: 'sigs.k8s.io/gateway-api@v1.7.0',
    folder: 'config/crd/experimental',
    kinds: ['GatewayClass', 'Gateway', 'HTTPRoute', 'ReferenceGrant'],
  },
  {
    module: 'istio.io/api@v1.31.1',
    folder: 'kubernetes',
    kinds: ['AuthorizationPolicy', 'DestinationRule', 'Telemetry', 'EnvoyFilter'],
  },
  {
    module: 'github.com/envoyproxy/gateway@v1.9.1',
    folder: 'charts/gateway-crds-helm/templates/generated',
    kinds: ['SecurityPolicy', 'ClientTrafficPolicy', 'EnvoyProxy', 'EnvoyPatchPolicy', 'Backend'],
  },
  {
    module: 'github.com/envoyproxy/ai-gateway@v1.1.0',
    folder: 'manifests/charts/ai-gateway-crds-helm/templates',
    kinds: ['AIGatewayRoute', 'AIServiceBackend', 'MCPRoute'],
  },
  {
    module: 'github.com/agentgateway/agentgateway@v1.4.1',
    folder: 'controller/install/helm/agentgateway-crds/templates',
    kinds: ['AgentgatewayPolicy'],
  },
];

/** Large parts of a kind's `spec` that no guide has. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  'gateway.envoyproxy.io/v1alpha1 EnvoyProxy': ['provider'],
  'agentgateway.dev/v1alpha1 AgentgatewayPolicy': [
    'frontend',
    'backend.ai',
    'backend.auth',
    'backend.extAuth',
    'backend.mcp',
    'backend.transformation',
    'backend.tunnel',
    'traffic.apiKeyAuthentication',
    'traffic.basicAuthentication',
    'traffic.buffer',
    'traffic.directResponse',
    'traffic.extProc',
    'traffic.rateLimit',
    'traffic.transformation',
  ],
};

type Mapping = Record<string, unknown>;

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns a schema without its prose, which is most of it. */
function lean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(lean);
  if (!isMapping(value)) return value;
  // A property may be called `description` too; that one is a schema.
  const kept = Object.entries(value).filter(([name, content]) => name !== 'description' || typeof content !== 'string');
  return Object.fromEntries(kept.map(([name, content]) => [name, lean(content)]));
}

function definitions(folder: string): Mapping[] {
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.flatMap((file) => {
    // Charts guard their CRDs by lines of templates.
    const text = readFileSync(join(folder, file), 'utf8').replaceAll(/^\{\{.*\}\}$/gm, '');
    return parseAllDocuments(text)
      .map((document): unknown => document.toJS())
      .filter(isMapping);
  });
}

/** Takes a property, named by its path in `spec`, out of a schema. */
function leaveOut(entry: unknown, path: string): void {
  const [last = '', ...outer] = path.split('.').reverse();
  const steps = ['schema', ...['spec', ...outer.reverse()].flatMap((name) => ['properties', name]), 'properties'];
  const properties = steps.reduce<unknown>((inner, step) => (isMapping(inner) ? inner[step] : undefined), entry);
  if (isMapping(properties)) delete properties[last];
}

export interface Definition {
  readonly kind: string;
  readonly spec: Mapping;
  /** As a cluster takes it, with its rules in CEL. */
  readonly whole: Mapping;
}

/**
 * Returns the definitions of one module's kinds.
 * @param cache Go's module cache with the module in it
 */
export function definitionsOf(
  { module, folder, kinds }: (typeof SOURCES)[number],
  cache: string,
): readonly Definition[] {
  return definitions(join(cache, module, folder)).flatMap((whole) => {
    const spec = whole['spec'];
    if (whole['kind'] !== 'CustomResourceDefinition' || !isMapping(spec) || !isMapping(spec['names'])) return [];
    const kind = String(spec['names']['kind']);
    return kinds.includes(kind) ? [{ kind, spec, whole }] : [];
  });
}

/**
 * Returns the schemas of one module's kinds, by API version and kind.
 * @param cache Go's module cache with the module in it
 * @throws Error if a kind has no definition there
 */
export function schemasOf(source: (typeof SOURCES)[number], cache: string): Mapping {
  const { module, kinds } = source;
  const schemas: Mapping = {};
  for (const { kind, spec } of definitionsOf(source, cache)) {
    if (!Array.isArray(spec['versions'])) continue;
    // The one to write: v1 where it exists, else the one that is stored.
    const served = spec['versions'].filter(isMapping).filter((version) => version['served'] === true);
    const version = served.find(({ name }) => name === 'v1') ?? served.find(({ storage }) => storage === true);
    const schema = isMapping(version?.['schema']) ? version['schema']['openAPIV3Schema'] : undefined;
    schemas[`${spec['group']}/${version?.['name']} ${kind}`] = { module, schema: lean(schema) };
  }
  for (const [name, paths] of Object.entries(LEFT_OUT)) for (const path of paths) leaveOut(schemas[name], path);
  const missing = kinds.filter((kind) => !Object.keys(schemas).some((key) => key.endsWith(` ${kind}`)));
  if (missing.length > 0) throw new Error(`${module} has no definition of ${missing.join(', ')}`);
  return schemas;
}
