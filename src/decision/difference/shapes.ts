/** The shapes of requests: the permissions that they need and the kinds of resources that they have. */

import { type Permission, RESOURCE_KINDS, type ResourceKind, type Route, type TenantView } from '../model.ts';
import { permissionOf } from '../permissions.ts';
import { type Part, parseTemplate } from '../templates.ts';
import type { DifferenceInput } from './model.ts';
import type { NameForm } from './names.ts';

/** The resources of one kind in the requests of a shape. */
export interface ShapeKind {
  readonly kind: ResourceKind;
  readonly form: NameForm;
  /** The form of the name that every route has in its path; undefined if a route has none there. */
  readonly inPath: NameForm | undefined;
  /** True if a request may have several. */
  readonly many: boolean;
  readonly named: boolean;
  /** True if a request may leave the resource unnamed. */
  readonly unnamed: boolean;
}

export interface RequestShape {
  readonly permissions: readonly Permission[];
  readonly management: boolean;
  readonly self: boolean;
  /** In the order of `RESOURCE_KINDS`. */
  readonly kinds: readonly ShapeKind[];
  /** Empty for management. */
  readonly routes: readonly Route[];
}

const FORMS: readonly NameForm[] = ['segment', 'segments', 'text'];

function variableOf(parts: readonly Part[], name: string): Part | undefined {
  return parts.find((part) => (part.kind === 'one' || part.kind === 'more') && part.name === name);
}

/** The variable of a template and the source of a route, for each kind. */
export const KIND_SOURCES = {
  models: { variable: 'model', sourceOf: (route: Route) => route.model },
  collections: { variable: 'collection', sourceOf: (route: Route) => route.collection },
  agents: { variable: 'agent', sourceOf: (route: Route) => route.agent },
} as const;

function kindOf(kind: ResourceKind, route: Route, tenant: TenantView | undefined): ShapeKind | undefined {
  const { variable, sourceOf } = KIND_SOURCES[kind];
  const source = sourceOf(route);
  if (source === 'none') return undefined;
  const template = parseTemplate(route.template);
  const inPath = template.kind === 'template' ? variableOf(template.parts, variable) : undefined;
  const pathForm = inPath?.kind === 'more' ? 'segments' : 'segment';
  const inBody = source === 'body';
  const hasDefault = kind === 'models' && tenant?.settings.default_model !== undefined;
  return {
    kind,
    form: inBody ? 'text' : pathForm,
    inPath: inPath && pathForm,
    many: (inBody && kind === 'collections') || (inPath !== undefined && source !== 'path'),
    named: inBody || inPath !== undefined,
    unnamed: source === 'unknown' || (inBody && inPath === undefined && !hasDefault),
  };
}

function widerForm(one: NameForm, other: NameForm): NameForm {
  return FORMS.findLast((form) => form === one || form === other) ?? 'text';
}

function union(one: ShapeKind, other: ShapeKind): ShapeKind {
  return {
    kind: one.kind,
    form: widerForm(one.form, other.form),
    inPath: one.inPath && other.inPath && widerForm(one.inPath, other.inPath),
    many: one.many || other.many,
    named: one.named || other.named,
    unnamed: one.unnamed || other.unnamed,
  };
}

/** Returns every shape of the routes and of management, once. */
export function shapesOf({
  routes,
  management,
  before,
}: Pick<DifferenceInput, 'routes' | 'management' | 'before'>): readonly RequestShape[] {
  const shapes = new Map<string, RequestShape>();
  for (const route of routes.routes) {
    const kinds = RESOURCE_KINDS.flatMap((kind) => kindOf(kind, route, before.effective) ?? []);
    const key = JSON.stringify([route.permissions.map(({ text }) => text), kinds.map(({ kind }) => kind)]);
    const known = shapes.get(key);
    const merged = kinds.map((one, index) => union(one, known?.kinds[index] ?? one));
    const ofRoutes = [...(known?.routes ?? []), route];
    shapes.set(key, {
      permissions: route.permissions,
      management: false,
      self: false,
      kinds: merged,
      routes: ofRoutes,
    });
  }
  const managed = management.map(({ permission, self }) => ({
    permissions: [permissionOf(permission)],
    management: true,
    self,
    kinds: [],
    routes: [],
  }));
  return [...shapes.values(), ...managed];
}
