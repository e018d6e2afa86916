/** Frequent calls by name. `request` calls every other operation. */

import type { Calls } from './client.ts';
import type { CallOptions, Method, Operation, PathOf } from './operations.ts';

type BodyOf<M extends Method, P extends PathOf<M>> =
  Operation<M, P> extends { readonly body?: infer B } ? Exclude<B, undefined> : never;
type QueryOf<P extends PathOf<'GET'>> =
  Operation<'GET', P> extends { readonly query?: infer Q } ? Exclude<Q, undefined> : never;

/** `list` returns all rows, page by page. `update` changes only the members of its body. */
export type Resources = ReturnType<typeof resourcesOf>;

const USERS = '/v1/iam/users';
const USER = '/v1/iam/users/{id}';
const ROLES = '/v1/iam/roles';
const ROLE = '/v1/iam/roles/{name}';
const ATTACHMENT = '/v1/iam/roles/{name}/policies/{policy}';
const POLICIES = '/v1/iam/policies';
const POLICY = '/v1/iam/policies/{name}';
const TENANTS = '/v1/iam/tenants';
const TENANT = '/v1/iam/tenants/{id}';
const ISSUERS = '/v1/iam/issuers';
const ISSUER = '/v1/iam/issuers/{id}';
const KEYS = '/v1/iam/api-keys';
const KEY = '/v1/iam/api-keys/{id}';
const PRICES = '/v1/iam/prices';
const RECENT = '/v1/iam/decisions/recent';
const DECISION = '/v1/iam/decisions/recent/{request_id}';

export function resourcesOf({ request, pages }: Calls) {
  return {
    /** The principal of the credential. */
    me: (options?: CallOptions) => request('GET', '/v1/auth/me', options),
    users: {
      list: (query?: QueryOf<typeof USERS>, options?: CallOptions) => pages(USERS, { query, ...options }),
      create: (body: BodyOf<'POST', typeof USERS>, options?: CallOptions) =>
        request('POST', USERS, { body, ...options }),
      get: (id: string, options?: CallOptions) => request('GET', USER, { path: { id }, ...options }),
      update: (id: string, body: BodyOf<'PUT', typeof USER>, options?: CallOptions) =>
        request('PUT', USER, { path: { id }, body, ...options }),
      delete: (id: string, options?: CallOptions) => request('DELETE', USER, { path: { id }, ...options }),
      activate: (id: string, options?: CallOptions) =>
        request('POST', `${USER}/activate`, { path: { id }, ...options }),
      deactivate: (id: string, options?: CallOptions) =>
        request('POST', `${USER}/deactivate`, { path: { id }, ...options }),
      unlock: (id: string, options?: CallOptions) => request('POST', `${USER}/unlock`, { path: { id }, ...options }),
      /** @param body `current_password` is required to reset the caller's own password */
      resetPassword: (id: string, body: BodyOf<'POST', `${typeof USER}/password-reset`> = {}, options?: CallOptions) =>
        request('POST', `${USER}/password-reset`, { path: { id }, body, ...options }),
      sessions: (id: string, options?: CallOptions) => pages(`${USER}/sessions`, { path: { id }, ...options }),
      endSession: (id: string, session: string, options?: CallOptions) =>
        request('DELETE', `${USER}/sessions/{session}`, { path: { id, session }, ...options }),
      endSessions: (id: string, options?: CallOptions) =>
        request('DELETE', `${USER}/sessions`, { path: { id }, ...options }),
    },
    roles: {
      list: (query?: QueryOf<typeof ROLES>, options?: CallOptions) => pages(ROLES, { query, ...options }),
      create: (body: BodyOf<'POST', typeof ROLES>, options?: CallOptions) =>
        request('POST', ROLES, { body, ...options }),
      get: (name: string, options?: CallOptions) => request('GET', ROLE, { path: { name }, ...options }),
      update: (name: string, body: BodyOf<'PUT', typeof ROLE>, options?: CallOptions) =>
        request('PUT', ROLE, { path: { name }, body, ...options }),
      delete: (name: string, options?: CallOptions) => request('DELETE', ROLE, { path: { name }, ...options }),
      policies: (name: string, options?: CallOptions) => pages(`${ROLE}/policies`, { path: { name }, ...options }),
      attach: (name: string, policy: string, options?: CallOptions) =>
        request('PUT', ATTACHMENT, { path: { name, policy }, ...options }),
      detach: (name: string, policy: string, options?: CallOptions) =>
        request('DELETE', ATTACHMENT, { path: { name, policy }, ...options }),
    },
    policies: {
      list: (query?: QueryOf<typeof POLICIES>, options?: CallOptions) => pages(POLICIES, { query, ...options }),
      create: (body: BodyOf<'POST', typeof POLICIES>, options?: CallOptions) =>
        request('POST', POLICIES, { body, ...options }),
      get: (name: string, options?: CallOptions) => request('GET', POLICY, { path: { name }, ...options }),
      update: (name: string, body: BodyOf<'PUT', typeof POLICY>, options?: CallOptions) =>
        request('PUT', POLICY, { path: { name }, body, ...options }),
      delete: (name: string, options?: CallOptions) => request('DELETE', POLICY, { path: { name }, ...options }),
    },
    tenants: {
      list: (query?: QueryOf<typeof TENANTS>, options?: CallOptions) => pages(TENANTS, { query, ...options }),
      create: (body: BodyOf<'POST', typeof TENANTS>, options?: CallOptions) =>
        request('POST', TENANTS, { body, ...options }),
      get: (id: string, options?: CallOptions) => request('GET', TENANT, { path: { id }, ...options }),
      update: (id: string, body: BodyOf<'PUT', typeof TENANT>, options?: CallOptions) =>
        request('PUT', TENANT, { path: { id }, body, ...options }),
      delete: (id: string, options?: CallOptions) => request('DELETE', TENANT, { path: { id }, ...options }),
      suspend: (id: string, options?: CallOptions) =>
        request('POST', `${TENANT}/suspend`, { path: { id }, ...options }),
      activate: (id: string, options?: CallOptions) =>
        request('POST', `${TENANT}/activate`, { path: { id }, ...options }),
      limits: (id: string, options?: CallOptions) => request('GET', `${TENANT}/limits`, { path: { id }, ...options }),
      correctUsage: (id: string, body: BodyOf<'PUT', `${typeof TENANT}/usage`>, options?: CallOptions) =>
        request('PUT', `${TENANT}/usage`, { path: { id }, body, ...options }),
    },
    apiKeys: {
      list: (query?: QueryOf<typeof KEYS>, options?: CallOptions) => pages(KEYS, { query, ...options }),
      /** Only this answer and that of `rotate` have the text of the key. */
      create: (body: BodyOf<'POST', typeof KEYS>, options?: CallOptions) => request('POST', KEYS, { body, ...options }),
      get: (id: string, options?: CallOptions) => request('GET', KEY, { path: { id }, ...options }),
      update: (id: string, body: BodyOf<'PUT', typeof KEY>, options?: CallOptions) =>
        request('PUT', KEY, { path: { id }, body, ...options }),
      rotate: (id: string, body: BodyOf<'POST', `${typeof KEY}/rotate`> = {}, options?: CallOptions) =>
        request('POST', `${KEY}/rotate`, { path: { id }, body, ...options }),
      revoke: (id: string, options?: CallOptions) => request('DELETE', KEY, { path: { id }, ...options }),
      /** Imports up to 1,000 keys of another system by the SHA-256 of their texts. For platform administrators. */
      import: (body: BodyOf<'POST', `${typeof KEYS}/import`>, options?: CallOptions) =>
        request('POST', `${KEYS}/import`, { body, ...options }),
      /**
       * Revokes up to 1,000 keys, by id or by a filter.
       * @param query `dry_run: true` revokes nothing, and the answer has the keys that would be revoked
       */
      revokeSeveral: (
        body: BodyOf<'POST', `${typeof KEYS}/revoke`>,
        query: { readonly dry_run?: boolean } = {},
        options?: CallOptions,
      ) => request('POST', `${KEYS}/revoke`, { body, query, ...options }),
    },
    issuers: {
      list: (query?: QueryOf<typeof ISSUERS>, options?: CallOptions) => pages(ISSUERS, { query, ...options }),
      create: (body: BodyOf<'POST', typeof ISSUERS>, options?: CallOptions) =>
        request('POST', ISSUERS, { body, ...options }),
      get: (id: string, options?: CallOptions) => request('GET', ISSUER, { path: { id }, ...options }),
      update: (id: string, body: BodyOf<'PUT', typeof ISSUER>, options?: CallOptions) =>
        request('PUT', ISSUER, { path: { id }, body, ...options }),
      /** @param query `force: true` revokes the keys that its tokens prove, and unlinks its users */
      delete: (id: string, query: { readonly force?: boolean } = {}, options?: CallOptions) =>
        request('DELETE', ISSUER, { path: { id }, query, ...options }),
      /** Returns the steps of the check of a token. The server does not store the token. */
      test: (id: string, token: string, options?: CallOptions) =>
        request('POST', `${ISSUER}/test`, { path: { id }, body: { token }, ...options }),
      /** Fetches the keys now. If that failed, `keys.error` of the answer says why. */
      refresh: (id: string, options?: CallOptions) =>
        request('POST', `${ISSUER}/refresh`, { path: { id }, ...options }),
      /** Refuses the tokens that were issued before `time`, by default now. */
      revokeBefore: (id: string, time?: string, options?: CallOptions) =>
        request('POST', `${ISSUER}/revoke-before`, {
          path: { id },
          body: time === undefined ? {} : { time },
          ...options,
        }),
    },
    sessions: {
      list: (options?: CallOptions) => pages('/v1/auth/sessions', options),
      end: (id: string, options?: CallOptions) =>
        request('DELETE', '/v1/auth/sessions/{id}', { path: { id }, ...options }),
      endOthers: (options?: CallOptions) => request('DELETE', '/v1/auth/sessions', options),
    },
    audit: (query?: QueryOf<'/v1/iam/audit'>, options?: CallOptions) => pages('/v1/iam/audit', { query, ...options }),
    decisions: {
      /** Counts by minute, hour or day. */
      get: (query?: QueryOf<'/v1/iam/decisions'>, options?: CallOptions) =>
        request('GET', '/v1/iam/decisions', { query, ...options }),
      /** Denials and a sample of allows, newest first. */
      recent: (query?: QueryOf<typeof RECENT>, options?: CallOptions) => pages(RECENT, { query, ...options }),
      /** Returns the decision on a request, with its explanation. */
      explain: (requestId: string, query?: QueryOf<typeof DECISION>, options?: CallOptions) =>
        request('GET', DECISION, { path: { request_id: requestId }, query, ...options }),
    },
    usage: {
      get: (query?: QueryOf<'/v1/iam/usage'>, options?: CallOptions) =>
        request('GET', '/v1/iam/usage', { query, ...options }),
      record: (body: BodyOf<'POST', '/v1/iam/usage/events'>, options?: CallOptions) =>
        request('POST', '/v1/iam/usage/events', { body, ...options }),
    },
    prices: {
      get: (options?: CallOptions) => request('GET', PRICES, options),
      /** Replaces the whole list. Send `ifMatch`, so that it replaces no list that you have not seen. */
      set: (body: BodyOf<'PUT', typeof PRICES>, options?: CallOptions) => request('PUT', PRICES, { body, ...options }),
      /** The table of the release, compared with the list in force. */
      propose: (query?: QueryOf<`${typeof PRICES}/proposal`>, options?: CallOptions) =>
        request('GET', `${PRICES}/proposal`, { query, ...options }),
    },
    /** All permissions, or those that `pattern` covers, with the routes that need them. */
    permissions: (query?: QueryOf<'/v1/iam/permissions'>, options?: CallOptions) =>
      pages('/v1/iam/permissions', { query, ...options }),
    explain: (body: BodyOf<'POST', '/v1/iam/explain'>, options?: CallOptions) =>
      request('POST', '/v1/iam/explain', { body, ...options }),
    simulate: (body: BodyOf<'POST', '/v1/iam/explain/simulate'>, options?: CallOptions) =>
      request('POST', '/v1/iam/explain/simulate', { body, ...options }),
  };
}
