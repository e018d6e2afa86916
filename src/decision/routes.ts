/**
 * The route table: method and path -> the required permission and the named resources. A request that matches no route
 * is denied.
 */

import { BuiltinRoles } from './builtin-roles.ts';
import { BUILTIN_ROUTES } from './builtin-routes.ts';
import { MAX_RESOURCE_NAME } from './limits.ts';
import type { CheckInput, Resource, Route } from './model.ts';
import { parsePath, withoutQuery } from './paths.ts';
import { captured, type Part, parseTemplate } from './templates.ts';

export { BUILTIN_ROUTES } from './builtin-routes.ts';
export { parseRoute, type RouteSpec } from './route-spec.ts';

interface Leaf {
  readonly route: Route;
  readonly parts: readonly Part[];
}

/** The possible continuations of a beginning of a path, by specificity. */
interface Node {
  readonly literals: Map<string, Node>;
  one: Node | undefined;
  more: Node | undefined;
  rest: Leaf | undefined;
  end: Leaf | undefined;
}

/** Opaque: made by `buildRouteTable`, read by `matchRoute`. */
export interface RouteTable {
  readonly routes: readonly Route[];
  readonly builtinRoles: BuiltinRoles;
  /** Templates of literals only, by method and path. No more specific route can exist, so a hit is final. */
  readonly exact: ReadonlyMap<string, ReadonlyMap<string, Matched>>;
  readonly trees: ReadonlyMap<string, Node>;
}

type RouteTableResult =
  | { readonly kind: 'table'; readonly table: RouteTable }
  | { readonly kind: 'error'; readonly message: string };

interface Matched {
  readonly kind: 'matched';
  readonly route: Route;
  /** The resources that the path names. */
  readonly resources: readonly Resource[];
}

export type RouteMatch =
  | { readonly kind: 'denied'; readonly code: 'malformed_path' | 'no_route'; readonly detail: string }
  | { readonly kind: 'public' }
  | Matched;

function newNode(): Node {
  return { literals: new Map(), one: undefined, more: undefined, rest: undefined, end: undefined };
}

function follow(node: Node, part: Exclude<Part, { kind: 'rest' }>): Node {
  switch (part.kind) {
    case 'literal':
      return node.literals.getOrInsertComputed(part.text, newNode);
    case 'one':
      node.one ??= newNode();
      return node.one;
    case 'more':
      node.more ??= newNode();
      return node.more;
    default:
      return part satisfies never;
  }
}

/** Inserts a leaf. Returns the leaf that is already at its place, which is then equally specific. */
function insert(root: Node, leaf: Leaf): Leaf | undefined {
  let node = root;
  for (const part of leaf.parts) {
    if (part.kind === 'rest') {
      const there = node.rest;
      node.rest ??= leaf;
      return there;
    }
    node = follow(node, part);
  }
  const there = node.end;
  node.end ??= leaf;
  return there;
}

/**
 * Compiles the built-in routes and further ones. A further route replaces the built-in route of the same method and
 * path.
 */
export function buildRouteTable(extra: readonly Route[]): RouteTableResult {
  const replaced = new Set(extra.map((route) => `${route.method} ${route.template}`));
  const routes = [...BUILTIN_ROUTES.filter((route) => !replaced.has(`${route.method} ${route.template}`)), ...extra];
  const trees = new Map<string, Node>();
  const exact = new Map<string, Map<string, Matched>>();
  for (const route of routes) {
    const template = parseTemplate(route.template);
    if (template.kind === 'error') return template;
    const { parts } = template;
    const there = insert(trees.getOrInsertComputed(route.method, newNode), { route, parts });
    if (there !== undefined) {
      const [first, second] = [there.route, route].map((one) => `${one.method} ${one.template}`);
      return {
        kind: 'error',
        message: `${first} and ${second} are equally specific, so one path could match both. Change one of them`,
      };
    }
    if (parts.every((part) => part.kind === 'literal') && !isPublic(parts.map((part) => part.text))) {
      const ofMethod = exact.getOrInsertComputed(route.method, () => new Map());
      ofMethod.set(template.text, Object.freeze({ kind: 'matched', route, resources: [] }));
    }
  }
  return { kind: 'table', table: { routes, builtinRoles: new BuiltinRoles(routes), exact, trees } };
}

/**
 * From left to right, a literal is preferred to `{x}`, that to `{x+}`, that to `**`, and the template's end to `**`.
 * There is only one way to reach a node at one position of the path, so the work is bounded by nodes times segments.
 */
function find(node: Node, segments: readonly string[], at: number): Leaf | undefined {
  const segment = segments[at];
  if (segment === undefined) return node.end ?? node.rest;
  const literal = node.literals.get(segment);
  const found = (literal && find(literal, segments, at + 1)) ?? (node.one && find(node.one, segments, at + 1));
  if (found !== undefined) return found;
  if (node.more !== undefined) {
    for (let next = at + 1; next <= segments.length; next++) {
      const after = find(node.more, segments, next);
      if (after !== undefined) return after;
    }
  }
  return node.rest;
}

/** Paths that Postern serves itself, with its own authentication. */
function isPublic(segments: readonly string[]): boolean {
  const [first, second] = segments;
  switch (first) {
    case 'v1':
      return second === 'auth' || second === 'iam';
    case 'console':
    case 'docs':
      return true;
    case 'openapi.json':
      return segments.length === 1;
    case '.well-known':
      return (second === 'jwks.json' || second === 'openid-configuration') && segments.length === 2;
    default:
      return false;
  }
}

/** A route that reads a resource from the body also has the path's, if its template names one. */
function resourcesOf(leaf: Leaf, segments: readonly string[]): readonly Resource[] {
  const resources: Resource[] = [];
  const { route, parts } = leaf;
  const model = route.model === 'none' ? undefined : captured(parts, 'model', segments);
  const collection = route.collection === 'none' ? undefined : captured(parts, 'collection', segments);
  const agent = route.agent === 'none' ? undefined : captured(parts, 'agent', segments);
  if (model !== undefined) resources.push({ kind: 'models', name: model });
  if (collection !== undefined) resources.push({ kind: 'collections', name: collection });
  if (agent !== undefined) resources.push({ kind: 'agents', name: agent });
  return resources;
}

const PUBLIC: RouteMatch = { kind: 'public' };
const NO_ROUTE: RouteMatch = {
  kind: 'denied',
  code: 'no_route',
  detail:
    'No route has this method and path, and Postern denies every request without a route. Check the method and the path, or ask the operator to add a route.',
};
const NO_PREFLIGHT: RouteMatch = {
  kind: 'denied',
  code: 'no_route',
  detail: 'OPTIONS matches no route. Configure the gateway to answer CORS preflight requests itself.',
};
const NO_UPGRADE: RouteMatch = {
  kind: 'denied',
  code: 'no_route',
  detail: 'This route does not allow an upgraded connection. Send the request without an Upgrade header.',
};

const LONG_NAME: RouteMatch = {
  kind: 'denied',
  code: 'malformed_path',
  detail: `A name in the path has more than ${MAX_RESOURCE_NAME} bytes. Use a shorter name.`,
};

/** The same bound as in a body: no rule can name more, and a longer name would cost more to compare. */
function isLong({ name }: Resource): boolean {
  return name !== undefined && 3 * name.length > MAX_RESOURCE_NAME && Buffer.byteLength(name) > MAX_RESOURCE_NAME;
}

/** Steps 2 to 4: the path's form, public paths, the route table. */
export function matchRoute(table: RouteTable, input: Pick<CheckInput, 'method' | 'path' | 'upgrade'>): RouteMatch {
  const method = input.method === 'HEAD' ? 'GET' : input.method;
  const path = withoutQuery(input.path);
  const upgrades = input.upgrade !== undefined;
  const exact = table.exact.get(method)?.get(path);
  if (exact !== undefined) return upgrades && !exact.route.upgrade ? NO_UPGRADE : exact;
  const parsed = parsePath(path);
  if (parsed.kind === 'malformed') return { kind: 'denied', code: 'malformed_path', detail: parsed.detail };
  const { segments } = parsed;
  if (isPublic(segments)) {
    if (method === 'OPTIONS') return NO_PREFLIGHT;
    return upgrades ? NO_UPGRADE : PUBLIC;
  }
  const tree = table.trees.get(method);
  const leaf = tree && find(tree, segments, 0);
  if (leaf === undefined) return method === 'OPTIONS' ? NO_PREFLIGHT : NO_ROUTE;
  if (upgrades && !leaf.route.upgrade) return NO_UPGRADE;
  const resources = resourcesOf(leaf, segments);
  return resources.some(isLong) ? LONG_NAME : { kind: 'matched', route: leaf.route, resources };
}
