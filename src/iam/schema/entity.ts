/**
 * The one definition of an entity. Each member says whether the table has a column for it, what responses show of it, what a request that
 * creates the entity accepts, and whether an update may change it. The names of members are the names of the columns and of the API.
 *
 * From the definition follow the type of a row, the list of columns, and the schemas of requests and responses.
 */

import { type Static, type TOptional, type TSchema, Type } from 'typebox';

/** A column that responses show. */
interface Column<S extends TSchema> {
  readonly stored: true;
  readonly shows: S;
}

/** A column that no response shows. */
interface HiddenColumn<T> {
  readonly stored: true;
  /** Never set: it carries the type of the column. */
  readonly type?: T;
}

/** What responses show and no column holds. */
interface Derived<S extends TSchema> {
  readonly stored: false;
  readonly shows: S;
}

/** What requests have and no column holds. */
interface Input {
  readonly stored: false;
}

interface Accepted<A extends TSchema, C extends boolean> {
  /** The schema in a request that creates the entity. `Type.Optional` if the member may be absent. */
  readonly accepts: A;
  /** True if an update accepts the member too. There it may always be absent. */
  readonly changes: C;
}

type Member = (Column<TSchema> | HiddenColumn<unknown> | Derived<TSchema> | Input) &
  Partial<Accepted<TSchema, boolean>>;

export type Members = Readonly<Record<string, Member>>;

interface Request<A extends TSchema, C extends boolean> {
  readonly accepts: A;
  readonly changes: C;
}

/** A column that responses show, and with `request` one that requests set. */
export function column<S extends TSchema>(shows: S): Column<S>;
export function column<S extends TSchema, A extends TSchema, const C extends boolean>(
  shows: S,
  request: Request<A, C>,
): Column<S> & Accepted<A, C>;
export function column(shows: TSchema, request?: Request<TSchema, boolean>) {
  return { stored: true, shows, ...request };
}

/** A column that no response shows. */
export function hidden<T>(): HiddenColumn<T> {
  return { stored: true };
}

/** A member of responses that follows from the columns. */
export function derived<S extends TSchema>(shows: S): Derived<S> {
  return { stored: false, shows };
}

/** A member of requests that has no column of its own. */
export function input<A extends TSchema, const C extends boolean>(request: Request<A, C>): Input & Accepted<A, C> {
  return { stored: false, ...request };
}

/** A row of the table, as the database returns it. */
export type RowOf<M extends Members> = {
  readonly [K in keyof M as M[K] extends { readonly stored: true } ? K : never]: M[K] extends Column<infer S>
    ? Static<S>
    : M[K] extends HiddenColumn<infer T>
      ? T
      : never;
};

/** The columns, in the order of the definition. */
export function columnsOf<M extends Members>(members: M): readonly (keyof RowOf<M> & string)[];
export function columnsOf(members: Members): readonly string[] {
  return Object.keys(members).filter((name) => members[name]?.stored === true);
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
  return schemas(members, (member) => ('shows' in member ? member.shows : undefined));
}

type AcceptedBy<M extends Members> = {
  [K in keyof M as M[K] extends { readonly accepts: TSchema } ? K : never]: M[K] extends {
    readonly accepts: infer A extends TSchema;
  }
    ? A
    : never;
};

/** The members of a request that creates the entity, for `Type.Object`. */
export function acceptedBy<M extends Members>(members: M): AcceptedBy<M>;
export function acceptedBy(members: Members): Record<string, TSchema> {
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

function schemas(members: Members, pick: (member: Member) => TSchema | undefined): Record<string, TSchema> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([name, member]) => {
      const schema = pick(member);
      return schema === undefined ? [] : [[name, schema]];
    }),
  );
}
