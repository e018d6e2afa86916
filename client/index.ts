/** The interface of the package. */

export { type Client, type Credentials, createClient } from './client.ts';
export { ConnectionError, type FieldError, type ProblemCode, ProblemError, UnexpectedAnswerError } from './errors.ts';
export type { CallOptions, Data, ListPath, Method, Operation, PathOf, Reply, Row } from './operations.ts';
export type { ClientOptions } from './options.ts';
export type { SessionEnd } from './session.ts';
export type { Timing } from './timing.ts';
export type { SessionStorage, Tokens } from './tokens.ts';
export type * from './types.ts';
