/** Creates a user. */

import type { Static } from 'typebox';
import { Fault } from '../../domain/errors.ts';
import { makeId } from '../../domain/ids.ts';
import { makeOneTimeToken } from '../../identity/opaque-tokens.ts';
import { databaseTime } from '../../store/time.ts';
import { applyingBudgets } from '../budgets/applying.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayGiveRoles } from '../caller/escalation.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { rateLimitErrors, storedRateLimits } from '../schema/rate-limits.ts';
import { canonicalEmail, knownRoles, reserveSeat, withUniqueEmail } from './checks.ts';
import { type CreatedUser, type NewUser, userResource } from './entity.ts';
import { identityChange, writeIdentities } from './identities.ts';
import { makerOf } from './maker.ts';
import { findUser, insertUser } from './queries.ts';

/** @throws Refusal `invalid_field`, `escalation`, `already_exists`, `quota_exceeded` */
export async function createUser(
  parts: AdminParts,
  caller: Caller,
  request: Omit<NewUser, 'tenant_id'>,
): Promise<Static<typeof CreatedUser>> {
  const email = canonicalEmail(request.email);
  const { name, department = null, password } = request;
  throwIfInvalid(rateLimitErrors(request.rate_limits));
  const password_hash = password === undefined ? null : await hashed(parts, password, email, name);
  const setup = password === undefined ? makeOneTimeToken(parts.random) : undefined;
  const id = makeId('usr', caller.nowMs, parts.random(10));
  const entry = { action: 'user.create', target: { type: 'user', id } } as const;
  const resource = await change(parts, caller, entry, async ({ trx, caller, audit }) => {
    const { tenant } = caller;
    const roles = await knownRoles(trx, tenant, request.roles ?? [], '/roles');
    const at = await databaseTime(trx);
    await mayGiveRoles(trx, caller, roles);
    await reserveSeat(trx, tenant);
    const columns = {
      id,
      tenant_id: tenant,
      email,
      name,
      department,
      metadata: request.metadata ?? {},
      rate_limits: storedRateLimits(request.rate_limits ?? null),
      password_hash,
    };
    const passwordSetup = setup && { digest: setup.digest, maker: makerOf(caller) };
    await withUniqueEmail(insertUser(trx, { ...columns, roles, passwordSetup }, at));
    if (request.identities !== undefined) {
      const identities = await identityChange(trx, tenant, undefined, request.identities);
      await writeIdentities(trx, caller, id, identities);
    }
    if (roles.length > 0) await (await applyingBudgets(trx, tenant)).refuseManyOfUser(id);
    const user = await findUser(trx, tenant, id);
    if (user === undefined) throw new Fault('a new user is missing');
    audit.after = userResource(user);
    return userResource(user);
  });
  return { ...resource, ...(setup === undefined ? {} : revealOnce(caller, { password_setup_token: setup.text })) };
}

async function hashed(parts: AdminParts, password: string, email: string, name: string): Promise<string> {
  throwIfInvalid(
    parts.passwords.validate(password, { email, name }).map((message) => ({ path: '/password', message })),
  );
  return parts.passwords.hash(password);
}
