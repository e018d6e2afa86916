/** `routes`: a list of maps, each one route of the route table. */

import type { Route } from '../decision/model.ts';
import { buildRouteTable, parseRoute, type RouteSpec } from '../decision/routes.ts';
import { type Flaw, flaw, list, type ParseResult, type Parser, rawOf, value } from './parsers.ts';

interface Member {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
  /** For the documentation. */
  readonly help: string;
}

const SOURCE = {
  expected: 'path, body or unknown',
  fits: (member: unknown) => member === 'path' || member === 'body' || member === 'unknown',
};
const FLAG = { expected: 'true or false', fits: (member: unknown) => typeof member === 'boolean' };
const isText = (member: unknown): boolean => typeof member === 'string';

export const ROUTE_MEMBERS: Readonly<Record<keyof RouteSpec, Member>> = {
  method: { expected: 'an HTTP method', fits: isText, help: 'An HTTP method.' },
  path: {
    expected: 'a path template such as /v1/things/{thing}',
    fits: isText,
    help: 'A path template, such as `/v1/things/{thing}`.',
  },
  permission: {
    expected: 'a permission <resource>:<action>, or a list of two',
    fits: (member) => isText(member) || (Array.isArray(member) && member.every(isText)),
    help: 'The permission that the route requires, or a list of two of which either suffices.',
  },
  model: {
    ...SOURCE,
    help: 'Where the model of the request is: `body` (its member `model`), `path` (the parameter `{model}`), or `unknown`. Default: the route has no model.',
  },
  collection: {
    ...SOURCE,
    help: 'Where the collection is: `body`, `path` or `unknown`. If the route reads the body (`model: body` or `tokens`), `path` counts the collections of the body as well. Default: the route has no collection.',
  },
  tokens: { ...FLAG, help: 'Whether the request spends tokens. Default: false.' },
  upgrade: { ...FLAG, help: 'Whether the request may upgrade to a WebSocket. Default: false.' },
  upstream_token: {
    ...FLAG,
    help: 'Whether an allow adds the [token for the upstream](upstream-token.md), if `upstream-token.audience` is set. Default: true.',
  },
};
const MEMBER_NAMES = Object.keys(ROUTE_MEMBERS);
const REQUIRED: readonly (keyof RouteSpec)[] = ['method', 'path', 'permission'];

const several = list(
  `a list of routes {${MEMBER_NAMES.join(', ')}}`,
  {
    type: 'array',
    items: {
      type: 'object',
      additionalProperties: false,
      properties: Object.fromEntries(MEMBER_NAMES.map((name) => [name, {}])),
    },
  },
  parseItem,
);

export const routeList: Parser<readonly Route[]> = {
  ...several,
  parse: (raw) => {
    const parsed = several.parse(raw);
    return parsed.kind === 'value' ? checkTogether(parsed.value) : parsed;
  },
};

/** Rejects the first route that contradicts a route before it or a built-in one. */
function checkTogether(routes: readonly Route[]): ParseResult<readonly Route[]> {
  if (buildRouteTable(routes).kind === 'table') {
    return value(routes);
  }
  for (const index of routes.keys()) {
    const result = buildRouteTable(routes.slice(0, index + 1));
    if (result.kind === 'error') {
      return { kind: 'flaws', flaws: [{ at: [index], expected: result.message }] };
    }
  }
  return value(routes);
}

function parseItem(item: unknown): ParseResult<Route> {
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
    .filter((name) => !Object.hasOwn(ROUTE_MEMBERS, name))
    .map((name) => ({ at: [name], expected: 'unknown member of a route' }));
  const missing = REQUIRED.filter((name) => !Object.hasOwn(item, name)).map((name) => ({
    at: [],
    expected: `${name} is missing`,
  }));
  const wrong = Object.entries(ROUTE_MEMBERS).flatMap(([name, { expected, fits }]) =>
    Object.hasOwn(item, name) && !fits(item[name]) ? [{ at: [name], expected: `expected ${expected}` }] : [],
  );
  return [...unknown, ...missing, ...wrong];
}

function isSpec(item: object): item is RouteSpec {
  return flawsOf({ ...item }).length === 0;
}
