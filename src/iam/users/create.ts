/** Making a user. */

import { makeId } from '../../domain/ids.ts';
import type { Metadata } from '../../domain/records.ts';
import { makeOneTimeToken } from '../../identity/one-time.ts';
import { databaseTime } from '../../store/time.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { mayGiveRoles } from '../caller/escalation.ts';
import { throwIfInvalid } from '../caller/refusals.ts';
import { change } from '../change/change.ts';
import { revealOnce } from '../change/idempotency.ts';
import { canonicalEmail, withUniqueEmail } from './email.ts';
import { makerOf } from './maker.ts';
import { insertUser } from './queries.ts';
import { takePlace } from './quota.ts';
import { type UserResource, userResource } from './resource.ts';
import { knownRoles, sortedRoles } from './roles.ts';

export interface NewUserRequest {
  readonly email: string;
  readonly name: string;
  readonly department?: string | null;
  readonly metadata?: Metadata | null;
  readonly roles?: readonly string[];
  readonly password?: string;
}

/** With the token that lets the user set a first password, where none was given. It is shown here and never again. */
export interface CreatedUser extends UserResource {
  readonly password_setup_token?: string;
  /** In place of the token, in an answer given again. */
  readonly secret_available?: false;
}

/** What every user begins with. */
const NEW = {
  status: 'active',
  source: 'local',
  directoryStatus: null,
  emailConflict: null,
  directoryRoles: [],
  lastLoginAt: null,
  lockedUntil: null,
} as const;

/** @throws Refusal `invalid_field`, `escalation`, `already_exists`, `quota_exceeded` */
export async function createUser(parts: AdminParts, caller: Caller, request: NewUserRequest): Promise<CreatedUser> {
  const email = canonicalEmail(request.email);
  const passwordHash =
    request.password === undefined ? null : await hashed(parts, request.password, email, request.name);
  const setup = request.password === undefined ? makeOneTimeToken(parts.random) : undefined;
  const id = makeId('usr', caller.nowMs, parts.random(10));
  const user = await change(
    parts,
    caller,
    { action: 'user.create', target: { type: 'user', id } },
    async ({ trx, caller, audit }) => {
      const roles = await knownRoles(trx, caller.tenant, request.roles ?? [], '/roles');
      const at = await databaseTime(trx);
      await mayGiveRoles(trx, caller, roles);
      await takePlace(trx, caller.tenant);
      const { name, department = null } = request;
      const user = { id, tenantId: caller.tenant, email, name, department, metadata: request.metadata ?? {} };
      const passwordSetup = setup && { digest: setup.digest, maker: makerOf(caller) };
      await withUniqueEmail(insertUser(trx, { ...user, passwordHash, roles, passwordSetup }, at));
      const made = userResource({ ...user, ...NEW, roles: sortedRoles(roles), createdAt: at.date, updatedAt: at.date });
      audit.after = made;
      return made;
    },
  );
  return { ...user, ...(setup === undefined ? {} : revealOnce(caller, { password_setup_token: setup.text })) };
}

async function hashed(parts: AdminParts, password: string, email: string, name: string): Promise<string> {
  throwIfInvalid(
    parts.passwords.validate(password, { email, name }).map((message) => ({ path: '/password', message })),
  );
  return parts.passwords.hash(password);
}
