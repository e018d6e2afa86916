/** What the API's description says about one operation, as the types of a call. */

import type { Paths } from './types.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** They make, change or end the session of the client itself, which has functions for that. */
type OwnPath = '/v1/auth/login' | '/v1/auth/refresh' | '/v1/auth/logout';

/** The paths that have this method: `/v1/iam/users/{id}`. */
export type PathOf<M extends Method> = {
  [P in keyof Paths]: M extends keyof Paths[P] ? Exclude<P, OwnPath> : never;
}[keyof Paths];

export type Operation<M extends Method, P> = P extends keyof Paths
  ? M extends keyof Paths[P]
    ? Paths[P][M]
    : never
  : never;

/** `path`, `query` and `body`, as far as the operation has them. */
export type Inputs<O> = Pick<O, Extract<keyof O, 'path' | 'query' | 'body'>>;

/** The bodies of success by status. */
type Answers<O> = O extends { readonly answers: infer A } ? A : never;

/** The body of success; undefined where there is none. */
export type Data<O> = Answers<O>[keyof Answers<O>];

/** The body of success with what stands beside it. */
export interface Reply<O> {
  readonly status: number;
  readonly data: Data<O>;
  /** For `ifMatch`. */
  readonly etag: string | undefined;
  readonly location: string | undefined;
  readonly requestId: string | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Of each try; else the client's. */
  readonly timeoutMs?: number;
  /** Else the client's. */
  readonly maxRetries?: number;
  /** Platform administrators: the tenant to act in; else the client's. */
  readonly tenant?: string;
  /** Only if the resource is still as it was: its ETag. Otherwise 412 `precondition_failed`. */
  readonly ifMatch?: string;
  /** Of a POST under /v1/iam; else one is made for each call. */
  readonly idempotencyKey?: string;
}

/** Inputs that must be given make the whole argument one that must be given. */
export type Arguments<O, More = CallOptions> =
  Partial<Inputs<O>> extends Inputs<O> ? [options?: Inputs<O> & More] : [options: Inputs<O> & More];

/** The paths that list something in pages. */
export type ListPath = {
  [P in PathOf<'GET'>]: [Row<P>] extends [never] ? never : P;
}[PathOf<'GET'>];

/** What a list holds. */
export type Row<P> =
  Data<Operation<'GET', P>> extends { readonly data: readonly (infer R)[]; readonly next_cursor: unknown } ? R : never;
