/** The profiles that the cases run through: a real Envoy each, with what a mesh makes of its guide. */

import { readFile } from 'node:fs/promises';
import { envoyGatewayPatches, istioPatches } from '../../../src/cli/envoy-mesh.ts';
import { type Edge, PRODUCTION_CONFIG, replacing, startConfig, startEdge } from '../../support/envoy.ts';
import { cluster, type Parts } from './bootstrap.ts';
import { type EnvoyGatewayManifests, envoyGatewayBootstrap, externalAuthBootstrap } from './envoy-gateway.ts';
import { at, documentsOf, isMapping, listAt, type Mapping, manifest } from './guides.ts';
import { type IstioManifests, istioBootstrap } from './istio.ts';
import { type KgatewayManifests, kgatewayBootstrap } from './kgateway.ts';
import { withEnvoyFilter, withPatchPolicy } from './patched.ts';

/** `full` is `envoy/demo.yaml`, for comparison, with the guides' origin of browsers. */
export const PROFILES = ['full', 'Istio', 'Envoy Gateway', 'kgateway', 'ExternalAuth'] as const;
export type Profile = (typeof PROFILES)[number];

/**
 * The full profile in a mesh: the plain one with the patches of `postern envoy config`, without and with `--upstream`.
 */
export const PATCHED = ['Istio, patched', 'Istio, patched with routes', 'Envoy Gateway, patched'] as const;
export type Patched = (typeof PATCHED)[number];

const PLATFORM = 'platform.ai.svc.cluster.local:8081';
const PATCHED_BY_ISTIO = 'outbound|8081||platform.ai.svc.cluster.local';

export function istioManifests(): IstioManifests {
  const values = documentsOf('istio').find((document) => 'meshConfig' in document);
  return {
    meshConfig: at(values, 'meshConfig'),
    policy: manifest('istio', 'AuthorizationPolicy'),
    httpRoute: manifest('istio', 'HTTPRoute'),
  };
}

export function envoyGatewayManifests(): EnvoyGatewayManifests {
  return {
    clientTrafficPolicy: manifest('envoy-gateway', 'ClientTrafficPolicy'),
    securityPolicy: manifest('envoy-gateway', 'SecurityPolicy'),
    envoyProxy: manifest('envoy-gateway', 'EnvoyProxy'),
    httpRoute: manifest('envoy-gateway', 'HTTPRoute', 'ai'),
  };
}

export function kgatewayManifests(): KgatewayManifests {
  return {
    listenerPolicy: manifest('kgateway', 'ListenerPolicy'),
    extension: manifest('kgateway', 'GatewayExtension'),
    trafficPolicy: manifest('kgateway', 'TrafficPolicy'),
    backendConfig: manifest('kgateway', 'BackendConfigPolicy'),
    httpRoute: manifest('kgateway', 'HTTPRoute'),
  };
}

/** Returns the manifests with another value for `member` of the check's provider. */
export function withProvider(manifests: IstioManifests, changes: object): IstioManifests {
  const providers = listAt(manifests.meshConfig, 'extensionProviders').map((provider) => {
    const check = at(provider, 'envoyExtAuthzGrpc');
    return isMapping(check) ? { name: at(provider, 'name'), envoyExtAuthzGrpc: { ...check, ...changes } } : provider;
  });
  const { meshConfig } = manifests;
  return { ...manifests, meshConfig: { ...(isMapping(meshConfig) ? meshConfig : {}), extensionProviders: providers } };
}

/** The bootstrap of the plain profile with its listener changed. */
function patched(plain: object, change: (listener: Mapping) => Mapping, clusters: readonly object[] = []): object {
  const [listener] = listAt(plain, 'static_resources', 'listeners');
  if (!isMapping(listener)) throw new Error('no listener');
  return {
    ...plain,
    static_resources: {
      listeners: [change(listener)],
      clusters: [...listAt(plain, 'static_resources', 'clusters'), ...clusters],
    },
  };
}

export async function startPatched(profile: Patched, parts: Parts): Promise<Edge> {
  const text = await readFile(PRODUCTION_CONFIG, 'utf8');
  switch (profile) {
    case 'Istio, patched':
    case 'Istio, patched with routes': {
      const configPatches = istioPatches(text, profile === 'Istio, patched' ? undefined : PLATFORM);
      const change = (listener: Mapping): Mapping => withEnvoyFilter(listener, { spec: { configPatches } });
      const platform = cluster(PATCHED_BY_ISTIO, parts.upstream);
      return startConfig(patched(istioBootstrap(istioManifests(), parts), change, [platform]));
    }
    case 'Envoy Gateway, patched': {
      const jsonPatches = envoyGatewayPatches(text, {
        namespace: 'ai',
        gateway: 'ai',
        listener: 'http',
        policy: 'postern',
      });
      const change = (listener: Mapping): Mapping => withPatchPolicy(listener, 'ai/ai/http', { spec: { jsonPatches } });
      return startConfig(patched(envoyGatewayBootstrap(envoyGatewayManifests(), parts), change));
    }
    default:
      return profile satisfies never;
  }
}

export function startProfile(profile: Profile, parts: Parts): Promise<Edge> {
  switch (profile) {
    case 'full':
      return startEdge(
        parts,
        replacing({ [String.raw`https?://(localhost|127\\.0\\.0\\.1)(:[0-9]{1,5})?`]: 'https://app[.]example[.]com' }),
      );
    case 'Istio':
      return startConfig(istioBootstrap(istioManifests(), parts));
    case 'Envoy Gateway':
      return startConfig(envoyGatewayBootstrap(envoyGatewayManifests(), parts));
    case 'kgateway':
      return startConfig(kgatewayBootstrap(kgatewayManifests(), parts));
    case 'ExternalAuth': {
      const filtered = manifest('envoy-gateway', 'HTTPRoute', 'ai-external-auth');
      return startConfig(externalAuthBootstrap(manifest('envoy-gateway', 'HTTPRoute', 'ai'), filtered, parts));
    }
    default:
      return profile satisfies never;
  }
}

/**
 * The outcome of one request: the status, and `allow`, the code of Postern's answer, or that the proxy answered by
 * itself.
 */
export function outcomeOf(answer: {
  readonly status: number;
  readonly body: string;
  readonly headers: object;
}): string {
  const said = parsed(answer.body);
  if (said === undefined) return `${answer.status} by the proxy`;
  const server = at(said, 'server');
  if (server === 'upstream') return `${answer.status} allow`;
  return server === 'postern' ? `${answer.status} from the API` : `${answer.status} ${at(said, 'code')}`;
}

function parsed(body: string): unknown {
  try {
    return body === '' ? undefined : JSON.parse(body);
  } catch {
    return undefined;
  }
}
