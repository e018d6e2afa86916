/** The records that the store returns and the credential cache loads: parsed, and not yet compiled for decisions. */

import type { KeyDigest, KeyId, PolicyName, RoleName, SessionId, TenantId, UserId } from './ids.ts';

/**
 * The resources that a grant covers, by kind. An absent kind is not constrained; an empty list permits none. Names are
 * exact or globs.
 */
export interface ResourceConstraints {
  readonly models?: readonly string[];
  readonly collections?: readonly string[];
  readonly agents?: readonly string[];
}

/** Pairs of text that are attached to a key, a user or a tenant. No decision reads them. */
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
  readonly enabled: boolean;
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
}

/** Why a directory suspends one of its users. */
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
}

export interface SessionRecord {
  readonly id: SessionId;
  readonly userId: UserId;
  readonly ended: boolean;
  /** The absolute end of the session, milliseconds since the epoch. */
  readonly expiresAtMs: number;
}
