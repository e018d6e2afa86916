/** Creates the first administrator, and gives an administrator a new password for an operator without one. */

import { Refusal } from '../../domain/errors.ts';
import { DEFAULT_TENANT, makeId, type TenantId } from '../../domain/ids.ts';
import { passwordProblems } from '../../identity/password-rules.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import { transaction } from '../../store/transaction.ts';
import { emailSubject } from '../auth/login.ts';
import { forgetAccount } from '../auth/throttle.ts';
import type { AdminParts } from '../caller/caller.ts';
import { endSessions } from '../sessions/queries.ts';
import {
  ensureDefaultTenant,
  hasLocalAdministrator,
  holdsAdminRole,
  holdUserByEmail,
  insertFirstUser,
  localAdministrators,
  lockAdministrators,
  raiseToAdministrator,
  type UserToRaise,
} from './administrator-queries.ts';
import { discardPasswordSetups } from './password-queries.ts';

export type BootstrapParts = Pick<AdminParts, 'db' | 'passwords' | 'now' | 'random'>;

interface AdministratorSettings {
  /** `bootstrap.email` */
  readonly email: string;
  /** `bootstrap.password`; undefined = the server generates one. */
  readonly password: string | undefined;
}

interface MadeAdministrator {
  readonly email: string;
  /** The generated password, which is printed once and never stored; undefined if the settings have one. */
  readonly madePassword: string | undefined;
}

interface ResetAdministrator extends MadeAdministrator {
  /** The tenant that the administrator belongs to. */
  readonly tenantId: TenantId;
}

export type BootstrapOutcome = { readonly kind: 'present' } | ({ readonly kind: 'made' } & MadeAdministrator);

/**
 * Creates the tenant `default`, and the first administrator unless an active local one exists. If several servers start
 * at once, one of them creates it.
 * @throws Refusal `invalid_field` for a password that the rules reject; Fault if the store is unreachable
 */
export async function bootstrap(parts: BootstrapParts, settings: AdministratorSettings): Promise<BootstrapOutcome> {
  const present = await transaction(parts.db, async (trx) => {
    await ensureDefaultTenant(trx);
    return await hasLocalAdministrator(trx);
  });
  if (present) return { kind: 'present' };
  const { made, email, hash } = await prepare(parts, settings);
  return await transaction(parts.db, async (trx) => {
    await lockAdministrators(trx);
    if (await hasLocalAdministrator(trx)) return { kind: 'present' };
    await raise(parts, trx, email, hash, 'user.bootstrap');
    return { kind: 'made', email, madePassword: made };
  });
}

interface ResetSettings extends AdministratorSettings {
  /** True if the operator named the address; otherwise it is the configured one. */
  readonly isNamed: boolean;
  /**
   * Creates an administrator if the address has none: a new user of the tenant `default`, or an existing user that gets
   * the role.
   */
  readonly create: boolean;
}

/**
 * Gives an administrator a new password, and ends its sessions. For the operator of the server: there is no caller.
 * @throws Refusal `not_found` when there is no such administrator and none is to be made; `invalid_field` when the
 *   given password is refused; `already_exists` when the user could not log in with it, because it belongs to a
 *   directory, is deactivated, or its tenant is suspended. Then nothing has changed.
 */
export async function resetAdmin(parts: BootstrapParts, settings: ResetSettings): Promise<ResetAdministrator> {
  const { made, email: wanted, hash } = await prepare(parts, settings);
  return transaction(parts.db, async (trx) => {
    await lockAdministrators(trx);
    await ensureDefaultTenant(trx);
    const email = settings.create ? wanted : await existingAdministrator(trx, wanted, settings.isNamed);
    const tenantId = await raise(parts, trx, email, hash, 'user.reset_admin');
    return { email, tenantId, madePassword: made };
  });
}

/** Addresses that a refusal lists. */
const MAX_LISTED = 10;

async function existingAdministrator(trx: Queryable, wanted: string, isNamed: boolean): Promise<string> {
  if (await holdsAdminRole(trx, wanted)) return wanted;
  const emails = (await localAdministrators(trx)).flatMap(({ email, tenantActive }) =>
    tenantActive && email !== null ? [email] : [],
  );
  const [only] = emails;
  if (!isNamed && only !== undefined && emails.length === 1) return only;
  const listed = emails.toSorted().slice(0, MAX_LISTED).join(', ');
  const others =
    emails.length === 0
      ? 'There is no other administrator.'
      : `The administrators are ${listed}${emails.length > MAX_LISTED ? ', and more' : ''}.`;
  throw new Refusal(
    'not_found',
    `No administrator has the email address ${wanted}. ${others} Name an administrator with --email, or create one with --create.`,
    { param: 'bootstrap.email' },
  );
}

interface Prepared {
  readonly made: string | undefined;
  readonly email: string;
  readonly hash: string;
}

async function prepare(parts: BootstrapParts, settings: AdministratorSettings): Promise<Prepared> {
  const email = settings.email.trim().toLowerCase();
  const made = settings.password === undefined ? makePassword(parts.random) : undefined;
  const password = made ?? settings.password ?? '';
  const problems = passwordProblems(password);
  if (problems.length > 0) throw new Refusal('invalid_field', problems.join(' '), { param: 'bootstrap.password' });
  return { made, email, hash: await parts.passwords.hash(password) };
}

/** 32 characters that do not look alike, with 5 bits each. */
const PASSWORD_ALPHABET = 'abcdefghijkmnpqrstuvwxyz23456789';
const PASSWORD_LENGTH = 24;

/** 120 random bits, in groups of six that are easy to copy. */
function makePassword(random: BootstrapParts['random']): string {
  const letters = Array.from(random(PASSWORD_LENGTH), (byte) =>
    PASSWORD_ALPHABET.charAt(byte % PASSWORD_ALPHABET.length),
  );
  return (letters.join('').match(/.{6}/g) ?? []).join('-');
}

async function raise(
  parts: BootstrapParts,
  trx: Queryable,
  email: string,
  hash: string,
  action: 'user.bootstrap' | 'user.reset_admin',
): Promise<TenantId> {
  const existing = await holdUserByEmail(trx, email);
  const obstacle = existing && obstacleOf(existing);
  if (obstacle !== undefined) {
    throw new Refusal('already_exists', `${email} ${obstacle} ${WAY_IN}`, { param: 'bootstrap.email' });
  }
  const tenantId = existing?.tenantId ?? DEFAULT_TENANT;
  const id = existing?.id ?? makeId('usr', parts.now(), parts.random(10));
  if (existing === undefined) await insertFirstUser(trx, { id, email });
  await raiseToAdministrator(trx, id, hash);
  await endSessions(trx, { user_id: id });
  await discardPasswordSetups(trx, [id]);
  await forgetAccount(trx, emailSubject(email));
  await insertAudit(trx, {
    ...{ actorType: 'system', tenantId, action, targetType: 'user', targetId: id, result: 'success' },
    after: { email, role: 'admin' },
  });
  return tenantId;
}

/** The tenant `default` is never suspended, so a new user of it can always log in. */
const WAY_IN =
  'Nothing has changed. Run the command with --create --email and an email address that no user has. It creates an administrator of the tenant default, who can correct this user.';

/** Returns the reason why a user could not log in with a password; undefined = it could. */
function obstacleOf({ source, status, tenantId, tenantActive }: UserToRaise): string | undefined {
  if (source === 'ldap') return 'belongs to a user of a directory, which manages the password.';
  if (source !== 'local') return 'belongs to a user that a token of an issuer created, which has no password.';
  if (status !== 'active')
    return `belongs to a deactivated user of the tenant ${tenantId}. An administrator can activate the user.`;
  if (!tenantActive)
    return `belongs to a user of the tenant ${tenantId}, which is suspended. An administrator can activate the tenant.`;
  return undefined;
}
