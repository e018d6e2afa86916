/** The refusals that several use cases share. */

import type { ValidationResult } from '../../decision/validate.ts';
import { Refusal } from '../../domain/errors.ts';
import { type PrefixedId, parseId, type TenantId } from '../../domain/ids.ts';
import { type FieldError, fieldSentence } from '../../domain/problem-details.ts';
import { brokenConstraint } from '../../store/faults.ts';

/** Returns the same refusal for a resource that never existed, was deleted, or belongs to another tenant. */
export function notFound(what: string): Refusal {
  if (what === 'tenant') return new Refusal('not_found', 'The tenant does not exist, or you may not act in it.');
  return new Refusal('not_found', `The ${what} does not exist, or it belongs to another tenant.`);
}

/** @throws Refusal `not_found` without a value */
export function orNotFound<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(what);
  return value;
}

const NAMED = { usr: 'user', ses: 'session', iss: 'issuer', bud: 'budget', whk: 'webhook', dlv: 'delivery' } as const;

/** Returns the id of a resource. @throws Refusal `not_found` for any text that cannot be one of this kind */
export function requestedId<P extends keyof typeof NAMED>(prefix: P, text: string): PrefixedId[P] {
  return orNotFound(parseId(prefix, text), NAMED[prefix]);
}

/**
 * Returns the only resource with a name, for the operator.
 * @param all those of all tenants
 * @param tenant undefined: the name must be unique
 * @throws Refusal `not_found`; `invalid_parameter` if several tenants have one and no tenant is named
 */
export function onlyOneNamed<T extends { readonly tenant_id: TenantId | null }>(
  all: readonly T[],
  what: 'budget' | 'issuer' | 'policy',
  name: string,
  tenant: TenantId | undefined,
): T {
  const found = all.filter(({ tenant_id: owner }) => tenant === undefined || owner === null || owner === tenant);
  if (found.length > 1) {
    const tenants = found.slice(0, 10).map(({ tenant_id: owner }) => owner);
    const having = `${found.length} tenants have ${what === 'issuer' ? 'an' : 'a'} ${what} ${name}`;
    throw new Refusal('invalid_parameter', `${having} (${tenants.join(', ')}). Name one of them with --tenant.`);
  }
  return orNotFound(found[0], what);
}

/**
 * For an effective tenant that was deleted after the admission of the caller. The refusal is that of a later request.
 */
export function tenantGone(): Refusal {
  return new Refusal('tenant_mismatch', 'The tenant does not exist, or this credential may not act in it.');
}

/** Returns the error, or the refusal for a limit that the database checks in every change. */
export function refusedByStore(error: unknown): unknown {
  if (brokenConstraint(error) !== 'rules_size') return error;
  return new Refusal(
    'quota_exceeded',
    'The roles and policies of a tenant may use 1 MiB in total, and this change would exceed it. Delete or shorten some first.',
  );
}

/** The number of errors in one response. */
const MAX_SHOWN = 50;

/** @param errors at least one; the first 50 are shown */
export function invalidFields(errors: readonly FieldError[]): Refusal {
  const [first] = errors;
  const detail = first === undefined ? 'The body is not valid.' : `The body is not valid: ${fieldSentence(first)}`;
  return new Refusal('invalid_field', detail, {
    errors: errors.slice(0, MAX_SHOWN),
    ...(first === undefined ? {} : { param: first.path.slice(1) }),
  });
}

export const BUDGET_NAME_FORM =
  'A name must be 1 to 64 characters, of which one is not blank, without control and hidden characters.';
export const NAME_FORM = 'A name must be 1 to 63 lowercase letters, digits, _ or -, and must start with a letter.';

export function invalidField(path: string, message: string): Refusal {
  return invalidFields([{ path, message }]);
}

export function escalation(detail: string): Refusal {
  return new Refusal('escalation', detail);
}

/** For a request that changes something, or in which a user acts on itself, with a token of another issuer. */
export function mustExchange(): Refusal {
  return new Refusal(
    'insufficient_permission',
    'A token of another issuer may not make this request. Exchange it for an access token at POST /v1/auth/token, and send that.',
  );
}

/** @throws Refusal `invalid_field` if the validator found errors */
export function valid<T>(parsed: ValidationResult<T>): T {
  if (parsed.kind === 'errors') throw invalidFields(parsed.errors);
  return parsed.value;
}

export function throwIfInvalid(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidFields(errors);
}

/** Returns the Refusal that `work` throws, if it throws one. */
export async function refusalIn(work: () => unknown): Promise<Refusal | undefined> {
  const result = await orRefusal(work);
  return result instanceof Refusal ? result : undefined;
}

/** Returns the Refusal that `work` throws in place of its value. */
export async function orRefusal<T>(work: () => T | Promise<T>): Promise<T | Refusal> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}

export function lastAdminRefusal(): Refusal {
  return new Refusal(
    'last_admin',
    'This change would leave no active local administrator who can log in. Create another administrator first, and let that user set a password.',
  );
}
