/** The records that the store returns and the credential cache loads: parsed, and not yet compiled for decisions. */

import type {
  BudgetId,
  IssuerId,
  IssuerName,
  KeyDigest,
  KeyId,
  PolicyName,
  RoleName,
  SessionId,
  TenantId,
  UserId,
} from './ids.ts';

/**
 * The resources that a grant covers, by kind. An absent kind is not constrained; an empty list permits none. Names are
 * exact or globs.
 */
export interface ResourceConstraints {
  readonly models?: readonly string[];
  readonly collections?: readonly string[];
  readonly agents?: readonly string[];
}

/** Pairs of text that are attached to a key, a user or a tenant. Only budgets read those of keys. */
export type Metadata = Readonly<Record<string, string>>;

export interface RoleRecord {
  readonly name: RoleName;
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
}

/** The conditions of a policy as stored. A newer version may have stored what this one cannot read. */
export type StoredConditions = Readonly<Record<string, unknown>>;

export const DAY_NAMES = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;

export interface PolicyRecord {
  readonly name: PolicyName;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: StoredConditions;
  readonly appliesTo: 'everyone' | 'roles';
  readonly attachedRoles: readonly RoleName[];
  /** True if the policy is in force. False for a report-only policy, because it has no effect. */
  readonly enabled: boolean;
  /** True for an enabled report-only policy, which is evaluated after the decision. Absent: false. */
  readonly reports?: boolean;
}

/**
 * A limit of requests that name a model which one of the globs matches. For each dimension, the rule with the most
 * specific matching glob counts.
 */
export interface RateLimitRule {
  readonly models: readonly string[];
  readonly requests_per_minute?: number;
  readonly tokens_per_minute?: number;
  /** Requests that may run at the same time. */
  readonly parallel?: number;
}

export const BUDGET_UNITS = ['money', 'tokens', 'requests'] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];

export const BUDGET_PERIODS = ['hour', 'day', 'week', 'month', 'total'] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/**
 * The callers whose requests count in a budget. Those of `users` and `roles` are these users and the keys that they
 * own. A key has the `metadata` if it has all of its pairs.
 */
export type BudgetScope =
  | { readonly tenant: true }
  | { readonly keys: readonly KeyId[] }
  | { readonly users: readonly UserId[] }
  | { readonly roles: readonly RoleName[] }
  | { readonly metadata: Metadata };

export interface BudgetRecord {
  readonly id: BudgetId;
  readonly name: string;
  readonly unit: BudgetUnit;
  /** A safe integer: of money, in 10^-9 of the currency (see money.ts). */
  readonly limit: number;
  readonly period: BudgetPeriod;
  /** IANA name; undefined = the tenant's. */
  readonly timezone: string | undefined;
  readonly appliesTo: BudgetScope;
  /** `all`: one amount for all callers. Otherwise each key or each user has its own. */
  readonly per: 'all' | 'key' | 'user';
  /** Undefined: all models, and requests without one. */
  readonly models: readonly string[] | undefined;
  readonly action: 'block' | 'report';
  /** Grows when the budget is reset and when its unit, its period or its time zone changes: a new amount begins. */
  readonly epoch: number;
}

/** The price of the models that a glob matches. All prices are integers, in 10^-9 of the currency for 10^6 tokens. */
export interface PriceRule {
  readonly models: string;
  readonly input: number;
  readonly output: number;
  /** Undefined: that of the input. */
  readonly cachedInput: number | undefined;
  readonly cacheWrite: number | undefined;
}

/** The prices of the installation. A later list has a higher version; 0 = no list was set yet. */
export interface PriceList {
  readonly version: number;
  readonly prices: readonly PriceRule[];
}

/** Absent or null = no limit; 0 = nothing. */
export interface TenantSettings {
  readonly default_model?: string;
  readonly max_tokens_per_request?: number;
  readonly rate_limit_rpm?: number;
  readonly timezone?: string;
  readonly allow_keys_without_expiry?: boolean;
  /** True if streams of completions must request their usage. */
  readonly require_stream_usage?: boolean;
  readonly rate_limits?: readonly RateLimitRule[];
}

export interface TenantQuotas {
  readonly monthly_tokens?: number;
  readonly max_users?: number;
  readonly max_collections?: number;
}

export interface TenantRecord {
  readonly id: TenantId;
  readonly status: 'active' | 'suspended';
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly roles: readonly RoleRecord[];
  readonly policies: readonly PolicyRecord[];
  /** The enabled budgets, by name. Absent: none. */
  readonly budgets?: readonly BudgetRecord[];
}

export type DirectorySuspension =
  | 'removed'
  | 'disabled'
  | 'expired'
  | 'tenant_changed'
  | 'several_names'
  | 'several_ids';

export interface UserRecord {
  readonly id: UserId;
  readonly tenantId: TenantId;
  /** `deactivated` also for a user that a directory suspends. */
  readonly status: 'active' | 'deactivated';
  /** Assigned manually and by the directory, sorted, without repetitions. */
  readonly roles: readonly RoleName[];
  readonly rateLimits?: readonly RateLimitRule[] | undefined;
}

export interface KeyRecord {
  readonly id: KeyId;
  readonly digest: KeyDigest;
  readonly tenantId: TenantId;
  /** The owner; undefined for a key of its tenant. */
  readonly userId: UserId | undefined;
  readonly scopes: readonly string[];
  readonly constraints: ResourceConstraints;
  readonly rateLimitRpm: number | undefined;
  /** Milliseconds since the epoch; undefined = never. */
  readonly expiresAtMs: number | undefined;
  /** The end of a rotation's grace, until which the old digest works. Undefined for the key's current digest. */
  readonly graceUntilMs: number | undefined;
  readonly revoked: boolean;
  readonly disabled: boolean;
  /** The issuer whose tokens prove the key; undefined for a key with a secret. */
  readonly issuerId?: IssuerId | undefined;
  readonly rateLimits?: readonly RateLimitRule[] | undefined;
  /** Undefined: it has none. */
  readonly metadata?: Metadata | undefined;
}

export interface SessionRecord {
  readonly id: SessionId;
  /** Undefined: the session belongs to a key. */
  readonly userId: UserId | undefined;
  /** Undefined: the session belongs to a user. */
  readonly keyId: KeyId | undefined;
  /** The issuer with whose token the session began. */
  readonly issuerId: IssuerId | undefined;
  /** Permission patterns that narrow the session. Undefined: it has all permissions of its user or key. */
  readonly scope: readonly string[] | undefined;
  readonly ended: boolean;
  /** The absolute end of the session, milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/**
 * A condition on one claim of a token. A claim is a name, or a JSON pointer (RFC 6901) if it begins with `/`. It matches
 * if its value, or one element of a list, is a text that one of `in` matches: a text or a glob. A value of another JSON
 * type never matches.
 */
export interface ClaimRule {
  readonly claim: string;
  readonly in: readonly string[];
}

/** How the users of an issuer are found, created and given roles. */
export interface IssuerUsers {
  /** The claim that identifies a user for good, for example `sub`. */
  readonly subject_claim: string;
  readonly email_claim?: string;
  readonly name_claim?: string;
  /** True if the first token of a subject creates its user. */
  readonly create: boolean;
  readonly roles: readonly (ClaimRule & { readonly roles: readonly RoleName[] })[];
  readonly default_roles: readonly RoleName[];
}

/** A public key of an issuer (RFC 7517), validated when it was fetched or pasted. */
export type IssuerKey = Readonly<Record<string, unknown>>;

/** The members of an issuer by which a token is accepted. */
export interface IssuerAcceptance {
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
  /** Accepted values of `typ`; an empty text is an absent one. */
  readonly tokenTypes: readonly string[];
  readonly requiredClaims: readonly ClaimRule[];
  /** Bounds the time since `iat`. */
  readonly maxAgeSeconds: number | undefined;
  /** Seconds of tolerance for `exp`, `nbf` and `iat`. */
  readonly leewaySeconds: number;
  readonly keys: readonly IssuerKey[];
}

/**
 * The members before a change that accepts more, as they are stored. Without `keys` the change did not replace the
 * source of the keys, so the current keys count. Without `leewaySeconds`, which former versions did not store, the
 * current tolerance counts.
 */
export interface StoredEarlier extends Omit<IssuerAcceptance, 'keys' | 'leewaySeconds' | 'maxAgeSeconds'> {
  readonly maxAgeSeconds?: number;
  readonly leewaySeconds?: number;
  readonly keys?: readonly IssuerKey[];
  /** Milliseconds since the epoch: tokens with an older `iat` must be accepted by these members as well. */
  readonly untilMs: number;
}

/** An API key that a token of an issuer proves. */
export interface ProofRecord {
  readonly digest: KeyDigest;
  /** Exact, or a glob. */
  readonly subject: string;
  readonly claims: readonly ClaimRule[];
  /** Milliseconds since the epoch; undefined = never. */
  readonly expiresAtMs: number | undefined;
}

/** An issuer, with everything that its tokens are judged by. */
export interface IssuerRecord extends IssuerAcceptance {
  readonly id: IssuerId;
  readonly tenantId: TenantId;
  readonly name: IssuerName;
  readonly kind: 'oidc' | 'spiffe';
  readonly enabled: boolean;
  /** The value of `iss`. */
  readonly issuer: string;
  /** Since when it has this value and is enabled. */
  readonly valueSinceMs: number;
  /** Undefined: its tokens prove no user. */
  readonly users: IssuerUsers | undefined;
  /** Milliseconds since the epoch, as all times here: tokens with an older `iat` are refused. */
  readonly revokedBeforeMs: number | undefined;
  /** Tokens whose `iat` is before `untilMs` must be accepted by these members as well. */
  readonly earlier: (IssuerAcceptance & { readonly untilMs: number }) | undefined;
  /** Tokens with an older `iat` create no user and give no roles. */
  readonly usersSinceMs: number | undefined;
  /**
   * When the keys were last fetched; -Infinity if never. Undefined for a pasted set, which never becomes stale.
   */
  readonly keysFetchedAtMs: number | undefined;
  /** The keys that a glob on the subject proves, not revoked. */
  readonly globProofs: readonly ProofRecord[];
}

/** Longest subject of an issuer that proves anything, in characters (code points). */
export const MAX_SUBJECT_LENGTH = 512;

/** The keys and the user of one subject of an issuer. */
export interface LinkRecord {
  /** The keys with exactly this subject, not revoked. */
  readonly proofs: readonly ProofRecord[];
  /** The user that is linked to the subject. */
  readonly user: { readonly id: UserId; readonly rolesAsOfMs: number | undefined } | undefined;
}

/** The kinds of changes of the change feed. */
export const CHANGE_KINDS = [
  'key',
  'user',
  'session',
  'tenant',
  'global',
  'signing_keys',
  'issuer',
  'link',
  'prices',
  'issuer_sessions',
] as const;
export type ChangeKind = (typeof CHANGE_KINDS)[number];
