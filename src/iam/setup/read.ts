/** Reads a document whose form is valid, by the rules of the API. Reports all errors. */

import {
  parseConditions,
  parseConstraints,
  type ValidationResult,
  validatePatterns,
  validateResourcePatterns,
} from '../../decision/validate.ts';
import {
  DEFAULT_TENANT,
  parseBudgetName,
  parseIssuerName,
  parsePolicyName,
  parseRoleName,
  parseTenantId,
  type RoleName,
  type TenantId,
} from '../../domain/ids.ts';
import type { FieldError } from '../../domain/problem-details.ts';
import { isBuiltinRole } from '../../domain/roles.ts';
import { BUDGET_NAME_FORM, NAME_FORM } from '../caller/refusals.ts';
import { EVERYONE_WITHOUT_ROLES } from '../policies/rules.ts';
import { rateLimitErrors, storedRateLimits } from '../schema/rate-limits.ts';
import { settingsErrors } from '../tenants/entity.ts';
import { canonicalEmail } from '../users/checks.ts';
import { eventErrors } from '../webhooks/values.ts';
import { BUDGET_MEMBERS, canonicalLimit, canonicalSetupScope, type WantedBudget } from './budgets.ts';
import type {
  BudgetDocument,
  IssuerDocument,
  PolicyDocument,
  RoleDocument,
  SetupDocument,
  TenantDocument,
  UserDocument,
  WebhookDocument,
} from './document.ts';
import type { WantedIssuer } from './issuers.ts';
import { withoutNulls } from './members.ts';
import { POLICY_MEMBERS, ROLE_MEMBERS, type WantedPolicy, type WantedRole } from './rules.ts';
import type { WantedTenant } from './tenants.ts';
import { USER_MEMBERS, type WantedUser } from './users.ts';
import type { WantedWebhook } from './webhooks.ts';

/** A setup without errors: all names are valid, all patterns and conditions compile, and no resource appears twice. */
export interface Setup {
  readonly tenants: readonly WantedTenant[];
  /** False if the document has no list of tenants. */
  readonly listsTenants: boolean;
  /** Undefined: the document does not state the global policies. */
  readonly globalPolicies: readonly WantedPolicy[] | undefined;
}

/** An error at a JSON pointer into the document. */
export interface SetupError extends FieldError {
  /** A pointer to another place that the error concerns. */
  readonly also?: string;
}

type ReadSetup =
  | { readonly kind: 'setup'; readonly setup: Setup }
  | { readonly kind: 'errors'; readonly errors: readonly SetupError[] };

export const NO_SUCH_ROLE = 'This role does not exist in the tenant.';

const TENANT_FORM =
  'A tenant id must be 1 to 63 lowercase letters, digits or hyphens, and must start with a letter or digit.';

export function readSetup(document: SetupDocument): ReadSetup {
  return read([{ document, at: '' }]);
}

/**
 * Reads several documents as one setup. A later document may add users to a tenant of an earlier one, and nothing else.
 * @returns errors whose paths begin with the number of the document: `/0/tenants/1`
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
      const before = tenant && tenants.get(tenant.key);
      if (tenant === undefined) continue;
      const users = before?.users === undefined ? tenant.users : [...before.users, ...(tenant.users ?? [])];
      tenants.set(tenant.key, { ...(before ?? tenant), users });
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

/** Reads the resources of the documents, and collects the errors. It leaves out a resource whose name is not valid. */
class Reader {
  readonly errors: SetupError[] = [];
  /** The first place of each resource. */
  readonly #places = new Map<string, string>();

  globalPolicies(document: SetupDocument, at: string): readonly WantedPolicy[] {
    return (document.global_policies ?? []).flatMap((policy, i) =>
      this.policy(policy, `${at}/global_policies/${i}`, undefined),
    );
  }

  /** @param named the tenants of earlier documents. @returns undefined if the id is not valid */
  tenant(document: TenantDocument, at: string, named: ReadonlySet<TenantId>): WantedTenant | undefined {
    const id = parseTenantId(document.id);
    if (id === undefined) {
      this.#report(`${at}/id`, TENANT_FORM);
      return undefined;
    }
    const { roles, policies, issuers, webhooks, budgets, users, metadata, ...members } = document;
    const addsUsers = named.has(id) && Object.keys(document).every((member) => member === 'id' || member === 'users');
    if (!addsUsers) this.#once(`tenant ${id}`, `${at}/id`, 'This tenant');
    if (id === DEFAULT_TENANT && document.status === 'suspended') {
      this.#report(`${at}/status`, 'The first tenant cannot be suspended.');
    }
    this.#add(settingsErrors(document.settings ?? {}), at);
    return {
      ...members,
      at,
      key: id,
      metadata: metadata === null ? {} : metadata,
      roles: roles?.flatMap((role, i) => this.#role(role, `${at}/roles/${i}`, id)),
      policies: policies?.flatMap((policy, i) => this.policy(policy, `${at}/policies/${i}`, id)),
      issuers: issuers?.flatMap((issuer, i) => this.#issuer(issuer, `${at}/issuers/${i}`, id)),
      webhooks: webhooks?.map((webhook, i) => this.#webhook(webhook, `${at}/webhooks/${i}`, id)),
      budgets: budgets?.flatMap((budget, i) => this.#budget(budget, `${at}/budgets/${i}`, id)),
      users: users?.map((user, i) => this.#user(user, `${at}/users/${i}`)),
    };
  }

  /** @param tenant undefined: a global policy */
  policy(document: PolicyDocument, at: string, tenant: TenantId | undefined): readonly WantedPolicy[] {
    const key = parsePolicyName(document.name);
    if (key === undefined) return this.#report(`${at}/name`, NAME_FORM);
    const { name: _name, conditions, attached_roles: roles, ...members } = withoutNulls(POLICY_MEMBERS, document);
    this.#policyOnce(key, `${at}/name`, tenant);
    this.#add(validatePatterns(members.actions ?? [], `${at}/actions`));
    this.#add(validateResourcePatterns(members.resources ?? [], `${at}/resources`));
    if (members.applies_to === 'everyone' && roles !== undefined && roles.length > 0) {
      this.#report(`${at}/attached_roles`, EVERYONE_WITHOUT_ROLES);
    }
    return [
      {
        ...members,
        at,
        key,
        conditions: conditions === undefined ? undefined : this.#valid(parseConditions(conditions, `${at}/conditions`)),
        attached_roles: roles && this.#roleNames(roles, `${at}/attached_roles`, tenant === undefined),
      },
    ];
  }

  #role(document: RoleDocument, at: string, tenant: TenantId): readonly WantedRole[] {
    const key = parseRoleName(document.name);
    if (key === undefined) return this.#report(`${at}/name`, NAME_FORM);
    const { name: _name, resource_constraints: constraints, ...members } = withoutNulls(ROLE_MEMBERS, document);
    if (isBuiltinRole(key)) {
      this.#report(`${at}/name`, 'Built-in roles cannot be created or changed. Remove this role from the file.');
    }
    this.#once(`role ${tenant} ${key}`, `${at}/name`, 'This role');
    this.#add(validatePatterns(members.permissions ?? [], `${at}/permissions`));
    const resource_constraints =
      constraints === undefined ? undefined : this.#valid(parseConstraints(constraints, `${at}/resource_constraints`));
    return [{ ...members, at, key, resource_constraints }];
  }

  /** The values are read with those that are stored, when the setup is planned. */
  #issuer(document: IssuerDocument, at: string, tenant: TenantId): readonly WantedIssuer[] {
    const key = parseIssuerName(document.name);
    if (key === undefined) return this.#report(`${at}/name`, NAME_FORM);
    this.#once(`issuer ${tenant} ${key}`, `${at}/name`, 'An issuer with this name');
    return [{ at, key, document }];
  }

  #budget(document: BudgetDocument, at: string, tenant: TenantId): readonly WantedBudget[] {
    const key = parseBudgetName(document.name);
    if (key === undefined) return this.#report(`${at}/name`, BUDGET_NAME_FORM);
    this.#once(`budget ${tenant} ${key}`, `${at}/name`, 'A budget with this name');
    const { name: _name, limit, applies_to: scope, ...members } = withoutNulls(BUDGET_MEMBERS, document);
    return [
      {
        ...members,
        at,
        key,
        limit: limit === undefined ? undefined : canonicalLimit(limit),
        applies_to: scope && canonicalSetupScope(scope),
      },
    ];
  }

  #webhook({ url, events, ...members }: WebhookDocument, at: string, tenant: TenantId): WantedWebhook {
    this.#once(`webhook ${tenant} ${url}`, `${at}/url`, 'A webhook with this URL');
    this.#add(eventErrors(events ?? [], `${at}/events`));
    return { ...members, at, key: url, events: events && [...new Set(events)] };
  }

  #user(document: UserDocument, at: string): WantedUser {
    const { email, roles, rate_limits: rates, ...members } = withoutNulls(USER_MEMBERS, document);
    const key = canonicalEmail(email);
    this.#once(`user ${key}`, `${at}/email`, 'A user with this email address');
    this.#add(rateLimitErrors(rates, `${at}/rate_limits`));
    return {
      ...members,
      at,
      key,
      rate_limits: rates === undefined ? undefined : storedRateLimits(rates),
      roles: roles && this.#roleNames(roles, `${at}/roles`, false),
    };
  }

  #valid<T>(read: ValidationResult<T>): T | undefined {
    if (read.kind === 'ok') return read.value;
    this.#add(read.errors);
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

  /**
   * The names of a tenant's policies and of the global ones are unique together. The global policies are read first.
   */
  #policyOnce(name: string, at: string, tenant: TenantId | undefined): void {
    const global = this.#places.get(`policy ${name}`);
    if (tenant !== undefined && global !== undefined) {
      const message = 'A global policy already has this name. Choose another name.';
      this.errors.push({ path: at, message, also: global });
      return;
    }
    this.#once(tenant === undefined ? `policy ${name}` : `policy of ${tenant} ${name}`, at, 'A policy with this name');
  }

  #once(resource: string, at: string, subject: string): void {
    const first = this.#places.get(resource);
    if (first === undefined) this.#places.set(resource, at);
    else this.errors.push({ path: at, message: `${subject} appears twice.`, also: first });
  }

  /** Returns no resource, for readers of one. */
  #report(path: string, message: string): readonly [] {
    this.errors.push({ path, message });
    return [];
  }

  #add(errors: readonly FieldError[], at = ''): void {
    this.errors.push(...errors.map(({ path, message }) => ({ path: at + path, message })));
  }
}
