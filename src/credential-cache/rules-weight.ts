/**
 * Estimates the memory of compiled rules from their records. The factors were measured (bench/micro/rules.ts) on rules
 * of many shapes. The estimate is rather too large than too small.
 */

import { conditionOf, ENTRY_BYTES } from '../decision/condition-table.ts';
import type {
  BudgetRecord,
  PolicyRecord,
  RateLimitRule,
  ResourceConstraints,
  RoleRecord,
  StoredConditions,
  TenantRecord,
} from '../domain/records.ts';
import type { Steps } from '../domain/steps.ts';

const TENANT_BYTES = 2048;
const ROLE_BYTES = 640;
const POLICY_BYTES = 1024;
const BUDGET_BYTES = 768;
const RATE_RULE_BYTES = 256;
/** One text in a list and in a set, without its characters. */
const TEXT_BYTES = 112;
/** One star of a glob: the literal piece behind it. */
const STAR_BYTES = 64;
const STAR = '*'.charCodeAt(0);

function bytesOfTexts(texts: readonly string[] | undefined): number {
  let bytes = 0;
  for (const text of texts ?? []) {
    bytes += TEXT_BYTES + 2 * text.length;
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === STAR) bytes += STAR_BYTES;
  }
  return bytes;
}

function bytesOfConstraints({ models, collections, agents }: ResourceConstraints): number {
  return bytesOfTexts(models) + bytesOfTexts(collections) + bytesOfTexts(agents);
}

function bytesOfRole({ permissions, constraints }: RoleRecord): number {
  return ROLE_BYTES + bytesOfTexts(permissions) + bytesOfConstraints(constraints);
}

/** Returns the bytes of one operator's list. A condition that this version cannot read is kept as its text. */
function bytesOfOperand(key: string, operand: unknown): number {
  if (!Array.isArray(operand)) return 0;
  const texts = operand.filter((entry) => typeof entry === 'string');
  return conditionOf(key)?.bytes(texts) ?? ENTRY_BYTES * texts.length;
}

function bytesOfConditions(conditions: StoredConditions): number {
  let bytes = 0;
  for (const [key, condition] of Object.entries(conditions)) {
    if (typeof condition !== 'object' || condition === null) continue;
    for (const operand of Object.values(condition)) bytes += bytesOfOperand(key, operand);
  }
  return bytes;
}

function bytesOfPolicy({ actions, resources, conditions, attachedRoles }: PolicyRecord): number {
  return (
    POLICY_BYTES +
    bytesOfTexts(actions) +
    bytesOfTexts(resources) +
    bytesOfTexts(attachedRoles) +
    bytesOfConditions(conditions)
  );
}

/** Estimates the bytes of compiled policies, one policy for each step. */
export function* weightOfPolicies(policies: readonly PolicyRecord[]): Steps<number> {
  return yield* sumOf(policies, bytesOfPolicy);
}

/** Adds the bytes of items, one item for each step. */
function* sumOf<Item>(items: readonly Item[], bytesOf: (item: Item) => number): Steps<number> {
  let bytes = 0;
  for (const item of items) {
    bytes += bytesOf(item);
    yield;
  }
  return bytes;
}

function bytesOfBudget({ name, models, appliesTo }: BudgetRecord): number {
  const selected = Object.values(appliesTo).flatMap((value: unknown) => {
    if (Array.isArray(value)) return value.map(String);
    return typeof value === 'object' && value !== null ? Object.entries(value).flat().map(String) : [];
  });
  return BUDGET_BYTES + bytesOfTexts([name]) + bytesOfTexts(models) + bytesOfTexts(selected);
}

function bytesOfRates(rules: readonly RateLimitRule[] = []): number {
  return rules.reduce((bytes, { models }) => bytes + RATE_RULE_BYTES + bytesOfTexts(models), 0);
}

/** Estimates the bytes of a compiled tenant, one role, policy or budget for each step. */
export function* weightOfTenant({ roles, policies, budgets = [], settings }: TenantRecord): Steps<number> {
  const ofBudgets = yield* sumOf(budgets, bytesOfBudget);
  const ofRoles = yield* sumOf(roles, bytesOfRole);
  const ofPolicies = yield* weightOfPolicies(policies);
  return TENANT_BYTES + bytesOfRates(settings.rate_limits) + ofBudgets + ofRoles + ofPolicies;
}
