/**
 * A set-up as a file says it: tenants with their roles, policies and users, and the global policies. No secret has a place in it.
 *
 * One rule for what is absent, at every level: it stays as it is, and has its default in what is new. Null removes. So several files may
 * each say a part of the same tenant.
 */

import type { Metadata } from '../../domain/records.ts';
import type { QuotasRequest, SettingsRequest } from '../tenants/merge.ts';

/** The one version of the form that there is. */
export const SETUP_VERSION = 1;

export interface SetupDocument {
  readonly version: typeof SETUP_VERSION;
  readonly global_policies?: readonly PolicyDocument[];
  readonly tenants?: readonly TenantDocument[];
}

export interface TenantDocument {
  readonly id: string;
  /** A new tenant's default is its id. */
  readonly name?: string;
  readonly status?: 'active' | 'suspended';
  readonly settings?: SettingsRequest | null;
  readonly quotas?: QuotasRequest | null;
  readonly metadata?: Metadata | null;
  readonly roles?: readonly RoleDocument[];
  readonly policies?: readonly PolicyDocument[];
  readonly users?: readonly UserDocument[];
}

export interface RoleDocument {
  readonly name: string;
  readonly description?: string | null;
  /** A new role needs it. */
  readonly permissions?: readonly string[];
  readonly resource_constraints?: unknown;
}

export interface PolicyDocument {
  readonly name: string;
  readonly description?: string | null;
  /** A new policy needs this member and the next two. */
  readonly effect?: 'allow' | 'deny';
  readonly actions?: readonly string[];
  readonly resources?: readonly string[];
  /** Any object or null; checked when it is read. */
  readonly conditions?: unknown;
  readonly applies_to?: 'everyone' | 'roles';
  readonly attached_roles?: readonly string[] | null;
  readonly enabled?: boolean;
}

/** A local user, known by the e-mail address. */
export interface UserDocument {
  readonly email: string;
  /** A new user needs it. */
  readonly name?: string;
  readonly department?: string | null;
  readonly metadata?: Metadata | null;
  readonly roles?: readonly string[] | null;
  readonly status?: 'active' | 'deactivated';
}
