/** `routes:` of the configuration: a list of maps, each one line of the route table. */

import type { Route } from '../decision/model.ts';
import { buildRouteTable, parseRoute, type RouteSpec } from '../decision/routes.ts';
import { type Flaw, flaw, type Parsed, type Parser, parseJson, rawOf, value } from './parsers.ts';

const EXPECTED = 'a list of routes {method, path, permission, model, collection, tokens, upgrade}';

type Member = keyof RouteSpec;

const MEMBERS: Readonly<Record<Member, { readonly expected: string; readonly fits: (value: unknown) => boolean }>> = {
  method: { expected: 'an HTTP method', fits: (member) => typeof member === 'string' },
  path: { expected: 'a path template such as /v1/things/{thing}', fits: (member) => typeof member === 'string' },
  permission: {
    expected: 'a permission <resource>:<action>, or a list of two',
    fits: (member) =>
      typeof member === 'string' || (Array.isArray(member) && member.every((one) => typeof one === 'string')),
  },
  model: { expected: 'path, body or unknown', fits: isSource },
  collection: { expected: 'path, body or unknown', fits: isSource },
  tokens: { expected: 'true or false', fits: (member) => typeof member === 'boolean' },
  upgrade: { expected: 'true or false', fits: (member) => typeof member === 'boolean' },
};
const REQUIRED: readonly Member[] = ['method', 'path', 'permission'];

export const routeLines: Parser<readonly Route[]> = (raw) => {
  const list = raw.kind === 'data' ? raw.value : parseJson(raw.text);
  if (!Array.isArray(list)) {
    return flaw(raw.kind === 'text' ? `${EXPECTED} as JSON` : EXPECTED, raw);
  }
  const lines: Route[] = [];
  const flaws: Flaw[] = [];
  for (const [index, item] of list.entries()) {
    const parsed = parseLine(item);
    if (parsed.kind === 'value') {
      lines.push(parsed.value);
    } else {
      flaws.push(...parsed.flaws.map((inner) => ({ ...inner, at: [index, ...inner.at] })));
    }
  }
  return flaws.length > 0 ? { kind: 'flaws', flaws } : checkTogether(lines);
};

/** Lines that are right one by one may still contradict each other or a built-in one; the first that does is named. */
function checkTogether(lines: readonly Route[]): Parsed<readonly Route[]> {
  if (buildRouteTable(lines).kind === 'table') {
    return value(lines);
  }
  for (const index of lines.keys()) {
    const result = buildRouteTable(lines.slice(0, index + 1));
    if (result.kind === 'error') {
      return { kind: 'flaws', flaws: [{ at: [index], expected: result.message }] };
    }
  }
  return value(lines);
}

function parseLine(item: unknown): Parsed<Route> {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return flaw('a map with method, path and permission', rawOf(item));
  }
  const flaws = flawsOf({ ...item });
  if (flaws.length > 0 || !isSpec(item)) {
    return { kind: 'flaws', flaws };
  }
  const parsed = parseRoute(item);
  return parsed.kind === 'route'
    ? value(parsed.route)
    : { kind: 'flaws', flaws: [{ at: [], expected: parsed.message }] };
}

function flawsOf(item: Readonly<Record<string, unknown>>): readonly Flaw[] {
  const unknown = Object.keys(item)
    .filter((name) => !Object.hasOwn(MEMBERS, name))
    .map((name) => ({ at: [name], expected: 'unknown member of a route' }));
  const missing = REQUIRED.filter((name) => !Object.hasOwn(item, name)).map((name) => ({
    at: [],
    expected: `${name} is missing`,
  }));
  const wrong = Object.entries(MEMBERS).flatMap(([name, { expected, fits }]) =>
    Object.hasOwn(item, name) && !fits(item[name]) ? [{ at: [name], expected: `expected ${expected}` }] : [],
  );
  return [...unknown, ...missing, ...wrong];
}

function isSpec(item: object): item is RouteSpec {
  return flawsOf({ ...item }).length === 0;
}

function isSource(member: unknown): boolean {
  return member === 'path' || member === 'body' || member === 'unknown';
}
