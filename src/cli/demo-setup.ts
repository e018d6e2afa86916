/** The tenants of the demo with their roles, policies and users: demo-setup.yaml, applied once like `postern apply`. */

import { fileURLToPath } from 'node:url';
import { Refusal } from '../domain/errors.ts';
import { parseTenantId, type TenantId, type UserId } from '../domain/ids.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { applySetup, previewSetup } from '../iam/setup/apply.ts';
import { findTenant } from '../iam/tenants/queries.ts';
import { listUsers } from '../iam/users/list-queries.ts';
import { readSetupFile, readSetupText, type SetupFile } from './apply-file.ts';

/** The tenant in which the console opens and whose key the demo prints. */
export const ACME = tenantOf('acme');
/** The tenant with small limits. */
export const TRIAL = tenantOf('trial');
/** The limits in demo-setup.yaml. */
export const TRIAL_LIMITS = { requestsPerMinute: 5, monthlyTokens: 100_000 };
export const DEVELOPER = 'developer@acme.example';

const FILE = fileURLToPath(new URL('demo-setup.yaml', import.meta.url));

/** The owner of the printed key, as demo-setup.yaml has it. */
const OWNER = `version: 1
tenants: [{ id: acme, users: [{ email: ${DEVELOPER}, name: Dana Developer, roles: [developer] }] }]
`;

/**
 * Applies the file to a database that does not have `acme`, and creates the owner of the printed key again if it was
 * deleted. Otherwise it does nothing, so that changes of the demo's users stay.
 * @returns the owner
 * @throws Refusal `already_exists` if one of the tenants was deleted
 */
export async function ensureSetup(parts: AdminParts): Promise<UserId> {
  if ((await findTenant(parts.db.knex, ACME)) === undefined) await apply(parts, await readSetupFile(FILE));
  const owner = await userOf(parts, ACME, DEVELOPER);
  if (owner !== undefined) return owner;
  await apply(parts, readSetupText(DEVELOPER, Buffer.from(OWNER)));
  const created = await userOf(parts, ACME, DEVELOPER);
  if (created === undefined) throw new Error(`The user ${DEVELOPER} could not be created.`);
  return created;
}

/** Creates an issuer of `acme`, or gives it these members. @throws Refusal like `ensureSetup` */
export async function ensureIssuer(
  parts: AdminParts,
  issuer: { readonly name: string; readonly issuer: string; readonly audiences: readonly string[] },
  allowedHosts: readonly string[],
): Promise<void> {
  const file = { version: 1, tenants: [{ id: ACME, issuers: [issuer] }] };
  await apply(parts, readSetupText(issuer.name, Buffer.from(JSON.stringify(file))), allowedHosts);
}

async function apply(
  { db, random, now }: AdminParts,
  file: SetupFile,
  allowedHosts: readonly string[] = [],
): Promise<void> {
  if (file.kind === 'invalid') throw new Error(`${FILE}: ${file.errors.map(({ message }) => message).join('; ')}`);
  const options = { prune: false, pruneTenants: false, force: false, setupTokens: false, nowMs: now(), allowedHosts };
  const plan = await previewSetup({ db, random }, file.setup, options);
  if (plan.kind === 'errors') {
    const [error] = file.locate(plan.errors);
    throw new Refusal(
      'already_exists',
      `The demo's tenants cannot be created: ${error?.path}: ${error?.message}. Start the demo with another data-dir.`,
    );
  }
  const applied = await applySetup({ db, random }, file.setup, options, plan.actions);
  if (applied.kind === 'changed')
    throw new Refusal('already_exists', 'Another process is filling this database. Start the demo again.');
}

export async function userOf({ db }: AdminParts, tenant: TenantId, email: string): Promise<UserId | undefined> {
  const { rows } = await listUsers(db.knex, { kind: 'one', tenant }, { email }, { after: undefined, take: 1 });
  return rows[0]?.id;
}

/** @throws Error for a text that is not a tenant id */
function tenantOf(id: string): TenantId {
  const parsed = parseTenantId(id);
  if (parsed === undefined) throw new Error(`${id} is not a tenant id`);
  return parsed;
}
