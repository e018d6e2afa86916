/** Reads the meaning of a document whose form has been checked, by the same rules as the API. What is wrong is told all at once. */

import {
  parseConditions,
  parseConstraints,
  validatePatterns,
  validateResourcePatterns,
} from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import {
  DEFAULT_TENANT,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type TenantId,
} from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { audienceAfter } from '../policies/rules.ts';
import { settingsErrors } from '../tenants/merge.ts';
import { canonicalEmail } from '../users/email.ts';
import type { PolicyDocument, RoleDocument, SetupDocument, TenantDocument, UserDocument } from './document.ts';
import type { Setup, WantedPolicy, WantedRole, WantedTenant, WantedUser } from './setup.ts';

/** The path is a JSON pointer into the document. */
export interface SetupError extends FieldError {
  /** Pointer to another place that it is about. */
  readonly also?: string;
}

export type ReadSetup =
  | { readonly kind: 'setup'; readonly setup: Setup }
  | { readonly kind: 'errors'; readonly errors: readonly SetupError[] };

export const NO_SUCH_ROLE = 'This role does not exist in the tenant.';

const NAME_FORM = 'A name must be 1 to 63 lowercase letters, digits, _ or -, and must start with a letter.';
const TENANT_FORM =
  'A tenant id must be 1 to 63 lowercase letters, digits or hyphens, and must start with a letter or digit.';

export function readSetup(document: SetupDocument): ReadSetup {
  return read([{ document, at: '' }]);
}

/**
 * Several documents say one set-up. A later one may say more users of a tenant, and nothing else of a tenant that was named before it.
 * @returns with paths that begin with the number of the document: `/0/tenants/1`
 */
export function readSetups(documents: readonly SetupDocument[]): ReadSetup {
  return read(documents.map((document, i) => ({ document, at: `/${i}` })));
}

function read(documents: readonly { readonly document: SetupDocument; readonly at: string }[]): ReadSetup {
  const reader = new Reader();
  const policies = documents.flatMap(({ document, at }) => reader.globalPolicies(document, at));
  const tenants = new Map<TenantId, WantedTenant>();
  for (const { document, at } of documents) {
    const named = new Set(tenants.keys());
    for (const [i, each] of (document.tenants ?? []).entries()) {
      const tenant = reader.tenant(each, `${at}/tenants/${i}`, named);
      const before = tenant && tenants.get(tenant.id);
      if (tenant === undefined) continue;
      const users = before?.users === undefined ? tenant.users : [...before.users, ...(tenant.users ?? [])];
      tenants.set(tenant.id, { ...(before ?? tenant), users });
    }
  }
  const { errors } = reader;
  if (errors.length > 0) return { kind: 'errors', errors };
  const setup = {
    tenants: [...tenants.values()],
    listsTenants: documents.some(({ document }) => document.tenants !== undefined),
    globalPolicies: documents.some(({ document }) => document.global_policies !== undefined) ? policies : undefined,
  };
  return { kind: 'setup', setup };
}

/** Reads things one by one and remembers what is wrong with them, and what has been named. A thing with a name of no form is left out. */
class Reader {
  readonly errors: SetupError[] = [];
  readonly #named = new Map<string, string>();

  globalPolicies(document: SetupDocument, at: string): readonly WantedPolicy[] {
    return (document.global_policies ?? []).flatMap((policy, i) =>
      this.policy(policy, `${at}/global_policies/${i}`, undefined),
    );
  }

  /** @param named the tenants of earlier documents. Undefined when its id has no form */
  tenant(document: TenantDocument, at: string, named: ReadonlySet<TenantId>): WantedTenant | undefined {
    const id = parseTenantId(document.id);
    if (id === undefined) {
      this.#report(`${at}/id`, TENANT_FORM);
      return undefined;
    }
    const addsUsers = named.has(id) && Object.keys(document).every((member) => member === 'id' || member === 'users');
    if (!addsUsers) this.#once(`tenant ${id}`, `${at}/id`, 'This tenant');
    if (id === DEFAULT_TENANT && document.status === 'suspended') {
      this.#report(`${at}/status`, 'The first tenant cannot be suspended.');
    }
    this.#take(at, settingsErrors(document.settings ?? {}));
    return {
      at,
      id,
      name: document.name,
      status: document.status,
      settings: document.settings,
      quotas: document.quotas,
      metadata: emptied(document.metadata, {}),
      roles: document.roles?.flatMap((role, i) => this.#role(role, `${at}/roles/${i}`, id)),
      policies: document.policies?.flatMap((policy, i) => this.policy(policy, `${at}/policies/${i}`, id)),
      users: document.users?.map((user, i) => this.#user(user, `${at}/users/${i}`)),
    };
  }

  /** @param tenant undefined = global */
  policy(document: PolicyDocument, at: string, tenant: TenantId | undefined): readonly WantedPolicy[] {
    const name = parsePolicyName(document.name);
    if (name === undefined) {
      this.#report(`${at}/name`, NAME_FORM);
      return [];
    }
    this.#policyOnce(name, `${at}/name`, tenant);
    this.#take('', validatePatterns(document.actions ?? [], `${at}/actions`));
    this.#take('', validateResourcePatterns(document.resources ?? [], `${at}/resources`));
    const roles = emptied(document.attached_roles, []);
    this.#checkAudience(document.applies_to, roles, at);
    return [
      {
        at,
        name,
        description: emptied(document.description, ''),
        effect: document.effect,
        actions: document.actions,
        resources: document.resources,
        conditions:
          document.conditions === undefined
            ? undefined
            : this.#parsed(parseConditions(document.conditions, `${at}/conditions`)),
        appliesTo: document.applies_to,
        attachedRoles: roles && this.#roleNames(roles, `${at}/attached_roles`, tenant === undefined),
        enabled: document.enabled,
      },
    ];
  }

  #role(document: RoleDocument, at: string, tenant: TenantId): readonly WantedRole[] {
    const name = parseRoleName(document.name);
    if (name === undefined) {
      this.#report(`${at}/name`, NAME_FORM);
      return [];
    }
    if (isBuiltinRole(name))
      this.#report(`${at}/name`, 'Built-in roles cannot be created or changed. Remove this role from the file.');
    this.#once(`role ${tenant} ${name}`, `${at}/name`, 'This role');
    this.#take('', validatePatterns(document.permissions ?? [], `${at}/permissions`));
    const { resource_constraints: constraints } = document;
    return [
      {
        at,
        name,
        description: emptied(document.description, ''),
        permissions: document.permissions,
        constraints:
          constraints === undefined
            ? undefined
            : this.#parsed(parseConstraints(constraints, `${at}/resource_constraints`)),
      },
    ];
  }

  #user(document: UserDocument, at: string): WantedUser {
    const email = canonicalEmail(document.email);
    this.#once(`user ${email}`, `${at}/email`, 'A user with this email address');
    return {
      at,
      email,
      name: document.name,
      department: document.department,
      metadata: emptied(document.metadata, {}),
      roles: document.roles === undefined ? undefined : this.#roleNames(document.roles ?? [], `${at}/roles`, false),
      status: document.status,
    };
  }

  /** `everyone` leaves no role attached. */
  #checkAudience(appliesTo: 'everyone' | 'roles' | undefined, roles: readonly string[] | undefined, at: string): void {
    try {
      audienceAfter({ appliesTo: 'roles', roles: [] }, appliesTo, roles);
    } catch (error) {
      if (!(error instanceof Refusal) || error.extras.errors === undefined) throw error;
      this.#take(at, error.extras.errors);
    }
  }

  /** Of what is wrong, the errors are remembered and nothing is taken. */
  #parsed<T>(
    read:
      | { readonly kind: 'ok'; readonly value: T }
      | { readonly kind: 'errors'; readonly errors: readonly FieldError[] },
  ): T | undefined {
    if (read.kind === 'ok') return read.value;
    this.#take('', read.errors);
    return undefined;
  }

  #roleNames(names: readonly string[], at: string, builtinOnly: boolean): readonly RoleName[] {
    const read = names.flatMap((text, i) => {
      const name = parseRoleName(text);
      if (name === undefined) this.#report(`${at}/${i}`, NO_SUCH_ROLE);
      else if (builtinOnly && !isBuiltinRole(name)) {
        this.#report(`${at}/${i}`, 'Only built-in roles may be attached to a global policy.');
      }
      return name === undefined ? [] : [name];
    });
    return [...new Set(read)];
  }

  /** A name is one policy's across a tenant's own and the global ones, which are read first. */
  #policyOnce(name: string, at: string, tenant: TenantId | undefined): void {
    const global = this.#named.get(`policy ${name}`);
    if (tenant !== undefined && global !== undefined) {
      this.errors.push({
        path: at,
        message: 'A global policy already has this name. Choose another name.',
        also: global,
      });
      return;
    }
    this.#once(tenant === undefined ? `policy ${name}` : `policy of ${tenant} ${name}`, at, 'A policy with this name');
  }

  #once(key: string, at: string, what: string): void {
    const before = this.#named.get(key);
    if (before === undefined) this.#named.set(key, at);
    else this.errors.push({ path: at, message: `${what} appears twice.`, also: before });
  }

  #report(path: string, message: string): void {
    this.errors.push({ path, message });
  }

  #take(at: string, errors: readonly FieldError[]): void {
    this.errors.push(...errors.map(({ path, message }) => ({ path: at + path, message })));
  }
}

/** Null removes: it stands for the empty value. */
function emptied<T>(value: T | null | undefined, empty: T): T | undefined {
  return value === null ? empty : value;
}
