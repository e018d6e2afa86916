/**
 * A one-time token acts for its maker. When a client uses the token, the maker must still be allowed to act on the
 * user: with the policies and permissions of that moment, and with the address and the instant of the maker's own
 * request.
 */

import type { BuiltinRoles } from '../../decision/builtin-roles.ts';
import { compileGrant, compilePolicies, compileTenant } from '../../decision/compile.ts';
import type { Principal, Snapshot, TenantView } from '../../decision/model.ts';
import type { PolicySet } from '../../decision/policies.ts';
import { userWithRoles } from '../../decision/tenant.ts';
import type { ErrorCode } from '../../domain/errors.ts';
import type { RequestId, RoleName, TenantId, UserId } from '../../domain/ids.ts';
import type { Transaction } from '../../store/transaction.ts';
import { isExpired, type KeyRow } from '../api-keys/entity.ts';
import { findKey, lockKey } from '../api-keys/queries.ts';
import { authorize } from '../caller/authorize.ts';
import type { Caller } from '../caller/caller.ts';
import { mayActOnUser } from '../caller/escalation.ts';
import { heldMaker } from '../caller/hold-caller.ts';
import { refusalIn } from '../caller/refusals.ts';
import { policyRecord } from '../policies/entity.ts';
import { enabledPolicies } from '../policies/queries.ts';
import { roleRecord } from '../roles/entity.ts';
import { lockRoles } from '../roles/lock-queries.ts';
import { findRoles } from '../roles/queries.ts';
import { lockTenant } from '../tenants/queries.ts';
import { isActive, rolesOfUser, type UserRow } from './entity.ts';
import type { PasswordSetup, TokenMaker } from './password-queries.ts';
import { findUser, lockUsers } from './queries.ts';

export function makerOf({ principal, address }: Caller): TokenMaker {
  const { tenantId } = principal;
  return principal.kind === 'user'
    ? { kind: 'user', id: principal.id, tenantId, address }
    : { kind: 'api_key', id: principal.id, tenantId, address };
}

/** The reason why a maker may not act, for the audit log. A code is that of the decision that denied it. */
export type MakerRefusal =
  | 'maker_unknown'
  | 'maker_missing'
  | 'maker_deactivated'
  | 'maker_revoked'
  | 'maker_disabled'
  | 'maker_expired'
  | ErrorCode;

interface Use {
  readonly setup: PasswordSetup;
  readonly tenant: TenantId;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  readonly requestId: RequestId;
  readonly builtinRoles: BuiltinRoles;
}

/**
 * Locks the token's user and everything that the maker's permissions depend on until the transaction ends, and
 * compares them.
 * @param use the token, and the tenant of its user
 * @returns the reason to reject the token; undefined = the maker may act on the user
 */
export async function makerRefusal(trx: Transaction, use: Use): Promise<MakerRefusal | undefined> {
  const { maker, userId } = use.setup;
  const ownerId = maker?.kind === 'api_key' ? (await findKey(trx, maker.tenantId, maker.id))?.user_id : undefined;
  const makerId = maker?.kind === 'user' ? maker.id : ownerId;
  await lockUsers(trx, makerId === undefined || makerId === null ? [userId] : [userId, makerId]);
  if (maker === undefined) return 'maker_unknown';
  if (maker.kind === 'system') return undefined;
  const proved = await provedMaker(trx, maker, use.nowMs);
  if (proved.kind === 'refused') return proved.reason;
  const user = await findUser(trx, use.tenant, userId);
  return user === undefined ? 'not_found' : refusalOf(trx, use, { ...maker, principal: proved.principal }, user);
}

type Proved =
  | { readonly kind: 'proved'; readonly principal: Principal }
  | { readonly kind: 'refused'; readonly reason: MakerRefusal };

function refused(reason: MakerRefusal): Proved {
  return { kind: 'refused', reason };
}

/** The maker's principal as it is now, as the credential cache derives it from the same rows. */
async function provedMaker(
  trx: Transaction,
  maker: Exclude<TokenMaker, { kind: 'system' }>,
  nowMs: number,
): Promise<Proved> {
  const { tenantId } = maker;
  if (maker.kind === 'user') {
    const user = await findUser(trx, tenantId, maker.id);
    if (user === undefined) return refused('maker_missing');
    if (!isActive(user)) return refused('maker_deactivated');
    return { kind: 'proved', principal: userWithRoles(user.id, tenantId, rolesOfUser(user)) };
  }
  const key = await lockKey(trx, tenantId, maker.id, 'share');
  if (key === undefined) return refused('maker_missing');
  if (key.revoked_at !== null) return refused('maker_revoked');
  if (key.disabled_at !== null) return refused('maker_disabled');
  if (isExpired(key, nowMs)) return refused('maker_expired');
  if (key.user_id === null) return { kind: 'proved', principal: keyPrincipal(key, undefined) };
  const owner = await findUser(trx, tenantId, key.user_id);
  if (owner === undefined) return refused('maker_missing');
  if (!isActive(owner)) return refused('maker_deactivated');
  return { kind: 'proved', principal: keyPrincipal(key, { id: owner.id, roles: rolesOfUser(owner) }) };
}

function keyPrincipal(key: KeyRow, owner: { id: UserId; roles: readonly RoleName[] } | undefined): Principal {
  const { id, tenant_id: tenantId, scopes, resource_constraints: constraints } = key;
  return { kind: 'api_key', id, tenantId, grant: compileGrant(scopes, constraints), owner, rateLimitRpm: undefined };
}

async function refusalOf(
  trx: Transaction,
  { setup, tenant, requestId, builtinRoles }: Use,
  { principal, address }: { readonly principal: Principal; readonly address: string | undefined },
  user: UserRow,
): Promise<MakerRefusal | undefined> {
  const snapshot: Snapshot = { ...(await lockedTenants(trx, principal, user)), builtinRoles };
  const caller = heldMaker({
    ...{ principal, snapshot, tenant, everyTenant: false, address, requestId, nowMs: setup.madeAtMs },
    ...{ keyDigest: undefined, access: 'admin:users' },
  });
  const refusal = await refusalIn(() => {
    authorize(caller, 'admin:users');
    return mayActOnUser(trx, caller, user);
  });
  return refusal?.code;
}

/**
 * Locks tenants and roles against changes. If the maker belongs to another tenant, only the status of the user's tenant
 * counts.
 */
async function lockedTenants(
  trx: Transaction,
  principal: Principal,
  user: UserRow,
): Promise<Omit<Snapshot, 'builtinRoles'>> {
  const roles = principal.kind === 'user' ? principal.roles : (principal.owner?.roles ?? []);
  if (principal.tenantId === user.tenant_id) {
    const { view, global } = await lockedView(trx, user.tenant_id, [...roles, ...rolesOfUser(user)]);
    return { own: view, effective: view, global };
  }
  const own = await lockedView(trx, principal.tenantId, roles);
  const effective = await lockedView(trx, user.tenant_id, rolesOfUser(user));
  return { own: own.view, effective: effective.view, global: own.global };
}

interface LockedView {
  /** Undefined = there is no such tenant. */
  readonly view: TenantView | undefined;
  readonly global: PolicySet;
}

async function lockedView(trx: Transaction, id: TenantId, names: readonly RoleName[]): Promise<LockedView> {
  const tenant = await lockTenant(trx, id, 'share');
  await lockRoles(trx, id, names, 'share');
  const roles = (await findRoles(trx, id, names)).map(roleRecord);
  const stored = await enabledPolicies(trx, id);
  const policies = stored.filter((policy) => policy.tenant_id !== null).map(policyRecord);
  const global = compilePolicies(stored.filter((policy) => policy.tenant_id === null).map(policyRecord));
  return { view: tenant && compileTenant({ ...tenant, roles, policies }), global };
}
