/** Puts the real addresses into Envoy's configuration files. They are no templates, so each works without a change. */

import { isIP } from 'node:net';
import { parse } from 'yaml';

/** `host:port`, `[v6]:port` or `unix:/path`. */
export type EnvoyAddress = string;

interface EnvoyAddresses {
  /** Envoy's admin listener. Port 0 = any free port. Default: the address in the file. */
  readonly admin?: EnvoyAddress;
  /** By the name of a listener or cluster in the file. Default of `postern-meter`: the address of `postern-grpc`. */
  readonly places: Readonly<Record<string, EnvoyAddress>>;
}

/** Clusters of the same servers as another cluster, with connections of their own. */
const SAME_SERVERS: ReadonlyMap<string, string> = new Map([['postern-meter', 'postern-grpc']]);

/**
 * @param text a configuration in YAML
 * @throws Error when a named place is not in it, or an address has no form that Envoy takes
 */
export function placeAddresses(text: string, addresses: EnvoyAddresses): Mapping {
  const config = mapping(parse(text, { merge: true }));
  const missing = new Set(Object.keys(addresses.places));
  const resources = mapping(config['static_resources']);
  for (const listener of listAt(resources, 'listeners')) {
    const address = addresses.places[nameOf(listener)];
    if (address === undefined) continue;
    if (isName(address)) throw new Error(`${address} is a name, and Envoy listens on IP addresses only.`);
    listener['address'] = envoyAddress(address);
    missing.delete(nameOf(listener));
  }
  for (const cluster of listAt(resources, 'clusters')) {
    const name = nameOf(cluster);
    const address = addresses.places[name] ?? addresses.places[SAME_SERVERS.get(name) ?? ''];
    if (address === undefined) continue;
    // Envoy does not resolve a literal address.
    cluster['type'] = isName(address) ? 'STRICT_DNS' : 'STATIC';
    for (const locality of listAt(mapping(cluster['load_assignment']), 'endpoints')) {
      for (const host of listAt(locality, 'lb_endpoints')) mapping(host['endpoint'])['address'] = envoyAddress(address);
    }
    missing.delete(name);
  }
  if (missing.size > 0)
    throw new Error(`The Envoy configuration has no listener or cluster named ${[...missing].join(', ')}.`);
  if (addresses.admin !== undefined)
    config['admin'] = { ...mapping(config['admin'] ?? {}), address: envoyAddress(addresses.admin) };
  return config;
}

function isSocketPath(address: EnvoyAddress): boolean {
  return /^unix:\/./.test(address);
}

/** Reports whether Envoy must look the host up. */
function isName(address: EnvoyAddress): boolean {
  return !isSocketPath(address) && isIP(splitAddress(address).host) === 0;
}

function envoyAddress(address: EnvoyAddress): object {
  if (isSocketPath(address)) return { pipe: { path: address.slice('unix:'.length) } };
  const { host, port } = splitAddress(address);
  return { socket_address: { address: host, port_value: port } };
}

/** @throws Error for anything but `host:port` with a port from 0 to 65535 */
export function splitAddress(address: EnvoyAddress): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/\s]+)):(\d{1,5})$/.exec(address);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65_535) throw new Error(`${address} is not an address of the form host:port.`);
  return { host, port };
}

export type Mapping = Record<string, unknown>;

function isMapping(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function nameOf(item: Mapping): string {
  return typeof item['name'] === 'string' ? item['name'] : '';
}

/** @throws Error if a file in envoy/ has no mapping where one belongs */
export function mapping(value: unknown): Mapping {
  if (!isMapping(value)) throw new Error('The Envoy configuration has no mapping where one belongs.');
  return value;
}

export function at(value: unknown, ...steps: readonly (string | number)[]): unknown {
  return steps.reduce<unknown>((inner, step) => {
    if (typeof step === 'number') return Array.isArray(inner) ? inner[step] : undefined;
    return isMapping(inner) ? inner[step] : undefined;
  }, value);
}

export function listAt(value: unknown, ...steps: readonly (string | number)[]): readonly Mapping[] {
  const list = at(value, ...steps);
  return Array.isArray(list) ? list.filter(isMapping) : [];
}

export function itemNamed(value: unknown, name: string, ...steps: readonly (string | number)[]): Mapping {
  return mapping(listAt(value, ...steps).find((item) => item['name'] === name));
}

export const HCM = 'envoy.filters.network.http_connection_manager';
export const EXT_AUTHZ = 'envoy.filters.http.ext_authz';
export const ROUTER = 'envoy.filters.http.router';

/** Returns the listener for clients in the configuration, and the settings of its connection manager. */
export function edgeOf(config: unknown): { readonly listener: Mapping; readonly manager: Mapping } {
  const listener = itemNamed(config, 'edge', 'static_resources', 'listeners');
  return { listener, manager: mapping(itemNamed(listener, HCM, 'filter_chains', 0, 'filters')['typed_config']) };
}

/** Replaces a text of a file in envoy/. @throws Error if the file does not have it */
export function replaced(text: string, before: string, after: string): string {
  if (!text.includes(before)) throw new Error(`The Envoy configuration does not say "${before.trim()}".`);
  return text.replaceAll(before, () => after);
}
