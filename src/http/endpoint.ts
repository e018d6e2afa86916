/** One endpoint as data: what it is called, who may use it, what it takes and what it does. OpenAPI is made from the same table. */

import { type Static, type TSchema, Type } from 'typebox';
import type { HeaderValue } from '../decision/model.ts';
import { type ErrorCode, Refusal } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import { fieldSentence } from '../domain/problem-details.ts';
import type { Access } from '../iam/caller/authorize.ts';
import type { Caller } from '../iam/caller/caller.ts';
import type { Answers } from './answers.ts';
import { defaultBodyBytes } from './body-limits.ts';
import type { ForwardedScheme } from './client-address.ts';
import type { PathTarget } from './refused.ts';
import { isStorable, unstorable } from './storable.ts';
import { type Validated, validatorOf } from './validation.ts';

export type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

interface RequestContext {
  /** A path parameter, percent-decoded, unchecked. */
  readonly param: (name: string) => string;
  /** A request header by its lower-case name; repeated ones are told as such. */
  readonly header: (name: string) => HeaderValue;
  /** Undefined = missing. */
  readonly address: string | undefined;
  /** What failed logins are counted under; undefined = only the account. */
  readonly throttledAs: string | undefined;
  readonly scheme: ForwardedScheme;
  readonly requestId: RequestId;
  readonly nowMs: number;
}

/** What a handler is given; body and query have passed their schemas. */
export interface RequestInput<Body, Query> extends RequestContext {
  readonly body: Body;
  readonly query: Query;
}

export interface Callers {
  readonly caller: Caller;
  /** The same caller in the tenant that the body's `tenant_id` names; the same refusals as for X-Tenant-ID. */
  readonly callerIn: (tenantId: string | undefined) => Promise<Caller>;
  /** Admits the caller again, as it is now: for answers that take long. Rejects as the request would be rejected now. */
  readonly again: () => Promise<Caller>;
}

export type CallerRequestInput<Body, Query> = RequestInput<Body, Query> & Callers;

/** The request before its schemas have been asked. */
export interface RawRequestInput extends RequestContext {
  /** Parsed JSON; undefined = no body. */
  readonly body: unknown;
  /** The body is small enough to look for all its errors. */
  readonly allErrors: boolean;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON; undefined = no body. */
  readonly body?: unknown;
  /** Sent as it is, instead of `body`. */
  readonly file?: Bytes;
  /** Sent piece by piece, instead of `body`, as fast as the client takes it. Ended when the client goes away. */
  readonly stream?: TextStream;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

export interface Bytes {
  /** Their media type. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

export interface TextStream {
  /** Its media type. */
  readonly type: string;
  /** If they throw, the answer breaks off after the last piece, so that no client takes it for whole. */
  readonly pieces: AsyncIterable<string>;
  /** The answer breaks off after that, in milliseconds. */
  readonly longestMs: number;
}

/** The schema of a request without a body, or of an endpoint without query parameters. */
export const NOTHING = Type.Object({}, { additionalProperties: false });

interface Described<B extends TSchema, Q extends TSchema> {
  readonly method: HttpMethod;
  /** `/v1/iam/users/:id` */
  readonly path: string;
  /** What generated clients call it: `createUser`. */
  readonly operationId: string;
  /** One sentence for people who read the API's description. */
  readonly summary: string;
  /** The resource that the path names: the target in the audit row of a rejected request. Default: none. */
  readonly target?: PathTarget;
  /** NOTHING: the request carries no body, or an empty object. */
  readonly body: B;
  /** Bytes of a body at most; default: `defaultBodyBytes`. */
  readonly maxBodyBytes?: number;
  /** An object of scalars. A member `tenant_id` is joined with X-Tenant-ID before the caller is let in. */
  readonly query: Q;
  /** What success looks like. */
  readonly answers: Answers;
  /** Codes of the use case. Those that follow from access, body and query are not repeated here. */
  readonly refusals: readonly ErrorCode[];
}

export interface PublicEndpoint<B extends TSchema, Q extends TSchema> extends Described<B, Q> {
  /** It looks at a credential where there is one. */
  readonly takesCredential?: boolean;
  /** Whether texts of this body may be such as cannot be kept, because the use case keeps none as it came. */
  readonly takesAnyText?: (body: unknown) => boolean;
  readonly handler: (input: RequestInput<Static<B>, Static<Q>>) => Promise<Answer>;
}

export interface CallerEndpoint<B extends TSchema, Q extends TSchema> extends Described<B, Q> {
  /** Checked before the body is read, after it is complete, and inside the transaction of a change. */
  readonly permission: Access;
  /** True for an endpoint with a method other than GET that writes nothing: a rotated secret in its grace may use it. */
  readonly onlyReads?: true;
  /** What the use case asks for, where it decides: `admin:keys`, or acting for oneself. Markdown. */
  readonly needs?: string;
  readonly handler: (input: CallerRequestInput<Static<B>, Static<Q>>) => Promise<Answer>;
}

/** An endpoint with its types put away and its schemas compiled. */
export interface Endpoint {
  readonly method: HttpMethod;
  readonly path: string;
  readonly operationId: string;
  readonly summary: string;
  readonly answers: Answers;
  readonly refusals: readonly ErrorCode[];
  readonly target: PathTarget | undefined;
  readonly access: 'public' | Access;
  /** The rights that it takes, in Markdown; undefined = none but a credential, if that. */
  readonly needs: string | undefined;
  readonly bodySchema: TSchema;
  /** Bytes of a body at most; a larger one is refused before it is read. */
  readonly maxBodyBytes: number;
  readonly querySchema: TSchema;
  readonly takesTenant: boolean;
  /** Of public endpoints: a credential is looked at where there is one. */
  readonly takesCredential: boolean;
  /** Whether a caller may change something with it. */
  readonly writes: boolean;
  /** Rejects with a Refusal for input that does not pass the schemas. */
  readonly run: (raw: RawRequestInput, callers: Callers | undefined) => Promise<Answer>;
}

/** An endpoint that anybody may call; it authenticates by itself if at all. */
export function publicEndpoint<B extends TSchema, Q extends TSchema>(endpoint: PublicEndpoint<B, Q>): Endpoint {
  const read = reader(endpoint, endpoint.takesAnyText);
  return {
    ...described(endpoint),
    access: 'public',
    needs: undefined,
    takesCredential: endpoint.takesCredential === true,
    writes: endpoint.method !== 'GET',
    run: async (raw) => endpoint.handler(read(raw)),
  };
}

/** An endpoint that requires an authenticated caller. */
export function callerEndpoint<B extends TSchema, Q extends TSchema>(endpoint: CallerEndpoint<B, Q>): Endpoint {
  const read = reader(endpoint);
  return {
    ...described(endpoint),
    access: endpoint.permission,
    needs: endpoint.needs ?? (endpoint.permission.includes(':') ? `\`${endpoint.permission}\`` : undefined),
    takesCredential: true,
    writes: endpoint.method !== 'GET' && endpoint.onlyReads !== true,
    run: async (raw, callers) => {
      if (callers === undefined) throw new Error(`${endpoint.path} was reached without a caller`);
      return endpoint.handler({ ...read(raw), ...callers });
    },
  };
}

function described<B extends TSchema, Q extends TSchema>(endpoint: Described<B, Q>) {
  const { path, target } = endpoint;
  if (target !== undefined && !path.split('/').includes(`:${target.param}`)) {
    throw new Error(`${path} has no parameter ${target.param}`);
  }
  return {
    method: endpoint.method,
    path,
    operationId: endpoint.operationId,
    summary: endpoint.summary,
    answers: endpoint.answers,
    refusals: endpoint.refusals,
    target,
    bodySchema: endpoint.body,
    maxBodyBytes: endpoint.maxBodyBytes ?? defaultBodyBytes(endpoint),
    querySchema: endpoint.query,
    takesTenant: 'tenant_id' in properties(endpoint.query),
  };
}

function reader<B extends TSchema, Q extends TSchema>(
  endpoint: Described<B, Q>,
  takesAnyText: (body: unknown) => boolean = () => false,
) {
  const bodies = validatorOf(endpoint.body);
  const queries = validatorOf(endpoint.query);
  const types = properties(endpoint.query);
  const needsBody = 'required' in endpoint.body;
  return (raw: RawRequestInput): RequestInput<Static<B>, Static<Q>> => {
    const { allErrors, ...context } = raw;
    const query = admittedQuery(queries(typedQuery(raw.query, types), false));
    if (raw.body === undefined && needsBody) throw new Refusal('invalid_json', 'The request needs a JSON body.');
    const body = admittedBody(bodies(raw.body === undefined ? {} : raw.body, allErrors));
    // After the schema: what has passed it is small where it should be, so the search costs little.
    if (!takesAnyText(body)) refuseUnstorable(body);
    return { ...context, query, body };
  };
}

function refuseUnstorable(body: unknown): void {
  const errors = unstorable(body).map((path) => ({ path, message: 'Must not contain NUL or an unpaired surrogate.' }));
  if (errors.length > 0)
    throw new Refusal('invalid_field', 'The body contains text that cannot be stored.', { errors });
}

function admittedBody<T>(result: Validated<T>): T {
  if (result.kind === 'valid') return result.value;
  const [first] = result.errors;
  const detail = first === undefined ? 'The body is not valid.' : `The body is not valid: ${fieldSentence(first)}`;
  throw new Refusal('invalid_field', detail, {
    errors: result.errors,
    ...(first === undefined ? {} : { param: first.path.slice(1) }),
  });
}

function admittedQuery<T>(result: Validated<T>): T {
  if (result.kind === 'valid') return result.value;
  const [first] = result.errors;
  const name = first?.path.split('/')[1] ?? '';
  const detail = first === undefined ? 'The query is not valid.' : fieldSentence({ ...first, path: name });
  throw new Refusal('invalid_parameter', detail, { param: name });
}

function properties(schema: TSchema): Readonly<Record<string, unknown>> {
  const members: unknown = 'properties' in schema ? schema.properties : undefined;
  return typeof members === 'object' && members !== null ? { ...members } : {};
}

/** A query is text; numbers and booleans are read from their one canonical form, and whatever else stays text for the schema to refuse. */
function typedQuery(query: Readonly<Record<string, unknown>>, types: Readonly<Record<string, unknown>>): unknown {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, typedParameter(value, types[name])]));
}

function typedParameter(value: unknown, schema: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (!isStorable(value)) return null;
  const type = typeof schema === 'object' && schema !== null && 'type' in schema ? schema.type : undefined;
  if (type === 'integer' && /^(?:0|-?[1-9]\d{0,14})$/.test(value)) return Number(value);
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}
