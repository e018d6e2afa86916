/**
 * The members that a setup file states of a resource. An export writes the view of a resource, and a plan compares two
 * views. So an export that is applied changes nothing.
 */

import { isDeepStrictEqual } from 'node:util';

/** How a setup file states one member. */
interface SetupMember<T> {
  /** The value that null means. A view leaves it out, and a new resource has it by default. */
  readonly empty?: T;
  /** The default of a new resource for a member that a view always has. Without any default the member is required. */
  readonly initial?: T;
  /** Returns the value as a file states it. Default: unchanged. */
  view?(value: T): unknown;
}

/** The members in the order in which a file has them, without the key of the resource. */
export type SetupMembers<Values> = { readonly [K in keyof Values]: SetupMember<Values[K]> };

/** A resource of a setup file. Undefined members stay as they are, and have their defaults in a new resource. */
export type Wanted<Values, Key extends string> = {
  /** A JSON pointer to the resource in the document. */
  readonly at: string;
  /** The id of a tenant, the name of a role or policy, or the email address of a user. */
  readonly key: Key;
} & { readonly [K in keyof Values]?: Values[K] | undefined };

/** A resource as a file states it, without its key. */
export type View = Readonly<Record<string, unknown>>;

export interface MemberChange {
  /** For example `permissions` or `quotas.max_users`. */
  readonly member: string;
  /** Undefined: the member is absent. */
  readonly before: unknown;
  readonly after: unknown;
}

interface MissingMember {
  readonly missing: readonly string[];
}

export function viewOf<Values extends object>(members: SetupMembers<Values>, values: Values): View;
export function viewOf(members: Readonly<Record<string, SetupMember<unknown>>>, values: object): View {
  const from = new Map(Object.entries(values));
  const views = Object.entries(members).map(([name, member]) => {
    const value = from.get(name);
    return [name, member.view === undefined ? value : member.view(value), member] as const;
  });
  const stated = views.filter(([, view, { empty }]) => empty === undefined || !isDeepStrictEqual(view, empty));
  return Object.fromEntries(stated.map(([name, view]) => [name, view]));
}

/** Returns the values of a resource after the setup, or the members that a new resource requires. */
export function valuesAfter<Values extends object>(
  members: SetupMembers<Values>,
  wanted: { readonly [K in keyof Values]?: Values[K] | undefined },
  before: Values | undefined,
): { readonly values: Values } | MissingMember;
export function valuesAfter(
  members: Readonly<Record<string, SetupMember<unknown>>>,
  wanted: object,
  before: object | undefined,
): { readonly values: object } | MissingMember {
  const [stated, stored] = [new Map(Object.entries(wanted)), new Map(Object.entries(before ?? {}))];
  const after = Object.entries(members).map(([name, { initial, empty }]) => {
    const value = [stated.get(name), stored.get(name), initial, empty].find((known) => known !== undefined);
    return [name, value] as const;
  });
  const missing = after.filter(([, value]) => value === undefined).map(([name]) => name);
  return missing.length > 0 ? { missing } : { values: Object.fromEntries(after) };
}

/** Replaces null by the empty value of the member. */
export function withoutNulls<Values extends object, D extends object>(
  members: SetupMembers<Values>,
  document: D,
): { readonly [K in keyof D]: K extends keyof Values ? Exclude<D[K], null> | Values[K] : D[K] };
export function withoutNulls(members: Readonly<Record<string, SetupMember<unknown>>>, document: object): object {
  return Object.fromEntries(
    Object.entries(document).map(([name, value]) => [name, value === null ? members[name]?.empty : value]),
  );
}

/** Compares two views. Members of objects are compared one by one, so that the change of one setting is one change. */
export function difference(before: View, after: View): readonly MemberChange[] {
  const [old, now] = [flat(before), flat(after)];
  return [...new Set([...Object.keys(old), ...Object.keys(now)])]
    .filter((member) => !isDeepStrictEqual(old[member], now[member]))
    .map((member) => ({ member, before: old[member], after: now[member] }));
}

function flat(view: View): View {
  return Object.fromEntries(
    Object.entries(view).flatMap(([name, value]) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.entries(value).map(([inner, part]) => [`${name}.${inner}`, part])
        : [[name, value]],
    ),
  );
}
