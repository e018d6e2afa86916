/**
 * A set-up as a file says it: tenants with their roles, policies and users, and the global policies. No secret has a place in it.
 *
 * One rule for what is absent: a list that is absent is not the file's business; any other absent member has its default, but for
 * `status` and `enabled`, which stay as they are, so that what was switched off in an emergency is not switched on by the next run.
 */

import type { Metadata } from '../../domain/records.ts';
import type { NewPolicyRequest } from '../policies/create.ts';
import type { NewRoleRequest } from '../roles/create.ts';
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
  readonly name: string;
  readonly status?: 'active' | 'suspended';
  readonly settings?: SettingsRequest;
  readonly quotas?: QuotasRequest;
  readonly metadata?: Metadata | null;
  readonly roles?: readonly RoleDocument[];
  readonly policies?: readonly PolicyDocument[];
  readonly users?: readonly UserDocument[];
}

export type RoleDocument = NewRoleRequest;

export type PolicyDocument = Omit<NewPolicyRequest, 'global'>;

/** A local user, known by the e-mail address. */
export interface UserDocument {
  readonly email: string;
  readonly name: string;
  readonly department?: string | null;
  readonly metadata?: Metadata | null;
  readonly roles?: readonly string[];
  readonly status?: 'active' | 'deactivated';
}
