/**
 * The application of an EnvoyFilter by Istio and of an EnvoyPatchPolicy by Envoy Gateway, for the patches of the full
 * profile.
 *
 * EnvoyFilter follows `pilot/pkg/networking/core/envoyfilter` of `istio.io/istio` (`listener_patch.go`, `rc_patch.go`),
 * EnvoyPatchPolicy follows `internal/xds/translator/jsonpatch.go` of `github.com/envoyproxy/gateway`.
 */

import { at, isMapping, listAt, type Mapping } from './guides.ts';

const HCM = 'envoy.filters.network.http_connection_manager';

/** A listener with its routes in it, which both meshes send apart. */
type Listener = Mapping;

/**
 * As Protobuf merges: maps merge, lists append, a value that is its type's default changes nothing, the rest is
 * replaced.
 */
export function merge(target: unknown, patch: unknown): unknown {
  if (Array.isArray(target) && Array.isArray(patch)) return [...target, ...patch];
  if (target !== undefined && (patch === false || patch === 0 || patch === '')) return target;
  if (!isMapping(target) || !isMapping(patch)) return patch;
  const merged = Object.entries(patch).map(([name, value]) => [name, merge(target[name], value)] as const);
  return { ...target, ...Object.fromEntries(merged) };
}

/** Returns the value with the part at the place changed. */
function changed(value: unknown, place: readonly (string | number)[], change: (part: unknown) => unknown): unknown {
  const [step, ...rest] = place;
  if (step === undefined) return change(value);
  if (Array.isArray(value)) return value.map((item, i) => (i === step ? changed(item, rest, change) : item));
  const inner = isMapping(value) ? value : {};
  return { ...inner, [step]: changed(inner[step], rest, change) };
}

const MANAGER = ['filter_chains', 0, 'filters', 0] as const;
const FILTERS = [...MANAGER, 'typed_config', 'http_filters'] as const;
const HOSTS = [...MANAGER, 'typed_config', 'route_config', 'virtual_hosts'] as const;

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The position of the filter; throws if the listener has none of the name, in which case a mesh applies nothing. */
function positionOf(listener: Listener, name: string): number {
  const position = listAt(listener, ...FILTERS).findIndex((filter) => at(filter, 'name') === name);
  if (position < 0) throw new Error(`the listener has no filter ${name}`);
  return position;
}

function mapping(value: unknown): Mapping {
  if (!isMapping(value)) throw new Error('no mapping');
  return value;
}

const inserted = (position: number, value: unknown) => (list: unknown) =>
  Array.isArray(list) ? list.toSpliced(position, 0, value) : [value];

export function withEnvoyFilter(listener: Listener, envoyFilter: unknown): Listener {
  return listAt(envoyFilter, 'spec', 'configPatches').reduce<Listener>((current, patch) => {
    if (at(patch, 'match', 'context') !== 'GATEWAY') throw new Error('a patch that is not for gateways');
    const value = at(patch, 'patch', 'value');
    const filter = text(at(patch, 'match', 'listener', 'filterChain', 'filter', 'subFilter', 'name'));
    const merged = (part: unknown): unknown => merge(part, value);
    switch (`${at(patch, 'applyTo')} ${at(patch, 'patch', 'operation')}`) {
      case 'LISTENER MERGE':
        return mapping(merged(current));
      case 'NETWORK_FILTER MERGE':
        return mapping(changed(current, MANAGER, merged));
      case 'HTTP_FILTER MERGE':
        return mapping(changed(current, [...FILTERS, positionOf(current, filter)], merged));
      case 'HTTP_FILTER INSERT_BEFORE':
        return mapping(changed(current, FILTERS, inserted(positionOf(current, filter), value)));
      case 'VIRTUAL_HOST MERGE':
        return mapping(changed(current, HOSTS, (hosts) => (Array.isArray(hosts) ? hosts.map(merged) : hosts)));
      case 'HTTP_ROUTE MERGE':
        return mapping(
          changed(current, [...HOSTS, 0, 'routes'], (routes) => (Array.isArray(routes) ? routes.map(merged) : routes)),
        );
      case 'HTTP_ROUTE INSERT_FIRST':
        return mapping(changed(current, [...HOSTS, 0, 'routes'], inserted(0, value)));
      default:
        throw new Error(`an operation that nothing here knows: ${JSON.stringify(patch)}`);
    }
  }, listener);
}

/** @param name of the listener and its routes, as Envoy Gateway names them */
export function withPatchPolicy(listener: Listener, name: string, policy: unknown): Listener {
  return listAt(policy, 'spec', 'jsonPatches').reduce<Listener>((current, patch) => {
    const kind = text(at(patch, 'type')).split('.').at(-1);
    if (at(patch, 'name') !== name || at(patch, 'operation', 'op') !== 'add')
      throw new Error('a patch of something else');
    const value = at(patch, 'operation', 'value');
    const path = text(at(patch, 'operation', 'path'))
      .split('/')
      .slice(1);
    const jsonPath = text(at(patch, 'operation', 'jsonPath'));
    const [, filter, inConfig] = /^\.\.http_filters\[\?\(@\.name=='([^']+)'\)\](\.typed_config)?$/.exec(jsonPath) ?? [];
    if (filter !== undefined) {
      const position = positionOf(current, filter);
      if (path.length === 0) return mapping(changed(current, FILTERS, inserted(position, value)));
      if (inConfig !== undefined)
        return mapping(changed(current, [...FILTERS, position, 'typed_config', ...path], () => value));
    }
    const within = (...place: readonly (string | number)[]): Listener =>
      mapping(changed(current, [...place, ...path], () => value));
    switch (`${kind} ${jsonPath}`) {
      case 'Listener ':
        return within();
      case `Listener ..filters[?(@.name=='${HCM}')].typed_config`:
        return within(...MANAGER, 'typed_config');
      case 'RouteConfiguration $.virtual_hosts[*]':
        return within(...HOSTS, 0);
      default:
        throw new Error(`a path that nothing here knows: ${jsonPath}`);
    }
  }, listener);
}
