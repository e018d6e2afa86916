/** `postern envoy config`: prints an Envoy configuration that agrees with Postern's own. */

import { readFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { type Arguments, UsageError } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { agreeing } from './envoy-agreement.ts';
import { placeAddresses } from './envoy-config.ts';
import { envoyGatewayPatches, istioPatches } from './envoy-mesh.ts';
import { countingNatively } from './envoy-native-usage.ts';
import { SHADOW_HEADING, shadowConfig } from './envoy-shadow.ts';

const PROFILES = ['demo', 'production', 'sidecar', 'istio', 'envoy-gateway'] as const;
type Profile = (typeof PROFILES)[number];

/** The other profiles follow from production: a sidecar has no TLS, and a mesh already has some of the settings. */
const FILES = {
  demo: new URL('../../envoy/demo.yaml', import.meta.url),
  production: new URL('../../envoy/production.yaml', import.meta.url),
};

/** The listener or cluster whose address an option sets. */
const PLACES = { listen: 'edge', grpc: 'postern-grpc', http: 'postern-http', upstream: 'upstream' } as const;
const SIDECAR_PLACES = { edge: '0.0.0.0:10000', 'postern-grpc': 'unix:/run/postern/gate.sock' } as const;
const ADMIN = '127.0.0.1:9901';

/** The Gateway of the guides, and its listener. */
const GATEWAY = 'ai/ai/http';
/** The name of the printed object, and of the SecurityPolicy that it changes. */
const NAME = 'postern';

export async function printEnvoyConfig(args: Arguments): Promise<number> {
  const profile = profileOf(args);
  refuseOthers(args, profile);
  const isNative = readsNatively(args);
  const { config } = await loadOrRefuse(args);
  const file = await readFile(FILES[profile === 'demo' ? 'demo' : 'production'], 'utf8');
  const agreed = agreeing(isNative ? countingNatively(file) : file, config);
  if (args.flag('shadow')) {
    const text = yaml(shadowConfig(agreed));
    process.stdout.write(`${SHADOW_HEADING}${printed(text, profile, args)}`);
  } else process.stdout.write(printed(agreed, profile, args));
  return 0;
}

function printed(text: string, profile: Profile, args: Arguments): string {
  switch (profile) {
    case 'istio':
    case 'envoy-gateway':
      return yaml(meshObject(text, profile, args));
    case 'demo':
    case 'production':
    case 'sidecar': {
      const places = placesOf(args, profile);
      return Object.keys(places).length === 0 ? text : placed(text, profile, places);
    }
    default:
      return profile satisfies never;
  }
}

function profileOf(args: Arguments): Profile {
  const given = args.value('profile') ?? 'production';
  const profile = PROFILES.find((one) => one === given);
  if (profile !== undefined) return profile;
  throw new UsageError(`Name a profile with --profile: ${PROFILES.join(', ')}. You named ${given}.`);
}

function readsNatively(args: Arguments): boolean {
  const reader = args.value('usage') ?? 'lua';
  if (reader !== 'lua' && reader !== 'native') throw new UsageError(`--usage is lua or native, not ${reader}.`);
  return reader === 'native';
}

/** Rejects an option that has no effect on the profile. The Envoys of the meshes do not count usage by themselves. */
function refuseOthers(args: Arguments, profile: Profile): void {
  const isMesh = profile === 'istio' || profile === 'envoy-gateway';
  if (args.flag('shadow') && (isMesh || args.value('http') !== undefined || args.value('usage') !== undefined))
    throw new UsageError(`--shadow is for the profiles demo, production and sidecar, without --http and --usage.`);
  const others = {
    istio: ['listen', 'grpc', 'http', 'usage'],
    'envoy-gateway': ['listen', 'grpc', 'http', 'upstream', 'usage'],
  };
  const unused = isMesh ? others[profile] : ['gateway'];
  const given = unused.find((name) => args.value(name) !== undefined);
  if (given !== undefined) throw new UsageError(`The profile ${profile} has no --${given}.`);
}

/** Returns the object that applies the settings of production's configuration to a Gateway of the mesh. */
function meshObject(text: string, profile: 'istio' | 'envoy-gateway', args: Arguments): object {
  const given = args.value('gateway') ?? GATEWAY;
  const [, namespace, gateway, listener = 'http'] =
    /^([a-z0-9-]+)\/([a-z0-9.-]+)(?:\/([a-z0-9.-]+))?$/.exec(given) ?? [];
  if (namespace === undefined || gateway === undefined)
    throw new UsageError(`${given} is no Gateway of the form namespace/name or namespace/name/listener.`);
  const metadata = { name: NAME, namespace };
  const target = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: gateway };
  if (profile === 'envoy-gateway') {
    const jsonPatches = envoyGatewayPatches(text, { namespace, gateway, listener, policy: NAME });
    const spec = { targetRef: target, type: 'JSONPatch', jsonPatches };
    return { apiVersion: 'gateway.envoyproxy.io/v1alpha1', kind: 'EnvoyPatchPolicy', metadata, spec };
  }
  const spec = { targetRefs: [target], configPatches: addressed(() => istioPatches(text, args.value('upstream'))) };
  return { apiVersion: 'networking.istio.io/v1alpha3', kind: 'EnvoyFilter', metadata, spec };
}

function placesOf(args: Arguments, profile: Profile): Readonly<Record<string, string>> {
  if (args.value('http')?.startsWith('unix:') === true)
    throw new UsageError('--http takes host:port, because the API has no Unix socket.');
  const named = Object.entries(PLACES).flatMap(([option, place]) => {
    const address = args.value(option);
    return address === undefined ? [] : [[place, address] as const];
  });
  return { ...(profile === 'sidecar' ? SIDECAR_PLACES : {}), ...Object.fromEntries(named) };
}

/** Drops the comments, because they describe the addresses that it replaces. */
function placed(text: string, profile: Profile, places: Readonly<Record<string, string>>): string {
  const config: unknown = parse(text, { merge: true });
  const plain = profile === 'sidecar' ? stringify(withoutTls(config), { aliasDuplicateObjects: false }) : text;
  const adminOf = profile === 'sidecar' ? { admin: ADMIN } : {};
  return yaml(addressed(() => placeAddresses(plain, { ...adminOf, places })));
}

/** @throws UsageError for an address that is none */
function addressed<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof Error ? new UsageError(error.message) : error;
  }
}

function yaml(value: object): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}

/** The gate is in the same pod, and the mesh or the load balancer terminates TLS. */
function withoutTls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'transport_socket' && name !== 'transport_socket_connect_timeout')
      .map(([name, member]) => [name, withoutTls(member)]),
  );
}
