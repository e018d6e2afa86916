/**
 * The tenants of the demonstration with their roles, policies and users: demo-setup.yaml, applied once as `postern
 * apply` does it.
 */

import { fileURLToPath } from 'node:url';
import { Refusal } from '../domain/errors.ts';
import { parseTenantId, type TenantId } from '../domain/ids.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { applySetup, previewSetup } from '../iam/setup/apply.ts';
import { findTenant } from '../iam/tenants/queries.ts';
import { readSetupFile } from './apply-file.ts';

/** The tenant in which the console opens and whose key the demo prints. */
export const ACME = tenantOf('acme');
/** The tenant with tight limits. */
export const TRIAL = tenantOf('trial');
/** As the file has them. */
export const TRIAL_LIMITS = { requestsPerMinute: 5, monthlyTokens: 100_000 };
export const DEVELOPER = 'developer@acme.example';

const FILE = fileURLToPath(new URL('demo-setup.yaml', import.meta.url));

/**
 * Applies the file to a database that does not have `acme`; otherwise does nothing, so that changes of the demo's users
 * stay.
 * @throws Refusal `already_exists` if one of the tenants was deleted
 */
export async function ensureSetup({ db, random, now }: AdminParts): Promise<void> {
  if ((await findTenant(db.knex, ACME)) !== undefined) return;
  const file = await readSetupFile(FILE);
  if (file.kind === 'problems') throw new Error(`${FILE}: ${file.problems.map(({ message }) => message).join('; ')}`);
  const options = { prune: false, pruneTenants: false, force: false, setupTokens: false, nowMs: now() };
  const plan = await previewSetup({ db, random }, file.setup, options);
  if (plan.kind === 'errors') {
    const [problem] = file.problemsOf(plan.errors);
    throw new Refusal(
      'already_exists',
      `The demo's tenants cannot be created: ${problem?.path}: ${problem?.message}. Start the demo with another data-dir.`,
    );
  }
  const applied = await applySetup({ db, random }, file.setup, options, plan.actions);
  if (applied.kind === 'changed')
    throw new Refusal('already_exists', 'Another process is filling this database. Start the demo again.');
}

/** A name written in the code of the demo; a wrong one shows at the first start. */
function tenantOf(id: string): TenantId {
  const parsed = parseTenantId(id);
  if (parsed === undefined) throw new Error(`${id} is not a tenant id`);
  return parsed;
}
