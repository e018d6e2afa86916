/**
 * Runs the steps of a login for the administrator who configures a directory. It authenticates no person, and changes
 * only the counts of failed attempts, because the directory counts a wrong password here as well.
 */

import type { LoginTestRequest, TestStep } from '../../directory/model.ts';
import { parseTenantId } from '../../domain/ids.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import type { Queryable } from '../../store/queryable.ts';
import { directorySubject } from '../auth/directory-login.ts';
import { type DirectoryService, queryDirectory } from '../auth/directory-service.ts';
import { returnAttempt } from '../auth/failure-queries.ts';
import type { LoginAttemptLimiter } from '../auth/login-attempt-limiter.ts';
import type { LoginSettings } from '../auth/parts.ts';
import { attemptAt, type LoginAttempt, returnedOnFailure, withAttemptLimits } from '../auth/throttle.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { notFound } from '../caller/refusals.ts';
import { actorOf } from '../change/audit-row.ts';
import { findTenant } from '../tenants/queries.ts';

export interface DirectoryTestParts extends Pick<AdminParts, 'db'> {
  readonly login: LoginSettings;
  /** One for the process. */
  readonly attempts: LoginAttemptLimiter;
  /** Undefined = no directory is configured. */
  readonly directory?: DirectoryService | undefined;
}

/**
 * @throws Refusal `insufficient_permission` unless the caller is a platform administrator, `not_found` if there is no
 *   such directory, `too_many_attempts`, `unavailable` if too many tests are in progress
 */
export async function testDirectory(
  parts: DirectoryTestParts,
  caller: Caller,
  request: LoginTestRequest,
): Promise<{ readonly steps: readonly TestStep[] }> {
  authorize(caller, 'admin:tenants');
  const { directory: service } = parts;
  if (service === undefined || (request.directory !== undefined && !service.names.includes(request.directory))) {
    throw notFound('directory');
  }
  // The directory counts a wrong password, so the caller's rights are verified in the database first.
  await asCaller(parts.db, caller, {}, async () => undefined);
  const attempt = attemptAt(directorySubject(request.username), caller.address);
  return await withAttemptLimits(parts, attempt, async () => {
    const steps = await returnedOnFailure(parts.db.knex, attempt, async () =>
      withTenant(
        parts.db.knex,
        await queryDirectory(service, 'test', request.directory, () => service.directories.test(request)),
      ),
    );
    await settle(parts, attempt, steps);
    service.report({ operation: 'test', directory: request.directory, outcome: failedStep(steps)?.step ?? 'success' });
    await write(parts, caller, request, steps);
    return { steps };
  });
}

/** Fails the last step if the tenant does not exist or is suspended: the directory knows only its id. */
async function withTenant(q: Queryable, steps: readonly TestStep[]): Promise<readonly TestStep[]> {
  const last = steps.at(-1);
  const id = last?.step === 'tenant' ? parseTenantId(String(last.data?.['tenant_id'])) : undefined;
  if (last === undefined || id === undefined) return steps;
  const tenant = await findTenant(q, id);
  if (tenant?.status === 'active') return steps;
  const failed: TestStep =
    tenant === undefined
      ? {
          ...last,
          ok: false,
          detail: `there is no tenant ${id}`,
          advice: 'Create it, or correct ldap.tenant-id or ldap.group-tenant-mapping.',
        }
      : { ...last, ok: false, detail: `the tenant ${id} is suspended`, advice: 'Activate the tenant.' };
  return [...steps.slice(0, -1), failed];
}

/**
 * The directory counts only the person's own bind. A failed bind stays counted; without a bind, there was no attempt.
 */
async function settle(parts: DirectoryTestParts, attempt: LoginAttempt, steps: readonly TestStep[]): Promise<void> {
  const bind = steps.find(({ step }) => step === 'user_bind');
  if (bind === undefined || bind.ok) await returnAttempt(parts.db.knex, attempt);
}

async function write(
  { db }: DirectoryTestParts,
  caller: Caller,
  request: LoginTestRequest,
  steps: readonly TestStep[],
): Promise<void> {
  const actor = actorOf(caller);
  const failed = failedStep(steps);
  await insertAudit(db.knex, {
    actorType: actor.type,
    actorId: actor.id,
    tenantId: actor.tenant,
    address: actor.address,
    action: 'directory.test',
    targetType: 'directory',
    targetId: request.directory,
    result: failed === undefined ? 'success' : 'failure',
    after: { username: request.username, ...(failed === undefined ? {} : { failed_step: failed.step }) },
    requestId: actor.requestId,
  });
}

function failedStep(steps: readonly TestStep[]): TestStep | undefined {
  return steps.find(({ ok }) => !ok);
}
