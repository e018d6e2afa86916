/** Lines of the route table, from their short form. */

import type { Permission, ResourceSource, Route } from './model.ts';
import { isPermission, permissionOf } from './permissions.ts';
import { type Part, parseTemplate } from './templates.ts';

/** One line of `routes:` in the configuration. */
export interface RouteSpec {
  readonly method: string;
  readonly path: string;
  /** One, or two of which either suffices. */
  readonly permission: string | readonly string[];
  /** Where the model is named: in `{model}` or `{model+}` of the path, or in the body; `unknown`: where the decision does not look. */
  readonly model?: NamedSource;
  readonly collection?: NamedSource;
  /** Metered by tokens: the body's limits count. */
  readonly tokens?: boolean;
  /** Lets `Upgrade` pass. */
  readonly upgrade?: boolean;
}

export type NamedSource = Exclude<ResourceSource, 'none'>;

export type ParsedRoute =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'error'; readonly message: string };

const METHOD = /^[A-Z][A-Z0-9!#$%&'*+.^_`|~-]*$/;

/** The path of an API for completions, whose body may hold many prompts; not the one for chat completions, whose body is one prompt. */
const COMPLETIONS = /(?<!\/chat)\/completions$/;
/** The path of one response, and of what belongs to it. */
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

/** A line of the configuration neither counts collections nor books without a reservation: only the routes that are known to do so do. */
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
  const route: Route = {
    method: spec.method,
    template: template.text,
    permissions,
    model: spec.model ?? 'none',
    collection: spec.collection ?? 'none',
    agent: hasVariable(template.parts, 'agent') ? 'path' : 'none',
    tokens: spec.tokens ?? false,
    upgrade: spec.upgrade ?? false,
    counts,
    readsBody: spec.model === 'body' || spec.collection === 'body' || spec.tokens === true,
    readsPrompts: spec.tokens === true && COMPLETIONS.test(template.text),
    usageOnRequest: spec.tokens === true && ALL_COMPLETIONS.test(template.text),
    reportsUsage,
    readsResponse: spec.method === 'GET' && RESPONSES.test(template.text),
  };
  return { kind: 'route', route: Object.freeze(route) };
}
