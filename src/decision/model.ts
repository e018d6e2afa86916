/**
 * The inputs and results of decisions. Everything here is frozen data: a decision is a pure function of (request,
 * identity, snapshot, now), so equal arguments give equal results.
 */

import type { DenyCode } from '../domain/errors.ts';
import type { BudgetId, IssuerId, KeyId, PolicyName, RoleName, SessionId, TenantId, UserId } from '../domain/ids.ts';
import type { RateLimitMember } from '../domain/problem-details.ts';
import type { Metadata, RateLimitRule, TenantQuotas, TenantSettings } from '../domain/records.ts';
import type { BudgetIndex } from './budgets.ts';
import type { BuiltinRoles } from './builtin-roles.ts';
import type { Grant } from './grants.ts';
import type { PatternSet } from './permissions.ts';
import type { PolicySet } from './policies.ts';

/**
 * A header that came more than once. Its values do not matter, because every header that the decision reads must be
 * single.
 */
export const REPEATED: unique symbol = Symbol('repeated header');
export type HeaderValue = string | undefined | typeof REPEATED;

/** One request as Envoy described it, before anything in it is trusted. */
export interface CheckInput {
  readonly method: string;
  /** The request target as received: path and query. */
  readonly path: string;
  readonly authorization: HeaderValue;
  /** `x-api-key` or `api-key`; REPEATED if they differ. Default: neither came. */
  readonly apiKey?: HeaderValue;
  readonly tenant: HeaderValue;
  readonly upgrade: HeaderValue;
  readonly contentType: HeaderValue;
  readonly contentEncoding: HeaderValue;
  /** The body's bytes; empty if there is none or Envoy did not send it. */
  readonly body: Uint8Array;
  /**
   * True if Envoy marked the body as cut, or if it is shorter than its announced length, or longer than
   * `inspect.max-body`.
   */
  readonly bodyPartial: boolean;
  /**
   * True if the proxy sent the body as text, in which an exclamation mark replaces each byte that is not UTF-8. An
   * exclamation mark is then either itself or a byte that only the upstream sees. Default: false, the bytes are those
   * of the request.
   */
  readonly bodyAsText?: boolean;
  /**
   * True if the request has a body, or may have one, and Envoy sent nothing of it because its configuration does not
   * inspect the route.
   */
  readonly bodyMissing: boolean;
  /** The client's address according to the trusted hops; undefined = missing. */
  readonly clientAddress: string | undefined;
}

export interface UserPrincipal {
  readonly kind: 'user';
  readonly id: UserId;
  readonly tenantId: TenantId;
  readonly roles: readonly RoleName[];
  readonly platformAdmin: boolean;
  readonly sessionId: SessionId | undefined;
  /** As in `KeyPrincipal`. */
  readonly provedBy?: IssuerId | undefined;
  /** Permissions that narrow the session. Absent: it has all permissions of the user. */
  readonly scope?: PatternSet | undefined;
  /** The limits of the user by model. Absent: none; likewise for keys and owners. */
  readonly rateLimits?: readonly RateLimitRule[] | undefined;
}

export interface KeyOwner {
  readonly id: UserId;
  readonly roles: readonly RoleName[];
  readonly rateLimits?: readonly RateLimitRule[] | undefined;
}

export interface KeyPrincipal {
  readonly kind: 'api_key';
  readonly id: KeyId;
  readonly tenantId: TenantId;
  /** The key's grant and its ceiling: its scopes under its own constraints. */
  readonly grant: Grant;
  readonly owner: KeyOwner | undefined;
  readonly rateLimitRpm: number | undefined;
  readonly rateLimits?: readonly RateLimitRule[] | undefined;
  /** For budgets that select keys by their metadata. */
  readonly metadata?: Metadata | undefined;
  /** True for the old secret of a rotation, which works until its grace ends, but must not change anything. */
  readonly rotated?: boolean;
  /**
   * The issuer whose token proves the principal; undefined for keys with a secret, and for sessions. Such a token must
   * not change anything.
   */
  readonly provedBy?: IssuerId | undefined;
  /** The session of a key without a secret. Absent: the credential is the key. */
  readonly sessionId?: SessionId;
  /** Permissions that narrow the session. Absent: it has all permissions of the key. */
  readonly scope?: PatternSet | undefined;
}

export type Principal = UserPrincipal | KeyPrincipal;

/** Why the token of an issuer proves no principal; see also the reasons of keys, users and signatures. */
export const ISSUER_REASONS = [
  'unknown_issuer',
  'issuer_disabled',
  'audience',
  'claims',
  'algorithm',
  'too_old',
  'not_yet_valid',
  'revoked_before',
  'ambiguous',
  'no_principal',
  'email_in_use',
] as const;

/** Why a credential proves no principal, for the log and the audit log. The answer is the same for all reasons. */
export const INVALID_REASONS = [
  'malformed',
  'scheme',
  'unknown',
  'checksum',
  'signature',
  'revoked',
  'disabled',
  'key_expired',
  'user_deactivated',
  'user_missing',
  'session_ended',
  ...ISSUER_REASONS,
] as const;
export type InvalidReason = (typeof INVALID_REASONS)[number];

interface OfIssuer {
  /** True for the token of another issuer. */
  readonly external?: true;
  /** The tenant of the issuer, if a key of the issuer signed the token: its administrators see the denial. */
  readonly tenant?: TenantId;
}

export type Identity =
  | { readonly kind: 'missing' }
  | ({ readonly kind: 'invalid'; readonly reason: InvalidReason } & OfIssuer)
  | ({ readonly kind: 'expired' } & OfIssuer)
  | { readonly kind: 'proved'; readonly principal: Principal };

/** One tenant, compiled for decisions. */
export interface TenantView {
  readonly id: TenantId;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  /** Custom roles only: the built-in ones are the same in all tenants. */
  readonly roles: ReadonlyMap<RoleName, Grant>;
  readonly policies: PolicySet;
  /** Absent: none. */
  readonly budgets?: BudgetIndex;
}

/** The tenants, policies and roles that one decision reads. */
export interface Snapshot {
  /** The principal's own tenant; undefined if it does not exist, which denies. */
  readonly own: TenantView | undefined;
  /** The tenant that the request names, or the principal's own; undefined = no such tenant. */
  readonly effective: TenantView | undefined;
  readonly global: PolicySet;
  readonly builtinRoles: BuiltinRoles;
}

/** `<kind>/<name>`. The name is undefined if the route has such a resource and the request does not name it. */
export interface Resource {
  readonly kind: ResourceKind;
  readonly name: string | undefined;
}

export const RESOURCE_KINDS = ['models', 'collections', 'agents'] as const;
export type ResourceKind = (typeof RESOURCE_KINDS)[number];

/** Where a route names a resource. `unknown`: the route has one, and nothing that the decision reads names it. */
export type ResourceSource = 'none' | 'path' | 'body' | 'unknown';

export interface Allow {
  readonly kind: 'allow';
  readonly route: Route;
  readonly principal: Principal;
  /** The roles of the user, or of the key's owner. */
  readonly roles: readonly RoleName[];
  readonly tenant: TenantView;
  readonly resources: readonly Resource[];
  /** The model that the body or path names; undefined = none. */
  readonly model: string | undefined;
  /** The smallest token limit in force; undefined = none, or the route is not metered by tokens. */
  readonly maxTokens: number | undefined;
  /** The tenant's default model, if the route has a model and the body names none. */
  readonly defaultModel: string | undefined;
  /** The smallest token limit that the body names, and the number of answers to all of its prompts, for metering. */
  readonly askedTokens: number | undefined;
  readonly askedChoices: number;
  /** The estimate of the body's text, in tokens; 0 if the route is not metered by tokens. */
  readonly promptTokens: number;
  /** The number of inline files of the body; 0 if the route is not metered by tokens. */
  readonly inlineFiles: number;
  /** The report-only policy that would have denied the request. It changes nothing. */
  readonly wouldDeny?: PolicyName;
}

/** A path of Postern's own HTTP module, which authenticates its requests itself. */
export interface PublicAllow {
  readonly kind: 'public';
}

export interface Deny {
  readonly kind: 'deny';
  readonly code: DenyCode;
  /** The `detail` of the answer: the cause and the next step. Never a secret, never another tenant's data. */
  readonly detail: string;
  readonly policy?: PolicyName;
  /** The missing permission, for step 13. */
  readonly permission?: string;
  /** For the log, if the credential proved no principal. */
  readonly reason?: InvalidReason;
  /** The member or header at fault. */
  readonly param?: string;
  /** Known at the time of the denial, for logs and counters. */
  readonly route?: Route;
  readonly principal?: Principal;
  /** The effective tenant, set from step 10 on. In steps 7 and 8 the tenant of the issuer whose key signed the token. */
  readonly tenant?: TenantId;
  /** The known resources of the request: those of the path in step 11, all of them from step 12. */
  readonly resources?: readonly Resource[];
  /** The largest token limit of the body, for step 15. */
  readonly askedTokens?: number;
  /** The budget without room for the request, for step 17. Absent for the tenant's own quotas. */
  readonly budgetId?: BudgetId;
  /** The exceeded limit by model, for step 16. */
  readonly modelLimit?: RateLimitMember | undefined;
  /** The report-only policy that would have allowed the request. It changes nothing. */
  readonly wouldAllow?: PolicyName;
}

/** The request cannot be decided, because Envoy did not send the body. Neither a denial nor an allow: 503. */
export interface Undecidable {
  readonly kind: 'fault';
  readonly cause: 'body_not_sent';
  readonly route: Route;
  readonly principal: Principal;
  /** The effective tenant. */
  readonly tenant: TenantId;
  /** The resources that the path names. */
  readonly resources: readonly Resource[];
}

export type Decision = Allow | PublicAllow | Deny | Undecidable;

export interface Route {
  readonly method: string;
  readonly template: string;
  /** One or two. If there are two, a grant of either is enough, a deny on either applies, and the first is reported. */
  readonly permissions: readonly [Permission] | readonly [Permission, Permission];
  readonly model: ResourceSource;
  readonly collection: ResourceSource;
  readonly agent: 'none' | 'path';
  /** True if the route is metered by tokens, so that body limits count. */
  readonly tokens: boolean;
  readonly upgrade: boolean;
  /** The route's effect on the tenant's number of collections. */
  readonly counts: 'none' | 'adds-collection' | 'removes-collection';
  readonly readsBody: boolean;
  /** True if the prompts of the body are counted, because each of them has answers of its own. */
  readonly readsPrompts: boolean;
  /** True if a stream reports its usage only if the body requests it with `stream_options`. */
  readonly usageOnRequest: boolean;
  /** True if nothing is reserved and the reported usage of the answer is booked. */
  readonly reportsUsage: boolean;
  /** True if the answer may contain a response whose usage was booked by estimate, and its usage. */
  readonly readsResponse: boolean;
  /** False if an allow of the route adds no token for the upstream, even if the installation has such tokens. */
  readonly upstreamToken: boolean;
}

/** A concrete `<resource>:<action>` with the texts of the patterns that cover it. */
export interface Permission {
  readonly text: string;
  /** `<resource>:*` */
  readonly anyAction: string;
  /** `*:<action>` */
  readonly anyResource: string;
}
