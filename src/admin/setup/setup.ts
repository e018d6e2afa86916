/** A set-up whose meaning has been read: every name has its form, every pattern and condition compiles, nothing is said twice. */

import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { Conditions, Metadata, ResourceConstraints, TenantQuotas, TenantSettings } from '../../domain/records.ts';

/** Where a thing stands in the document: a JSON pointer, for problems that only the database shows. */
interface Placed {
  readonly at: string;
}

export interface WantedRole extends Placed {
  readonly name: RoleName;
  readonly description: string;
  readonly permissions: readonly string[];
  readonly constraints: ResourceConstraints;
}

export interface WantedPolicy extends Placed {
  readonly name: PolicyName;
  readonly description: string;
  readonly effect: 'allow' | 'deny';
  readonly actions: readonly string[];
  readonly resources: readonly string[];
  readonly conditions: Conditions;
  readonly appliesTo: 'everyone' | 'roles';
  /** In the order of the document, without repeats; whether custom ones exist the database knows. */
  readonly attachedRoles: readonly RoleName[];
  /** Undefined = as it is, enabled when it is new. */
  readonly enabled: boolean | undefined;
}

export interface WantedUser extends Placed {
  /** In lower case. */
  readonly email: string;
  readonly name: string;
  readonly department: string | null;
  readonly metadata: Metadata;
  readonly roles: readonly RoleName[];
  /** Undefined = as it is, active when it is new. */
  readonly status: 'active' | 'deactivated' | undefined;
}

export interface WantedTenant extends Placed {
  readonly id: TenantId;
  readonly name: string;
  /** Undefined = as it is, active when it is new. */
  readonly status: 'active' | 'suspended' | undefined;
  readonly settings: TenantSettings;
  readonly quotas: TenantQuotas;
  readonly metadata: Metadata;
  /** Undefined = not the file's business; so are the next two. */
  readonly roles: readonly WantedRole[] | undefined;
  readonly policies: readonly WantedPolicy[] | undefined;
  readonly users: readonly WantedUser[] | undefined;
}

export interface Setup {
  readonly tenants: readonly WantedTenant[];
  /** False where the document has no list of tenants: which there are is not its business. */
  readonly listsTenants: boolean;
  /** Undefined = not the file's business. */
  readonly globalPolicies: readonly WantedPolicy[] | undefined;
}
