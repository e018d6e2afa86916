/** One request of a region, decided under both versions by the decision itself. */

import { checkInput } from '../check-input.ts';
import { minuteOfWeek } from '../clock.ts';
import { decide } from '../decide.ts';
import { decideManagement } from '../management.ts';
import type { Decision, Principal, Resource, ResourceKind, Route, Snapshot } from '../model.ts';
import type { Trace } from '../permitted.ts';
import { matchRoute, type RouteTable } from '../routes.ts';
import { parseTemplate } from '../templates.ts';
import type { ShapedRegion } from './boxes.ts';
import { minutesUntil } from './lines.ts';
import type { Witness } from './model.ts';
import type { Region, RegionPart } from './regions.ts';
import type { ConditionAxes, KindAxis } from './rules.ts';
import { KIND_SOURCES } from './shapes.ts';

export interface Versions {
  readonly before: Snapshot;
  readonly after: Snapshot;
}

const MINUTE_MS = 60_000;
/** Longest step between two instants that are tried, so that no change of an offset is passed over. */
const MAX_STEP_MINUTES = 15;
/** The hours of several time zones are compared over three years. */
const HORIZON_MS = 3 * 366 * 24 * 60 * MINUTE_MS;

const DAY_MS = 24 * 60 * MINUTE_MS;
/** Days before now at which the search for an instant begins again if the principal expires before the next one. */
const EARLIER_DAYS = [8, 366];

/**
 * Returns the first minute after now at which all clocks are in the region; an earlier one if the principal expires before
 * that minute; undefined if there is none.
 */
function witnessInstant(
  conditions: ConditionAxes,
  parts: readonly RegionPart[],
  { nowMs, expiresMs = Number.POSITIVE_INFINITY }: Pick<WitnessQuery, 'nowMs' | 'expiresMs'>,
): number | undefined {
  const next = instantAfter(conditions, parts, nowMs);
  if (next === undefined || next < expiresMs) return next;
  const earlier = EARLIER_DAYS.map((days) => instantAfter(conditions, parts, nowMs - days * DAY_MS));
  return earlier.find((instant) => instant !== undefined && instant < expiresMs) ?? next;
}

/** Returns the first minute after an instant at which all clocks are in the region; undefined if there is none. */
function instantAfter({ clocks }: ConditionAxes, parts: readonly RegionPart[], nowMs: number): number | undefined {
  const wanted = clocks.flatMap((axis, index) => {
    const mask = parts[index]?.each ?? axis.all;
    return mask === axis.all ? [] : [{ timezone: axis.timezone, runs: axis.runsOf(mask) }];
  });
  const from = (Math.floor(nowMs / MINUTE_MS) + 1) * MINUTE_MS;
  for (let timeMs = from; timeMs < from + HORIZON_MS; ) {
    let wait = 0;
    for (const { timezone, runs } of wanted) {
      const minute = minuteOfWeek(timezone, timeMs);
      if (minute !== undefined) wait = Math.max(wait, minutesUntil(runs, minute));
    }
    if (wait === 0) return timeMs;
    timeMs += Math.min(wait, MAX_STEP_MINUTES) * MINUTE_MS;
  }
  return undefined;
}

/** The largest number of names of one set that are tried. */
const MAX_TRIED = 3;

/** Returns resources of a region, of which routes may accept some more readily than others. */
function* resourcesIn(
  kinds: readonly KindAxis[],
  region: Region,
  pathNames: readonly Resource[],
): Generator<readonly Resource[]> {
  const sets = kinds.flatMap(({ kind, names }, index) => {
    const part = region[index];
    if (part === undefined) return [];
    return (part.some.length === 0 ? [part.each] : part.some).map((mask) => ({ kind, names, mask }));
  });
  for (let turn = 0; turn < MAX_TRIED; turn++) {
    const resources = sets.map(({ kind, names, mask }): Resource => {
      const found = [...names.witnesses(mask)];
      return { kind, name: found[turn % Math.max(1, found.length)] };
    });
    const unnamed = sets.map(({ kind, names, mask }, index): Resource => {
      const isPossible = (mask & names.unnamed) !== 0n;
      return isPossible ? { kind, name: undefined } : (resources[index] ?? { kind, name: undefined });
    });
    yield resources;
    // A path takes the first name of a kind.
    if (pathNames.length > 0) yield [...pathNames, ...resources];
    if (turn === 0) yield unnamed;
  }
}

/**
 * Returns a name for the path of each kind of which every request has one there; undefined if the region has no such name,
 * and therefore no request.
 */
function pathNamesIn(kinds: readonly KindAxis[], region: Region): readonly Resource[] | undefined {
  const found: Resource[] = [];
  for (const [index, { kind, names, inPath }] of kinds.entries()) {
    if (inPath === undefined) continue;
    const name = inPath.find((one) => (names.classOf(one) & (region[index]?.each ?? 0n)) !== 0n);
    if (name === undefined) return undefined;
    found.push({ kind, name });
  }
  return found;
}

/** Returns the path of a request that names resources in it; undefined if the template cannot name them. */
function pathOf(route: Route, named: ReadonlyMap<ResourceKind, string[]>, rest: string): string | undefined {
  const template = parseTemplate(route.template);
  if (template.kind === 'error') return undefined;
  const segments = template.parts.map((part) => {
    if (part.kind === 'literal') return part.text;
    if (part.kind === 'rest') return rest;
    for (const [kind, names] of named) {
      const { variable, sourceOf } = KIND_SOURCES[kind];
      if (variable !== part.name || sourceOf(route) === 'none') continue;
      const name = names.shift();
      return name?.split('/').map(encodeURIComponent).join('/');
    }
    return 'x';
  });
  if (segments.includes(undefined)) return undefined;
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
}

/** Returns a request of a route with exactly these resources; undefined if it cannot have them. */
function requestOf(route: Route, resources: readonly Resource[], rest: string) {
  const named = new Map<ResourceKind, string[]>();
  for (const { kind, name } of resources) {
    if (name !== undefined) named.getOrInsert(kind, []).push(name);
  }
  const path = pathOf(route, named, rest);
  if (path === undefined) return undefined;
  const model = route.model === 'body' ? named.get('models')?.shift() : undefined;
  const collections = route.collection === 'body' ? (named.get('collections')?.splice(0) ?? []) : [];
  if ([...named.values()].some((names) => names.length > 0)) return undefined;
  const body = { ...(model === undefined ? {} : { model }), ...(collections.length === 0 ? {} : { collections }) };
  return { method: route.method, path, body: route.readsBody ? JSON.stringify(body) : undefined };
}

/** Reports whether steps 12 to 14 permit a request, which no step before them may deny. */
function isPermitted(decision: Decision): boolean | undefined {
  if (decision.kind === 'allow') return true;
  if (decision.kind !== 'deny') return undefined;
  switch (decision.code) {
    case 'max_tokens_exceeded':
    case 'usage_required':
      return true;
    case 'denied_by_policy':
    case 'insufficient_permission':
    case 'resource_not_permitted':
      return false;
    default:
      return undefined;
  }
}

function namesOf(resources: readonly Resource[]): string {
  return JSON.stringify(resources.map(({ kind, name }) => [kind, name ?? null]).sort());
}

interface WitnessQuery extends Pick<ShapedRegion, 'shape' | 'kinds' | 'conditions' | 'region'> {
  readonly principal: Principal;
  /** The time at which the principal expires. Undefined: never. */
  readonly expiresMs: number | undefined;
  readonly nowMs: number;
}

/** `none`: no request is in the region. `unknown`: none was found, although there may be some. */
type WitnessResult = Witness | 'none' | 'unknown';

/** Finds a request of a region whose outcome differs between the versions. */
export function findWitness(query: WitnessQuery, versions: Versions, routes: RouteTable): WitnessResult {
  const { shape, kinds, conditions, region, principal } = query;
  const timeMs = witnessInstant(conditions, region.slice(kinds.length + 1), query);
  if (timeMs === undefined) return 'none';
  const clientAddress = conditions.address.witness(region[kinds.length]?.each ?? conditions.address.all);
  const about = { principal, clientAddress, timeMs };
  if (shape.management) {
    const permission = shape.permissions[0]?.text ?? '';
    const [one, other] = [versions.before, versions.after].map(
      (snapshot) =>
        decideManagement({ permission, self: shape.self, principal, snapshot, clientAddress, nowMs: timeMs }).kind,
    );
    return one === other ? 'unknown' : { ...about, method: undefined, path: undefined, body: undefined, resources: [] };
  }
  const pathNames = pathNamesIn(kinds, region);
  if (pathNames === undefined) return 'none';
  for (const resources of resourcesIn(kinds, region, pathNames)) {
    for (const route of shape.routes) {
      for (const rest of ['', 'x']) {
        const request = requestOf(route, resources, rest);
        if (request === undefined) continue;
        const { method, path, body } = request;
        const contentType = body === undefined ? undefined : 'application/json';
        const input = checkInput({ method, path, tenant: undefined, contentType, clientAddress }, body);
        const match = matchRoute(routes, input);
        const [one, other] = [versions.before, versions.after].map((snapshot) =>
          isPermitted(decide(match, input, { kind: 'proved', principal }, snapshot, timeMs)),
        );
        if (one === undefined || other === undefined || one === other) continue;
        const trace: Trace = { grants: [] };
        decide(match, input, { kind: 'proved', principal }, versions.after, timeMs, trace);
        // A path loses a slash at its end, so it may name a resource that is not in the region.
        if (namesOf(trace.query?.resources ?? []) === namesOf(resources)) return { ...about, ...request, resources };
      }
    }
  }
  return 'unknown';
}
