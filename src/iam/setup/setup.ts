/**
 * A set-up whose meaning has been read: every name has its form, every pattern and condition compiles, nothing is said twice. Undefined
 * members stay as they are, and have their default in what is new.
 */

import type { Conditions } from '../../decision/condition-table.ts';
import type { PolicyName, RoleName, TenantId } from '../../domain/ids.ts';
import type { Metadata, ResourceConstraints } from '../../domain/records.ts';
import type { QuotasRequest, SettingsRequest } from '../tenants/merge.ts';

/** Where a thing stands in the document: a JSON pointer, for problems that only the database shows. */
interface Placed {
  readonly at: string;
}

export interface WantedRole extends Placed {
  readonly name: RoleName;
  readonly description: string | undefined;
  readonly permissions: readonly string[] | undefined;
  readonly constraints: ResourceConstraints | undefined;
}

export interface WantedPolicy extends Placed {
  readonly name: PolicyName;
  readonly description: string | undefined;
  readonly effect: 'allow' | 'deny' | undefined;
  readonly actions: readonly string[] | undefined;
  readonly resources: readonly string[] | undefined;
  readonly conditions: Conditions | undefined;
  readonly appliesTo: 'everyone' | 'roles' | undefined;
  /** In the order of the document, without repeats; whether custom ones exist the database knows. */
  readonly attachedRoles: readonly RoleName[] | undefined;
  readonly enabled: boolean | undefined;
}

export interface WantedUser extends Placed {
  /** In lower case. */
  readonly email: string;
  readonly name: string | undefined;
  readonly department: string | null | undefined;
  readonly metadata: Metadata | undefined;
  readonly roles: readonly RoleName[] | undefined;
  readonly status: 'active' | 'deactivated' | undefined;
}

export interface WantedTenant extends Placed {
  readonly id: TenantId;
  readonly name: string | undefined;
  readonly status: 'active' | 'suspended' | undefined;
  /** Null: none, whatever there is. */
  readonly settings: SettingsRequest | null | undefined;
  readonly quotas: QuotasRequest | null | undefined;
  readonly metadata: Metadata | undefined;
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
