/** The types of calls, which follow from the API's description. */

import type { Paths } from './types.ts';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** They begin, continue or end the session of the client, which has functions for that. */
type OwnPath = '/v1/auth/login' | '/v1/auth/refresh' | '/v1/auth/logout';

/** The paths that have this method, such as `/v1/iam/users/{id}`. */
export type PathOf<M extends Method> = {
  [P in keyof Paths]: M extends keyof Paths[P] ? Exclude<P, OwnPath> : never;
}[keyof Paths];

export type Operation<M extends Method, P> = P extends keyof Paths
  ? M extends keyof Paths[P]
    ? Paths[P][M]
    : never
  : never;

/** `path`, `query` and `body`, if the operation has them. */
export type Inputs<O> = Pick<O, Extract<keyof O, 'path' | 'query' | 'body'>>;

/** The bodies of 2xx answers by status. */
type Answers<O> = O extends { readonly answers: infer A } ? A : never;

/** The body of a 2xx answer; undefined: it has none. */
export type Data<O> = Answers<O>[keyof Answers<O>];

/** A 2xx answer. */
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
  /** Bounds each attempt. Default: that of the client. */
  readonly timeoutMs?: number;
  /** Default: that of the client. */
  readonly maxRetries?: number;
  /** The tenant in which a platform administrator acts. Default: that of the client. */
  readonly tenant?: string;
  /** The ETag of the resource as you read it. If it has changed, the answer is 412 `precondition_failed`. */
  readonly ifMatch?: string;
  /** For a POST under /v1/iam. Default: a random key for each call. */
  readonly idempotencyKey?: string;
}

/** The options are optional if all inputs are. */
export type Arguments<O, More = CallOptions> =
  Partial<Inputs<O>> extends Inputs<O> ? [options?: Inputs<O> & More] : [options: Inputs<O> & More];

/** The paths of lists. */
export type ListPath = {
  [P in PathOf<'GET'>]: [Row<P>] extends [never] ? never : P;
}[PathOf<'GET'>];

/** A row of a list. */
export type Row<P> =
  Data<Operation<'GET', P>> extends { readonly data: readonly (infer R)[]; readonly next_cursor: unknown } ? R : never;
