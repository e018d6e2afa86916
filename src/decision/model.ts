/**
 * What goes into a decision and what comes out. Everything here is frozen data: a decision is a pure function of
 * (request, identity, snapshot, now), so the same four always give the same answer.
 */

import type { DenyCode } from '../domain/errors.ts';
import type { KeyId, PolicyName, RoleName, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { TenantQuotas, TenantSettings } from '../domain/records.ts';
import type { BuiltinRoles } from './builtin-roles.ts';
import type { Grant } from './grants.ts';
import type { PolicySet } from './policies.ts';

/** A header that came more than once. What was in it no longer matters: every header the decision reads must be single. */
export const REPEATED: unique symbol = Symbol('repeated header');
export type HeaderValue = string | undefined | typeof REPEATED;

/** One request as Envoy described it, before anything in it is believed. */
export interface CheckInput {
  readonly method: string;
  /** The request target as received: path and query. */
  readonly path: string;
  readonly authorization: HeaderValue;
  /** `x-api-key` or `api-key`; REPEATED when they differ. Default: neither came. */
  readonly apiKey?: HeaderValue;
  readonly tenant: HeaderValue;
  readonly upgrade: HeaderValue;
  readonly contentType: HeaderValue;
  readonly contentEncoding: HeaderValue;
  /** The body's bytes; empty when there is none or Envoy did not send it. */
  readonly body: Uint8Array;
  /** True when Envoy marked the body as cut, when it is shorter than its announced length, or longer than `inspect.max-body`. */
  readonly bodyPartial: boolean;
  /**
   * True when the proxy sent the body as text: each byte of it that is not UTF-8 arrived as an exclamation mark. Such a mark is then
   * either itself or a byte that only the upstream sees. Default: false, the bytes are those of the request.
   */
  readonly bodyAsText?: boolean;
  /** True when the request has a body, or may have one, and Envoy sent nothing of it: its configuration does not inspect the route. */
  readonly bodyMissing: boolean;
  /** The client's address as the trusted hops tell it; undefined = missing. */
  readonly clientAddress: string | undefined;
}

export interface UserPrincipal {
  readonly kind: 'user';
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly roles: readonly RoleName[];
  readonly platformAdmin: boolean;
  readonly sessionId: SessionId | undefined;
}

export interface KeyPrincipal {
  readonly kind: 'api_key';
  readonly id: KeyId;
  readonly tenantId: TenantId;
  /** The key's grant and its ceiling: its scopes under its own constraints. */
  readonly grant: Grant;
  readonly owner: { readonly id: UserId; readonly roles: readonly RoleName[] } | undefined;
  readonly rateLimitRpm: number | undefined;
  /** True for the secret that a rotation replaced, which works until its grace ends, but changes nothing. */
  readonly rotated?: boolean;
}

export type Principal = UserPrincipal | KeyPrincipal;

/** Why a credential proves nobody. For the log and the audit; the answer is the same for all. */
export type InvalidReason =
  | 'malformed'
  | 'scheme'
  | 'unknown'
  | 'checksum'
  | 'signature'
  | 'revoked'
  | 'key_expired'
  | 'user_deactivated'
  | 'user_missing'
  | 'session_ended';

/** What the credential of a request proved. */
export type Identity =
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly reason: InvalidReason }
  | { readonly kind: 'expired' }
  | { readonly kind: 'proved'; readonly principal: Principal };

/** One tenant, compiled for deciding. */
export interface TenantView {
  readonly id: TenantId;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  /** Custom roles only: the built-in ones are the same in all tenants. */
  readonly roles: ReadonlyMap<RoleName, Grant>;
  readonly policies: PolicySet;
}

/** The part of the world that one decision looks at. */
export interface Snapshot {
  /** The principal's own tenant; undefined when it does not exist (which denies). */
  readonly own: TenantView | undefined;
  /** The tenant that the request names, or the own one when it names none; undefined = no such tenant. */
  readonly effective: TenantView | undefined;
  readonly global: PolicySet;
  readonly builtinRoles: BuiltinRoles;
}

/** `<kind>/<name>`; a name of undefined means: the route takes one, the request does not say which. */
export interface Resource {
  readonly kind: ResourceKind;
  readonly name: string | undefined;
}

export const RESOURCE_KINDS = ['models', 'collections', 'agents'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** Where a route names a resource. `unknown`: it takes one, and nothing that the decision reads names it. */
export type ResourceSource = 'none' | 'path' | 'body' | 'unknown';

export interface Allow {
  readonly kind: 'allow';
  readonly route: Route;
  readonly principal: Principal;
  /** The user's roles; of a key, its owner's. */
  readonly roles: readonly RoleName[];
  readonly tenant: TenantView;
  readonly resources: readonly Resource[];
  /** The model that the body or path names; undefined when none is named. */
  readonly model: string | undefined;
  /** The smallest token limit in force; undefined = none, or the route is not metered by tokens. */
  readonly maxTokens: number | undefined;
  /** Set where the route takes a model, the body names none and the tenant has a default. */
  readonly defaultModel: string | undefined;
  /** What metering needs of the body: the smallest token limit that it names, and how many answers it asks for, those to all prompts together. */
  readonly askedTokens: number | undefined;
  readonly askedChoices: number;
  /** The estimate of the body's text, in tokens; 0 if the route is not metered by tokens. */
  readonly promptTokens: number;
  /** How many inline files the body has besides; 0 if the route is not metered by tokens. */
  readonly inlineFiles: number;
}

/** Postern's own HTTP module answers and authenticates by itself. */
export interface PublicAllow {
  readonly kind: 'public';
}

export interface Deny {
  readonly kind: 'deny';
  readonly code: DenyCode;
  /** Plain words for the answer's `detail`: what was wrong and what to do. Never a secret, never another tenant's data. */
  readonly detail: string;
  readonly policy?: PolicyName;
  /** The permission that is missing, for line 13. */
  readonly permission?: string;
  /** For the log, when the credential proved nobody. */
  readonly reason?: InvalidReason;
  /** The member or header at fault. */
  readonly param?: string;
  /** What was known when it was denied, for logs and counters. */
  readonly route?: Route;
  readonly principal?: Principal;
  /** The effective tenant; set from step 10 on. */
  readonly tenant?: TenantId;
  /** Resources of the request that were known: those of the path at step 11, all of them from step 12 on. */
  readonly resources?: readonly Resource[];
  /** The largest token limit of the body, for step 15. */
  readonly askedTokens?: number;
}

/** The request cannot be decided, because Envoy left out what the decision reads. Neither a denial nor an allow: 503. */
export interface Undecidable {
  readonly kind: 'fault';
  readonly cause: 'body_not_sent';
  readonly route: Route;
  readonly principal: Principal;
  /** The effective tenant. */
  readonly tenant: TenantId;
  /** Those that the path names. */
  readonly resources: readonly Resource[];
}

export type Decision = Allow | PublicAllow | Deny | Undecidable;

/** One line of the route table. */
export interface Route {
  readonly method: string;
  readonly template: string;
  /** One or two; where there are two a grant of either suffices, a deny on either applies, and the first is reported. */
  readonly permissions: readonly [Permission] | readonly [Permission, Permission];
  readonly model: ResourceSource;
  readonly collection: ResourceSource;
  readonly agent: 'none' | 'path';
  /** True where the route is metered by tokens, so that body limits count. */
  readonly tokens: boolean;
  /** True where `Upgrade` may pass. */
  readonly upgrade: boolean;
  /** What the route does to the tenant's number of collections. */
  readonly counts: 'none' | 'adds-collection' | 'removes-collection';
  /** True when something is taken from the body. */
  readonly readsBody: boolean;
  /** True when the prompts in the body are counted, because each of them has answers of its own. */
  readonly readsPrompts: boolean;
  /** True where a stream reports its usage only if the body asks for it with `stream_options`. */
  readonly usageOnRequest: boolean;
  /** True where nothing is reserved, and the usage that the answer reports is booked. */
  readonly reportsUsage: boolean;
  /** True where the answer may show a response whose usage was booked by estimate, and its usage. */
  readonly readsResponse: boolean;
}

/** A concrete `<resource>:<action>` with the texts that a pattern covering it may have. */
export interface Permission {
  readonly text: string;
  /** `<resource>:*` */
  readonly anyAction: string;
  /** `*:<action>` */
  readonly anyResource: string;
}
