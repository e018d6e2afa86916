/**
 * The one definition of an entity. Each member says whether the table has a column for it, what responses show of it,
 * what a request that creates the entity accepts, and whether an update may change it. The names of members are the
 * names of the columns and of the API.
 *
 * From the definition follow the type of a row, the list of columns, the schemas of requests and responses, and the
 * resource that responses show. The order of the members is the order of the columns and of the members of a response.
 */

import { type Static, type TObject, type TOptional, type TProperties, type TSchema, Type } from 'typebox';
import { type Component, component } from './keywords.ts';
import { closed } from './schemas.ts';

/** A column with values of one type. */
interface Column<T> {
  readonly stored: true;
  /** False for a column that is not part of a row: only statements name it. */
  readonly selected: boolean;
  /** Never set: it carries the type of the column. */
  readonly type?: T;
}

/** A member of the row that statements read from another table. */
interface Joined<T> extends Column<T> {
  readonly joined: true;
}

/** A member that no column holds. */
interface NoColumn {
  readonly stored: false;
}

interface Shown<S extends TSchema, C extends boolean> {
  /** The schema in responses. */
  readonly shows: S;
  /** True if a function of the entity computes the shown value, false if it is the value of the column. */
  readonly computed: C;
}

interface Accepted<A extends TSchema, C extends boolean> {
  /** The schema in a request that creates the entity. `Type.Optional` if the member may be absent. */
  readonly accepts: A;
  /** True if an update accepts the member too. There it may always be absent. */
  readonly changes: C;
}

type Member = (Column<unknown> | Joined<unknown> | NoColumn) &
  Partial<Shown<TSchema, boolean>> &
  Partial<Accepted<TSchema, boolean>>;

export type Members = Readonly<Record<string, Member>>;

/** A column whose value responses show, and with `request` one that requests set. */
export function column<S extends TSchema>(shows: S): Column<Static<S>> & Shown<S, false>;
export function column<S extends TSchema, A extends TSchema, const C extends boolean>(
  shows: S,
  request: Accepted<A, C>,
): Column<Static<S>> & Shown<S, false> & Accepted<A, C>;
export function column(shows: TSchema, request?: Accepted<TSchema, boolean>) {
  return { stored: true, selected: true, shows, computed: false, ...request };
}

/** A column whose value responses show in another form. `holds` is the schema of the column. */
export function converted<H extends TSchema, S extends TSchema>(
  _holds: H,
  shows: S,
): Column<Static<H>> & Shown<S, true> {
  return { stored: true, selected: true, shows, computed: true };
}

/** A member that statements read from another table and add to the row, and with `request` one that requests set. */
export function joined<S extends TSchema>(shows: S): Joined<Static<S>> & Shown<S, false>;
export function joined<S extends TSchema, A extends TSchema, const C extends boolean>(
  shows: S,
  request: Accepted<A, C>,
): Joined<Static<S>> & Shown<S, false> & Accepted<A, C>;
export function joined(shows: TSchema, request?: Accepted<TSchema, boolean>) {
  return { stored: true, selected: true, joined: true, shows, computed: false, ...request };
}

/** A column of the row that no response shows. */
export function hidden<T>(): Column<T> {
  return { stored: true, selected: true };
}

/** A column that is not part of a row, such as a digest. */
export function unselected<T>(): Column<T> & { readonly selected: false } {
  return { stored: true, selected: false };
}

/** A member of responses that the entity computes from a row, and with `request` one that requests set. */
export function derived<S extends TSchema>(shows: S): NoColumn & Shown<S, true>;
export function derived<S extends TSchema, A extends TSchema, const C extends boolean>(
  shows: S,
  request: Accepted<A, C>,
): NoColumn & Shown<S, true> & Accepted<A, C>;
export function derived(shows: TSchema, request?: Accepted<TSchema, boolean>) {
  return { stored: false, shows, computed: true, ...request };
}

/** A member of requests that has no column of its own. */
export function input<A extends TSchema, const C extends boolean>(request: Accepted<A, C>): NoColumn & Accepted<A, C> {
  return { stored: false, ...request };
}

/** A row, as the statements of the entity return it. */
export type RowOf<M extends Members> = {
  readonly [K in keyof M as M[K] extends { readonly stored: true }
    ? M[K] extends { readonly selected: false }
      ? never
      : K
    : never]: M[K] extends Column<infer T> ? T : never;
};

/** All columns of the table, for knex. */
export type TableOf<M extends Members> = {
  readonly [K in keyof M as M[K] extends { readonly stored: true } ? K : never]: M[K] extends Column<infer T>
    ? T
    : never;
};
type ColumnsOf<M extends Members> = {
  [K in keyof RowOf<M>]: M[K] extends { readonly joined: true } ? never : K & string;
}[keyof RowOf<M>];

/** The columns of a row, in the order of the definition. */
export function columnsOf<M extends Members>(members: M): readonly ColumnsOf<M>[];
export function columnsOf(members: Members): readonly string[] {
  return Object.keys(members).filter((name) => {
    const member = members[name];
    return member?.stored === true && member.selected && !('joined' in member);
  });
}

type UpdatedColumns<M extends Members> = {
  [K in ColumnsOf<M>]: M[K] extends { readonly changes: true } ? K : never;
}[ColumnsOf<M>];

/** Returns the values of the columns that an update may change. */
export function updateOf<M extends Members>(
  members: M,
  values: Pick<RowOf<M>, UpdatedColumns<M> & keyof RowOf<M>>,
): Pick<RowOf<M>, UpdatedColumns<M> & keyof RowOf<M>>;
export function updateOf(members: Members, values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const names = columnsOf(members).filter((name) => members[name]?.changes === true);
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

type ShownBy<M extends Members> = {
  [K in keyof M as M[K] extends { readonly shows: TSchema } ? K : never]: M[K] extends {
    readonly shows: infer S extends TSchema;
  }
    ? S
    : never;
};

/** The members of responses, for `Type.Object`. */
export function shownBy<M extends Members>(members: M): ShownBy<M>;
export function shownBy(members: Members): Record<string, TSchema> {
  return schemas(members, ({ shows }) => shows);
}

/** The resource of an entity in responses: the columns that are not hidden, and the computed members. */
export type ResourceOf<M extends Members> = Readonly<Static<ReturnType<typeof Type.Object<ShownBy<M>>>>>;

type ComputedNames<M extends Members> = {
  [K in keyof M]: M[K] extends { readonly computed: true } ? K : never;
}[keyof M];

/**
 * Returns the resource of a row.
 * @param computed the members that are not columns, or are shown in another form. An absent one is not shown.
 */
export function resourceOf<M extends Members>(
  members: M,
  row: RowOf<M>,
  computed: Pick<ResourceOf<M>, ComputedNames<M> & keyof ResourceOf<M>>,
): ResourceOf<M>;
export function resourceOf(
  members: Members,
  row: Readonly<Record<string, unknown>>,
  computed: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, member]) => {
      if (member.shows === undefined) return [];
      const from = member.computed === true ? computed : row;
      return name in from ? [[name, from[name]]] : [];
    }),
  );
}

type AcceptedBy<M extends Members> = {
  [K in keyof M as M[K] extends { readonly accepts: TSchema } ? K : never]: M[K] extends {
    readonly accepts: infer A extends TSchema;
  }
    ? A
    : never;
};

/** The members of a request that creates the entity, for `Type.Object`. */
function acceptedBy<M extends Members>(members: M): AcceptedBy<M>;
function acceptedBy(members: Members): Record<string, TSchema> {
  return schemas(members, ({ accepts }) => accepts);
}

type ChangedBy<M extends Members> = {
  [K in keyof M as M[K] extends { readonly accepts: TSchema; readonly changes: true } ? K : never]: M[K] extends {
    readonly accepts: infer A extends TSchema;
  }
    ? TOptional<A>
    : never;
};

/** The members of an update, for `Type.Object`. */
export function changedBy<M extends Members>(members: M): ChangedBy<M>;
export function changedBy(members: Members): Record<string, TSchema> {
  return schemas(members, ({ accepts, changes }) =>
    accepts === undefined || changes !== true ? undefined : Type.Optional(accepts),
  );
}

/** The schema of responses that show the entity. @param more members that the definition does not have */
export function shownComponent<M extends Members, P extends TProperties = Record<never, never>>(
  name: string,
  members: M,
  more?: P,
): Component<TObject<ShownBy<M> & P>>;
export function shownComponent(name: string, members: Members, more: TProperties = {}): Component {
  return component(name, Type.Object({ ...shownBy(members), ...more }));
}

type RequestOptions = Readonly<Record<string, unknown>> & { readonly examples: readonly object[] };

/** The schema of a request that creates the entity. */
export function newComponent<M extends Members>(name: string, members: M, options: RequestOptions) {
  return component(name, Type.Object(acceptedBy(members), { ...closed, ...options }));
}

/** The schema of an update. */
export function changesComponent<M extends Members>(name: string, members: M, options: RequestOptions) {
  return component(name, Type.Object(changedBy(members), { ...closed, ...options }));
}

function schemas(members: Members, pick: (member: Member) => TSchema | undefined): Record<string, TSchema> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, member]) => {
      const schema = pick(member);
      return schema === undefined ? [] : [[name, schema]];
    }),
  );
}
