/**
 * An endpoint as data: its name, its access, its input and its handler. The API's description is generated from the
 * same table.
 */

import type { Static, TSchema } from 'typebox';
import type { HeaderValue } from '../decision/model.ts';
import { type ErrorCode, Refusal } from '../domain/errors.ts';
import type { RequestId } from '../domain/ids.ts';
import { ownMember } from '../domain/json.ts';
import { fieldSentence } from '../domain/problem-details.ts';
import { isStorable } from '../domain/storable.ts';
import type { Access, ManagementPermission } from '../iam/caller/authorize.ts';
import type { Caller } from '../iam/caller/caller.ts';
import type { Answers } from './answers.ts';
import { defaultBodyBytes } from './body-limits.ts';
import type { ForwardedScheme } from './client-address.ts';
import type { PathTarget } from './refused.ts';
import { unstorable } from './storable.ts';
import { NOTHING, type Nothing, type Validated, validatorOf } from './validation.ts';

type HttpMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RequestContext {
  /** Returns a path parameter, percent-decoded and not validated. */
  readonly param: (name: string) => string;
  /** Returns a request header by its lower-case name. A repeated header has a value of its own. */
  readonly header: (name: string) => HeaderValue;
  /** Undefined: missing. */
  readonly address: string | undefined;
  /** The subject of failed logins; undefined: failures count for the account only. */
  readonly throttledAs: string | undefined;
  readonly scheme: ForwardedScheme;
  readonly requestId: RequestId;
  readonly nowMs: number;
}

/** The input of a handler. Body and query have passed their schemas. */
export interface RequestInput<Body, Query> extends RequestContext {
  readonly body: Body;
  readonly query: Query;
}

export interface Callers {
  readonly caller: Caller;
  /** Returns the same caller in the tenant that the body's `tenant_id` names. Rejects as for X-Tenant-ID. */
  readonly callerIn: (tenantId: string | undefined) => Promise<Caller>;
  /** Admits the caller again, for responses that take long. Rejects as a new request would be rejected. */
  readonly again: () => Promise<Caller>;
}

export type CallerRequestInput<Body, Query> = RequestInput<Body, Query> & Callers;

export interface RawRequestInput extends RequestContext {
  /** Parsed JSON, or the parameters of a form. Undefined: no body. */
  readonly body: unknown;
  /** True if the body is small enough to collect all its errors. */
  readonly allErrors: boolean;
  readonly query: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly status: number;
  /** Sent as JSON. Undefined: no body. */
  readonly body?: unknown;
  /** Sent unchanged, instead of `body`. */
  readonly file?: Bytes;
  /** Sent in pieces, instead of `body`, as fast as the client reads. Ends when the client disconnects. */
  readonly stream?: TextStream;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** The caller has proven nothing and changed nothing, so the server asks no replica whether it has applied a change. */
  readonly isFutile?: boolean;
}

export interface Bytes {
  /** Their media type. */
  readonly type: string;
  readonly bytes: Uint8Array;
}

export interface TextStream {
  /** Its media type. */
  readonly type: string;
  /**
   * If the iteration throws, the server breaks the response off after the last piece, so that no client takes it for
   * complete.
   */
  readonly pieces: AsyncIterable<string>;
  /** The server breaks the response off after this time, in milliseconds. */
  readonly longestMs: number;
}

interface Described<B extends TSchema, Q extends TSchema> {
  readonly method: HttpMethod;
  /** `/v1/iam/users/:id` */
  readonly path: string;
  /** The name in generated clients: `createUser`. */
  readonly operationId: string;
  /** One sentence for the API's description. */
  readonly summary: string;
  /** The resource that the path names: the target in the audit row of a rejected request. Default: none. */
  readonly target?: PathTarget;
  /** Default: the request has no body, or an empty object. */
  readonly body?: B | undefined;
  /** True: the body is a form (`application/x-www-form-urlencoded`) in place of JSON, so its members are texts. */
  readonly form?: true;
  /** True: errors have the form of RFC 6749, section 5.2, in place of problem details. */
  readonly oauth?: true;
  /** The maximum size of a body in bytes. Default: `defaultBodyBytes`. */
  readonly maxBodyBytes?: number;
  /**
   * An object of scalars. A member `tenant_id` is combined with X-Tenant-ID before the caller is admitted. Default: no
   * parameters.
   */
  readonly query?: Q | undefined;
  /** The successful responses. */
  readonly answers: Answers;
  /** Codes of the use case. Codes that follow from access, body and query are not repeated here. Default: none. */
  readonly refusals?: readonly ErrorCode[];
}

/** A use case, or a handler that writes the answer itself. */
type Handling<Input> =
  | {
      /** The result is the body of a 200. Without a result, the answer is 204. */
      readonly run: (input: Input) => Promise<object> | Promise<void>;
      readonly handler?: never;
    }
  | { readonly handler: (input: Input) => Promise<Answer>; readonly run?: never };

type PublicEndpoint<B extends TSchema, Q extends TSchema> = Described<B, Q> &
  Handling<RequestInput<Static<B>, Static<Q>>> & {
    /** True if the endpoint reads a credential that the request has. Default: false. */
    readonly takesCredential?: boolean;
    /**
     * Reports whether the body may have text that cannot be stored, because the use case does not store it unchanged.
     * Default: never.
     */
    readonly takesAnyText?: (body: unknown) => boolean;
  };

export type CallerEndpoint<B extends TSchema, Q extends TSchema> = Described<B, Q> &
  Handling<CallerRequestInput<Static<B>, Static<Q>>> & {
    /** Checked before the body is read, after it is complete, and inside the transaction of a change. */
    readonly permission: Access;
    /**
     * With `use-case`: the permission of a caller that does not act on itself. A caller that has neither it nor a self is
     * rejected before the body is read.
     */
    readonly unlessSelf?: ManagementPermission | undefined;
    /** True: only platform administrators may use the endpoint. */
    readonly platformOnly?: true;
    /**
     * True for an endpoint that changes nothing and has a method other than GET. The old secret of a rotated key may use
     * it.
     */
    readonly onlyReads?: true;
    /**
     * The permission that the use case requires if it decides itself, in Markdown: for example `admin:keys`, or acting
     * on the caller itself.
     */
    readonly needs?: string;
  };

/** An endpoint without its type parameters, with compiled schemas. */
export interface Endpoint
  extends Pick<Described<TSchema, TSchema>, 'method' | 'path' | 'operationId' | 'summary' | 'answers'> {
  readonly refusals: readonly ErrorCode[];
  readonly target: PathTarget | undefined;
  readonly access: 'public' | Access;
  /** See `CallerEndpoint`. */
  readonly unlessSelf: ManagementPermission | undefined;
  readonly platformOnly: boolean;
  /** The required permission, in Markdown. Undefined: at most a credential. */
  readonly needs: string | undefined;
  readonly bodySchema: TSchema;
  readonly form: boolean;
  readonly oauth: boolean;
  /** The server rejects a larger body before it reads it. */
  readonly maxBodyBytes: number;
  readonly querySchema: TSchema;
  readonly takesTenant: boolean;
  /** True if the endpoint reads a credential that the request has. */
  readonly takesCredential: boolean;
  /** True if a caller can change something with the endpoint. */
  readonly writes: boolean;
  /** Rejects with a Refusal for input that does not pass the schemas. */
  readonly run: (raw: RawRequestInput, callers: Callers | undefined) => Promise<Answer>;
}

/** An endpoint for all clients. Its use case may authenticate. */
export function publicEndpoint<B extends TSchema = Nothing, Q extends TSchema = Nothing>(
  endpoint: PublicEndpoint<B, Q>,
): Endpoint {
  const read = reader(endpoint, endpoint.takesAnyText);
  return {
    ...described(endpoint),
    access: 'public',
    unlessSelf: undefined,
    platformOnly: false,
    needs: undefined,
    takesCredential: endpoint.takesCredential === true,
    writes: endpoint.method !== 'GET',
    run: async (raw) => answerOf(endpoint, read(raw)),
  };
}

/** An endpoint that requires an authenticated caller. */
export function callerEndpoint<B extends TSchema = Nothing, Q extends TSchema = Nothing>(
  endpoint: CallerEndpoint<B, Q>,
): Endpoint {
  const read = reader(endpoint);
  const platformOnly = endpoint.platformOnly === true;
  const needed = `\`${endpoint.permission}\`${platformOnly ? ' as a platform administrator' : ''}`;
  return {
    ...described(endpoint),
    access: endpoint.permission,
    unlessSelf: endpoint.unlessSelf,
    platformOnly,
    needs: endpoint.needs ?? (endpoint.permission.includes(':') ? needed : undefined),
    takesCredential: true,
    writes: endpoint.method !== 'GET' && endpoint.onlyReads !== true,
    run: async (raw, callers) => {
      if (callers === undefined) throw new Error(`${endpoint.path} was reached without a caller`);
      return answerOf(endpoint, { ...read(raw), ...callers });
    },
  };
}

async function answerOf<Input>({ handler, run }: Handling<Input>, input: Input): Promise<Answer> {
  if (handler !== undefined) return handler(input);
  const body = await run(input);
  return body === undefined ? { status: 204 } : { status: 200, body };
}

function described<B extends TSchema, Q extends TSchema>(endpoint: Described<B, Q>) {
  const { method, path, operationId, summary, answers, target, body = NOTHING, query = NOTHING } = endpoint;
  if (target !== undefined && !path.split('/').includes(`:${target.param}`)) {
    throw new Error(`${path} has no parameter ${target.param}`);
  }
  return {
    ...{ method, path, operationId, summary, answers, target },
    refusals: endpoint.refusals ?? [],
    bodySchema: body,
    form: endpoint.form === true,
    oauth: endpoint.oauth === true,
    maxBodyBytes: endpoint.maxBodyBytes ?? defaultBodyBytes(path),
    querySchema: query,
    takesTenant: 'tenant_id' in properties(query),
  };
}

function reader<B extends TSchema, Q extends TSchema>(
  endpoint: Described<B, Q>,
  takesAnyText: (body: unknown) => boolean = () => false,
) {
  const bodies = validatorOf(endpoint.body);
  const queries = validatorOf(endpoint.query);
  const types = endpoint.query === undefined ? {} : properties(endpoint.query);
  const needsBody = endpoint.body !== undefined && 'required' in endpoint.body;
  return (raw: RawRequestInput): RequestInput<Static<B>, Static<Q>> => {
    const { allErrors, ...context } = raw;
    const query = admittedQuery(queries(typedQuery(raw.query, types), false));
    if (raw.body === undefined && needsBody) throw new Refusal('invalid_json', 'The request needs a JSON body.');
    const body = admittedBody(bodies(raw.body === undefined ? {} : raw.body, allErrors));
    // After validation, because a valid body is small, so the search is cheap.
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
  return { ...Object(ownMember(schema, 'properties')) };
}

/**
 * Converts numbers and booleans of a query from their one canonical form. All other text stays text, so the schema
 * rejects it.
 */
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
