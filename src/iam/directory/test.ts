/**
 * Trying a directory out: what a login would go through, step by step, for whoever sets it up. It proves nobody and changes nothing but the
 * counts of failed attempts: a wrong password tried here is one that the directory counts too.
 */

import type { TestStep } from '../../directory/model.ts';
import { insertAudit } from '../../store/audit-rows.ts';
import { directorySubject } from '../auth/directory-login.ts';
import { type DirectoryService, queryDirectory } from '../auth/directory-service.ts';
import type { LoginAttemptLimiter } from '../auth/login-attempt-limiter.ts';
import type { LoginSettings } from '../auth/parts.ts';
import { attemptAt, type LoginAttempt, takeBack, withAttemptLimits } from '../auth/throttle.ts';
import { authorize } from '../caller/authorize.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { asCaller } from '../caller/hold-caller.ts';
import { notFound } from '../caller/refusals.ts';
import { actorOf } from '../change/audit-row.ts';

export interface DirectoryTestParts extends Pick<AdminParts, 'db'> {
  readonly login: LoginSettings;
  /** One for the process. */
  readonly attempts: LoginAttemptLimiter;
  /** Undefined = no directory is configured. */
  readonly directory?: DirectoryService | undefined;
}

export interface DirectoryTestRequest {
  readonly username: string;
  /** Absent: everything but the person's own bind is tried. */
  readonly password?: string;
  /** Absent: the directory that a login with this name would ask first. */
  readonly directory?: string;
}

/**
 * @throws Refusal `insufficient_permission` for everybody but platform administrators, `not_found` when there is no such directory,
 *   `too_many_attempts`, `unavailable` when too many are asking
 */
export async function testDirectory(
  parts: DirectoryTestParts,
  caller: Caller,
  request: DirectoryTestRequest,
): Promise<{ readonly steps: readonly TestStep[] }> {
  authorize(caller, 'admin:tenants');
  const { directory: service } = parts;
  if (service === undefined || (request.directory !== undefined && !service.names.includes(request.directory))) {
    throw notFound('directory');
  }
  // The directory counts a wrong password, so the store says first that the caller may still try one.
  await asCaller(parts.db, caller, {}, async () => undefined);
  const attempt = attemptAt(directorySubject(request.username), caller.address);
  return await withAttemptLimits(parts, attempt, async () => {
    const steps = await asked(parts, service, attempt, request);
    await settle(parts, attempt, steps);
    service.report({ operation: 'test', directory: request.directory, outcome: failedStep(steps)?.step ?? 'success' });
    await write(parts, caller, request, steps);
    return { steps };
  });
}

async function asked(
  parts: DirectoryTestParts,
  service: DirectoryService,
  attempt: LoginAttempt,
  request: DirectoryTestRequest,
): Promise<readonly TestStep[]> {
  try {
    return await queryDirectory(service, 'test', request.directory, () => service.directories.test(request));
  } catch (error) {
    await takeBack(parts.db.knex, attempt);
    throw error;
  }
}

/** The person's own bind is what a directory counts: a wrong one stays counted, and none was no attempt. */
async function settle(parts: DirectoryTestParts, attempt: LoginAttempt, steps: readonly TestStep[]): Promise<void> {
  const bind = steps.find(({ step }) => step === 'user_bind');
  if (bind === undefined || bind.ok) await takeBack(parts.db.knex, attempt);
}

async function write(
  { db }: DirectoryTestParts,
  caller: Caller,
  request: DirectoryTestRequest,
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
    before: undefined,
    after: { username: request.username, ...(failed === undefined ? {} : { failed_step: failed.step }) },
    requestId: actor.requestId,
  });
}

function failedStep(steps: readonly TestStep[]): TestStep | undefined {
  return steps.find(({ ok }) => !ok);
}
