/** `postern envoy config`: prints an Envoy configuration that agrees with Postern's own. */

import { readFile } from 'node:fs/promises';
import { parse, stringify } from 'yaml';
import { type Arguments, UsageError } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { agreeing } from './envoy-agreement.ts';
import { placeAddresses } from './envoy-config.ts';

const PROFILES = ['demo', 'production', 'sidecar'] as const;
type Profile = (typeof PROFILES)[number];

/** The file of a profile. A sidecar is production's, without what a proxy beside the gate does not have. */
const FILES: Readonly<Record<Profile, URL>> = {
  demo: new URL('../../envoy/demo.yaml', import.meta.url),
  production: new URL('../../envoy/production.yaml', import.meta.url),
  sidecar: new URL('../../envoy/production.yaml', import.meta.url),
};

/** What an option places: a listener or a cluster. */
const PLACES = { listen: 'edge', grpc: 'postern-grpc', http: 'postern-http', upstream: 'upstream' } as const;
const SIDECAR_PLACES = { edge: '0.0.0.0:10000', 'postern-grpc': 'unix:/run/postern/gate.sock' } as const;
const ADMIN = '127.0.0.1:9901';

export async function printEnvoyConfig(args: Arguments): Promise<number> {
  const profile = profileOf(args);
  const { config } = loadOrRefuse(args);
  const text = agreeing(await readFile(FILES[profile], 'utf8'), config);
  const places = placesOf(args, profile);
  process.stdout.write(Object.keys(places).length === 0 ? text : placed(text, profile, places));
  return 0;
}

function profileOf(args: Arguments): Profile {
  const given = args.value('profile');
  const profile = PROFILES.find((one) => one === given);
  if (profile !== undefined) return profile;
  throw new UsageError(
    `Name a profile with --profile: ${PROFILES.join(', ')}.${given === undefined ? '' : ` You named ${given}.`}`,
  );
}

function placesOf(args: Arguments, profile: Profile): Readonly<Record<string, string>> {
  const named = Object.entries(PLACES).flatMap(([option, place]) => {
    const address = args.value(option);
    return address === undefined ? [] : [[place, address] as const];
  });
  return { ...(profile === 'sidecar' ? SIDECAR_PLACES : {}), ...Object.fromEntries(named) };
}

/** With addresses put in, the comments go: they stand beside places that are no longer there. */
function placed(text: string, profile: Profile, places: Readonly<Record<string, string>>): string {
  const config: unknown = parse(text, { merge: true });
  const plain = profile === 'sidecar' ? stringify(withoutTls(config), { aliasDuplicateObjects: false }) : text;
  try {
    const adminOf = profile === 'sidecar' ? { admin: ADMIN } : {};
    return stringify(placeAddresses(plain, { ...adminOf, places }), { aliasDuplicateObjects: false, lineWidth: 0 });
  } catch (error) {
    throw error instanceof Error ? new UsageError(error.message) : error;
  }
}

/** The gate is in the same pod, and the mesh or the load balancer in front has the certificates. */
function withoutTls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutTls);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => name !== 'transport_socket' && name !== 'transport_socket_connect_timeout')
      .map(([name, member]) => [name, withoutTls(member)]),
  );
}
