/** Parses entries of the route table. */

import type { Permission, ResourceSource, Route } from './model.ts';
import { isPermission, permissionOf } from './permissions.ts';
import { type Part, parseTemplate } from './templates.ts';

/** One entry of `routes:` in the configuration. */
export interface RouteSpec {
  readonly method: string;
  readonly path: string;
  /** One, or two of which either is enough. */
  readonly permission: string | readonly string[];
  /**
   * Where the model is named: in `{model}` or `{model+}` of the path, or in the body; `unknown`: the decision does not
   * read it.
   */
  readonly model?: NamedSource;
  readonly collection?: NamedSource;
  /** Metered by tokens: the body's limits count. */
  readonly tokens?: boolean;
  readonly upgrade?: boolean;
  /** Default: true. */
  readonly upstream_token?: boolean;
}

type NamedSource = Exclude<ResourceSource, 'none'>;

type ParsedRoute =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'error'; readonly message: string };

const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

/**
 * The path of an API for completions, whose body may have many prompts; not that of chat completions, whose body is one
 * prompt.
 */
const COMPLETIONS = /(?<!\/chat)\/completions$/;
/** The path of one response, and of its sub-resources. */
const RESPONSES = /\/responses\/\{[a-z_]+\}(?:\/\*\*)?$/;
/** The paths of both APIs, whose streams report their usage only on request. */
const ALL_COMPLETIONS = /\/completions$/;

function parsePermissions(value: string | readonly string[]): Route['permissions'] | undefined {
  const texts = typeof value === 'string' ? [value] : value;
  if (texts.length > 2 || !texts.every(isPermission)) return undefined;
  const [first, second]: readonly Permission[] = texts.map(permissionOf);
  if (first === undefined) return undefined;
  return second === undefined ? [first] : [first, second];
}

function hasVariable(parts: readonly Part[], name: string): boolean {
  return parts.some((part) => (part.kind === 'one' || part.kind === 'more') && part.name === name);
}

/** A configured route neither counts collections nor books without a reservation. Only built-in routes do. */
export function parseRoute(spec: RouteSpec, counts: Route['counts'] = 'none', reportsUsage = false): ParsedRoute {
  const template = parseTemplate(spec.path);
  if (template.kind === 'error') return template;
  const error = (message: string): ParsedRoute => ({
    kind: 'error',
    message: `${spec.method} ${spec.path}: ${message}`,
  });
  if (!METHOD.test(spec.method)) return error('method must be an uppercase HTTP method');
  if (spec.method === 'HEAD') return error('HEAD is decided as GET; write the route for GET');
  const permissions = parsePermissions(spec.permission);
  if (permissions === undefined)
    return error('permission must be one or two permissions of the form <resource>:<action>');
  if (spec.model === 'path' && !hasVariable(template.parts, 'model'))
    return error('model: path needs {model} or {model+} in the path');
  if (spec.collection === 'path' && !hasVariable(template.parts, 'collection')) {
    return error('collection: path needs {collection} or {collection+} in the path');
  }
  const readsBody = spec.model === 'body' || spec.collection === 'body' || spec.tokens === true;
  const route: Route = {
    method: spec.method,
    template: template.text,
    permissions,
    model: spec.model ?? 'none',
    // All collections that a body names count, together with the one of the path.
    collection: spec.collection === 'path' && readsBody ? 'body' : (spec.collection ?? 'none'),
    agent: hasVariable(template.parts, 'agent') ? 'path' : 'none',
    tokens: spec.tokens ?? false,
    upgrade: spec.upgrade ?? false,
    counts,
    readsBody,
    readsPrompts: spec.tokens === true && COMPLETIONS.test(template.text),
    usageOnRequest: spec.tokens === true && ALL_COMPLETIONS.test(template.text),
    reportsUsage,
    readsResponse: spec.method === 'GET' && RESPONSES.test(template.text),
    upstreamToken: spec.upstream_token ?? true,
  };
  return { kind: 'route', route: Object.freeze(route) };
}
