/**
 * The form of a setup file: tenants with their roles, policies, issuers, webhooks, budgets and users, and the global policies. It has no member for
 * a secret.
 *
 * At every level, an absent member stays as it is, and has its default in a new resource. Null removes a member. So
 * several files may each state a part of the same tenant.
 */

import { type Static, type TSchema, Type } from 'typebox';
import { budget, setupScope } from '../budgets/entity.ts';
import { claimRules, issuer, leewaySeconds, ssoWithoutSecret } from '../issuers/entity.ts';
import { mode, policy } from '../policies/entity.ts';
import { role } from '../roles/entity.ts';
import { changedBy } from '../schema/entity.ts';
import { nullable } from '../schema/keywords.ts';
import { closed, description, roleNames } from '../schema/schemas.ts';
import { quotasChanges, settingsChanges, tenant, tenantStatus } from '../tenants/entity.ts';
import { user } from '../users/entity.ts';
import { webhook } from '../webhooks/entity.ts';

/** The only version of the form. */
export const SETUP_VERSION = 1;

const removable = <S extends TSchema>(schema: S) => Type.Optional(nullable(schema));
const listOf = <S extends TSchema>(schema: S) => Type.Optional(Type.Unsafe<readonly Static<S>[]>(Type.Array(schema)));

export const roleDocument = Type.Object(
  { name: role.name.accepts, ...changedBy(role), description: removable(description) },
  closed,
);
export type RoleDocument = Static<typeof roleDocument>;

const { global: _global, ...policyMembers } = changedBy(policy);
export const policyDocument = Type.Object(
  {
    name: policy.name.accepts,
    ...policyMembers,
    description: removable(description),
    attached_roles: removable(roleNames),
    mode: removable(mode),
  },
  closed,
);
export type PolicyDocument = Static<typeof policyDocument>;

/** No file states which tokens of issuers act as a user. */
const { identities: _identities, ...userMembers } = changedBy(user);

const { name: _issuerName, sso: _sso, ...issuerMembers } = changedBy(issuer);
export const issuerDocument = Type.Object(
  {
    name: issuer.name.accepts,
    kind: issuer.kind.accepts,
    ...issuerMembers,
    algorithms: removable(issuerMembers.algorithms),
    required_claims: removable(claimRules),
    leeway_seconds: removable(leewaySeconds),
    sso: Type.Optional(ssoWithoutSecret),
  },
  closed,
);
export type IssuerDocument = Static<typeof issuerDocument>;

const { name: _budgetName, ...budgetMembers } = changedBy(budget);
/** A budget, which names users by email address. */
const budgetDocument = Type.Object(
  {
    name: budget.name.accepts,
    ...budgetMembers,
    applies_to: Type.Optional(setupScope),
    alerts: removable(budgetMembers.alerts),
  },
  closed,
);
export type BudgetDocument = Static<typeof budgetDocument>;

const { url: _url, ...webhookMembers } = changedBy(webhook);
/** A webhook without its secret. */
const webhookDocument = Type.Object({ url: webhook.url.accepts, ...webhookMembers }, closed);
export type WebhookDocument = Static<typeof webhookDocument>;

/** A local user. */
export const userDocument = Type.Object(
  {
    ...userMembers,
    email: user.email.accepts,
    roles: removable(roleNames),
    status: Type.Optional(user.status.shows),
  },
  closed,
);
export type UserDocument = Static<typeof userDocument>;

export const tenantDocument = Type.Object(
  {
    id: tenant.id.accepts,
    ...changedBy(tenant),
    status: Type.Optional(tenantStatus),
    settings: removable(settingsChanges),
    quotas: removable(quotasChanges),
    roles: listOf(roleDocument),
    policies: listOf(policyDocument),
    issuers: listOf(issuerDocument),
    webhooks: listOf(webhookDocument),
    budgets: listOf(budgetDocument),
    users: listOf(userDocument),
  },
  closed,
);
export type TenantDocument = Static<typeof tenantDocument>;

export const SETUP_SCHEMA = Type.Object(
  {
    version: Type.Unsafe<typeof SETUP_VERSION>({ type: 'integer', enum: [SETUP_VERSION] }),
    global_policies: listOf(policyDocument),
    tenants: listOf(tenantDocument),
  },
  closed,
);
export type SetupDocument = Static<typeof SETUP_SCHEMA>;
