/**
 * The exact difference of two versions of a tenant's rules: the requests of its principals whose outcome in steps 12 to
 * 14 changes. The difference is a list of boxes. A request changes its outcome exactly if it lies in a box.
 */

import type { RoleName } from '../../domain/ids.ts';
import type { Principal, Resource, ResourceKind, Snapshot } from '../model.ts';
import type { RouteTable } from '../routes.ts';

/** Principals that every rule treats alike: users with the same roles, or keys with the same grant and owner's roles. */
export interface PrincipalGroup {
  /** A principal of the group. Its id is the subject of witnesses. */
  readonly principal: Principal;
  /** The number of principals of the group. */
  readonly count: number;
  /** When the principal expires, in milliseconds since the epoch. Absent: never. */
  readonly expiresMs?: number;
}

/** A request of the management API, which names no resource. */
export interface ManagementAccess {
  readonly permission: string;
  /** True if a user acts on itself with it: it then needs no grant, but a deny policy still applies. */
  readonly self: boolean;
}

export interface DifferenceInput {
  /** Both with the tenant as `own` and as `effective`. */
  readonly before: Snapshot;
  readonly after: Snapshot;
  /** All principals of the tenant. */
  readonly groups: readonly PrincipalGroup[];
  readonly routes: RouteTable;
  readonly management: readonly ManagementAccess[];
  /** Milliseconds since the epoch. Witnesses are requests of the following days, where the rules have such hours. */
  readonly nowMs: number;
}

/** A set of names: those that one of `patterns` and all of `also` match, and none of `except`. `*` matches every name. */
export interface NamePatterns {
  readonly patterns: readonly string[];
  readonly except: readonly string[];
  readonly also: readonly string[];
}

/** The names of one kind in the requests of a box: the union of its sets. */
export interface NameRegion {
  /** At most one set, unless a request can name several resources of the kind. */
  readonly sets: readonly NamePatterns[];
  /** True if a request that takes such a resource and does not name it is in the region. */
  readonly unnamed: boolean;
}

/**
 * The resources of one kind in the requests of a box. A request that names several collections has several.
 * - Without `some`, each resource of the request is in `each`.
 * - With `some`, in addition, each region of `some` contains one of the request's resources.
 */
export interface ResourceRegion {
  readonly each: NameRegion;
  readonly some: readonly NameRegion[];
}

/** Hours on the wall clock of one time zone, as windows of the condition `weekly_hours`. */
export interface ClockRegion {
  readonly timezone: string;
  readonly week: readonly string[];
}

/** A rule that the change of an outcome comes from. */
export interface ResponsibleRule {
  readonly kind: 'policy' | 'role';
  readonly name: string;
}

/** One request of a box, for an explanation. */
export interface Witness {
  readonly principal: Principal;
  /** The route's method, and a path that matches it; undefined for a request of the management API. */
  readonly method: string | undefined;
  readonly path: string | undefined;
  /** A JSON body; undefined if the route reads none. */
  readonly body: string | undefined;
  readonly resources: readonly Resource[];
  /** Undefined: the address is missing. */
  readonly clientAddress: string | undefined;
  readonly timeMs: number;
}

/** A request as steps 12 to 14 see it. */
export interface BoxRequest {
  /** Index in the groups of the input. */
  readonly group: number;
  readonly permissions: readonly string[];
  readonly management: boolean;
  readonly self: boolean;
  readonly resources: readonly Resource[];
  readonly clientAddress: string | undefined;
  readonly timeMs: number;
}

/**
 * Roles that describe the users of a box, or its keys by their owners if it has no users: each holds one of `any` and
 * none of `none`.
 */
export interface RoleRegion {
  readonly any: readonly RoleName[];
  readonly none: readonly RoleName[];
  /** True if no such description fits the tenant's principals of that kind; `any` then lists the roles of all of them. */
  readonly inexact: boolean;
}

export interface Box {
  /** Indices in the groups of the input. */
  readonly groups: readonly number[];
  readonly users: number;
  readonly keys: number;
  readonly roles: RoleRegion;
  /** One or two, as on the route. A route with two is another request than a route with one of them. */
  readonly permissions: readonly string[];
  readonly management: boolean;
  readonly self: boolean;
  /**
   * By kind, for each kind that a route with these permissions takes. `none`: the request has no resource of the kind.
   * A kind that is absent is one that no such route takes.
   */
  readonly resources: Readonly<Partial<Record<ResourceKind, ResourceRegion | 'none'>>>;
  /** CIDR blocks, and `missing` for a request whose address is missing. Undefined = all, `missing` included. */
  readonly addresses: readonly string[] | undefined;
  /** One entry for each time zone in which the hours matter. All must contain the instant. Empty = always. */
  readonly clocks: readonly ClockRegion[];
  readonly by: ResponsibleRule;
  readonly witness: Witness;
  contains(request: BoxRequest): boolean;
  /** Reports whether a request with this resource may be in the box. @param name undefined: not named */
  mayName(kind: ResourceKind, name: string | undefined): boolean;
}

export interface Difference {
  readonly newlyAllowed: readonly Box[];
  readonly newlyDenied: readonly Box[];
  /** False if a bound was exceeded: the boxes are then right, and there may be more. */
  readonly complete: boolean;
  /** The bound that was exceeded, as a sentence; undefined if `complete`. */
  readonly reason: string | undefined;
  /** True if no request changes its outcome. */
  readonly unchanged: boolean;
  /** Principals with a request whose outcome changes. */
  readonly affected: { readonly users: number; readonly keys: number };
}
