/**
 * Logins with a directory. The server queries the directory first, without a transaction. Then one transaction creates
 * or updates the user and begins the session. Every failure gets the same response, after the same time and the same
 * work as a wrong local password. Only the audit log and the metrics have the reason.
 */

import { setImmediate as allTold } from 'node:timers/promises';
import type { DirectoryAnswer, DirectoryPerson, DirectoryReason } from '../../directory/model.ts';
import { Fault, Refusal } from '../../domain/errors.ts';
import type { TenantId, UserId } from '../../domain/ids.ts';
import { tenantTransaction } from '../../store/transaction.ts';
import { invalidCredential } from '../caller/admission.ts';
import { auditUsername, MAX_USERNAME_LENGTH, toStorableText } from '../change/audit-row.ts';
import { applyHere } from '../change/change.ts';
import { beginSession, beginUnchangedSession } from '../sessions/queries.ts';
import { type DirectoryIdentity, findDirectoryUser } from '../users/directory-queries.ts';
import { type AuthEvent, record, recordRefusal } from './audit.ts';
import { type BeginningSession, beginningSession } from './begin.ts';
import { type DirectoryService, queryDirectory } from './directory-service.ts';
import { suspend } from './directory-suspension.ts';
import {
  identityOf,
  inDirectory,
  type ProvisioningRejection,
  type ProvisioningResult,
  provisionUser,
  unchangedUser,
} from './directory-user.ts';
import { returnAttempt } from './failure-queries.ts';
import { recordLock } from './lock.ts';
import { type IssuedTokens, type LoginParts, type Provenance, tenantSuspended } from './parts.ts';
import { attemptAt, type LoginAttempt, returnedOnFailure, withAttemptLimits } from './throttle.ts';

interface DirectoryLogin {
  /** As the client sent it. The directory module parses it. */
  readonly username: string;
  readonly password: string;
  readonly cookie: boolean;
}

const MAX_DETAIL_LENGTH = 1024;

/**
 * Reasons for a rejection before the directory checked a password. Their durations are not comparable with those of a
 * check.
 */
const NOT_LOOKED_AT: ReadonlySet<DirectoryReason> = new Set([
  'unknown_user',
  'ambiguous_user',
  'invalid_username',
  'empty_password',
  'no_domain',
]);

/**
 * @throws Refusal: `invalid_credential` if the login proves no user, or a user that may not log in; `password_expired`
 * and `tenant_suspended` after a correct password; `too_many_attempts`; `unavailable` if too many requests to the
 * directory are in progress. Fault if the directory or the store does not respond.
 */
export async function directoryLogin(
  parts: LoginParts,
  service: DirectoryService,
  login: DirectoryLogin,
  from: Provenance,
): Promise<IssuedTokens> {
  const arrivedMs = performance.now();
  const attempt = attemptAt(directorySubject(login.username), from.throttledAs);
  const attempted = (tell: Tell): Promise<IssuedTokens> =>
    withAttemptLimits(parts, attempt, async () => {
      const startedMs = performance.now();
      const answer = await authenticate(parts, service, login, { attempt, arrivedMs, startedMs, tell });
      switch (answer.kind) {
        case 'proved':
          return await enter(parts, service, { ...login, attempt, startedMs }, answer.person, from);
        case 'password_expired':
          service.report({ operation: 'login', directory: answer.directory, outcome: 'password_expired' });
          if (answer.person !== undefined) await suspendIfHere(parts, identityOf(answer.person), 'expired', from);
          throw await passwordExpired(parts, login, attempt, answer, from);
        case 'refused': {
          const { directory, reason, stableId, detail } = answer;
          service.report({ operation: 'login', directory, outcome: reason });
          if ((reason === 'disabled' || reason === 'expired') && directory !== undefined && stableId !== undefined) {
            await suspendIfHere(parts, { directory, stableId }, reason, from);
          }
          await equalWork(parts, service, login, startedMs);
          await fail(parts, login, from, {
            reason,
            ...(directory === undefined ? {} : { directory }),
            ...(detail === undefined ? {} : { detail: toStorableText(detail.slice(0, MAX_DETAIL_LENGTH)) }),
          });
          await recordLock(parts, attempt, from, auditUsername(login.username));
          throw invalidCredential().asAudited();
        }
        default:
          return answer satisfies never;
      }
    });
  return await failingEarly(attempted);
}

/** The login proves the state of the account, so the user's keys must stop working before the next lookup. */
async function suspendIfHere(
  parts: LoginParts,
  identity: DirectoryIdentity,
  suspension: 'disabled' | 'expired',
  from: Provenance,
): Promise<void> {
  const user = await findDirectoryUser(parts.db.knex, identity);
  if (user === undefined) return;
  const changed = await tenantTransaction(
    parts.db,
    user.tenantId,
    async (trx) => (await suspend(trx, identity, suspension, from))?.changed === true,
  );
  if (changed) await applyHere(parts);
}

type Tell = (error: unknown) => void;

/** Returns the outcome of `work`, or the failure that `work` reports before it ends. */
function failingEarly<T>(work: (tell: Tell) => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    work(reject).then(resolve, reject);
  });
}

/**
 * Returns the subject of failures: the username without its domain, in one spelling. A directory accepts `ALICE`,
 * `CORP\alice` and `alice@corp.example` for one person and counts their failures together before it locks the account.
 * Some directories ignore text after a NUL, or invisible characters. Two persons may have the same subject, so a
 * success clears no failures: it takes back its own attempt only.
 */
export function directorySubject(username: string): string {
  const typed = username
    .slice(0, MAX_USERNAME_LENGTH)
    .replace(/(?<=.)\0.*$/s, '')
    .trim();
  const bare = typed.replace(/^[^\\]*\\/, '').replace(/@[^@]*$/, '');
  const plain = (bare === '' ? typed : bare)
    .normalize('NFKD')
    .replaceAll(/[\p{M}\p{Cc}\p{Default_Ignorable_Code_Point}]+/gu, '')
    .toLowerCase();
  return `directory:${plain.replaceAll(/\s+/g, ' ').trim()}`;
}

interface Asking {
  readonly attempt: LoginAttempt;
  /** The arrival of the request, and the start of the request to the directory. */
  readonly arrivedMs: number;
  readonly startedMs: number;
  readonly tell: Tell;
}

async function authenticate(
  parts: LoginParts,
  service: DirectoryService,
  { username, password }: DirectoryLogin,
  { attempt, arrivedMs, startedMs, tell }: Asking,
): Promise<DirectoryAnswer> {
  if (username.length > MAX_USERNAME_LENGTH) return { kind: 'refused', reason: 'invalid_username' };
  try {
    const ask = () => service.directories.authenticate(username, password, performance.now() - arrivedMs);
    const answer = await queryDirectory(service, 'login', undefined, ask);
    if (answer.kind !== 'refused' || !NOT_LOOKED_AT.has(answer.reason))
      service.responseTimer.record(performance.now() - startedMs);
    return answer;
  } catch (error) {
    // A client that waited for the timeout gets its response now. The attempt remains in progress until it is taken
    // back, so that the account's next attempt waits for that instead of being rejected.
    tell(error);
    // Several logins may have waited for the same timeout. All of them are answered before the store takes their
    // attempts back.
    await allTold();
    await returnAttempt(parts.db.knex, attempt);
    throw error;
  }
}

/** Does the work of a wrong local password, in the time of a directory's password check. */
async function equalWork(
  parts: LoginParts,
  service: DirectoryService,
  { password }: DirectoryLogin,
  startedMs: number,
): Promise<void> {
  await service.responseTimer.padTo(startedMs);
  // If the queue is full, the directory has counted a failure all the same, so the error is ignored.
  await parts.passwords.verify(undefined, password).catch(() => undefined);
}

interface Entering extends DirectoryLogin {
  readonly attempt: LoginAttempt;
  readonly startedMs: number;
}

async function enter(
  parts: LoginParts,
  service: DirectoryService,
  login: Entering,
  person: DirectoryPerson,
  from: Provenance,
): Promise<IssuedTokens> {
  const entered = await returnedOnFailure(
    parts.db.knex,
    login.attempt,
    async () => (await enterSettled(parts, login, person, from)) ?? (await enterChanged(parts, login, person, from)),
  );
  switch (entered.kind) {
    case 'begun': {
      if (entered.changed) await applyHere(parts);
      service.report({ operation: 'login', directory: person.directory, outcome: 'success' });
      return await entered.session.pair(entered.id);
    }
    case 'rejected': {
      service.report({ operation: 'login', directory: person.directory, outcome: entered.reason });
      if (entered.reason === 'tenant_suspended') {
        const after = { code: 'tenant_suspended', ...inDirectory(person) };
        const user = { ...entered, username: login.username };
        throw await refusedAfterProof(parts, login.attempt, from, user, after, tenantSuspended());
      }
      await equalWork(parts, service, login, login.startedMs);
      await fail(parts, login, from, { code: entered.reason, ...inDirectory(person) }, entered);
      throw invalidCredential().asAudited();
    }
    default:
      return entered satisfies never;
  }
}

type Entered =
  | { readonly kind: 'begun'; readonly id: UserId; readonly session: BeginningSession; readonly changed: boolean }
  | Extract<ProvisioningResult, { readonly kind: 'rejected' }>;

/** Mostly nothing has changed since the last login. Then one statement suffices, as for a local login. */
async function enterSettled(
  parts: LoginParts,
  login: Entering,
  person: DirectoryPerson,
  from: Provenance,
): Promise<Entered | undefined> {
  const session = beginning(parts, login, person, from);
  const { knex, permits } = parts.db;
  // The statement waits for the user's row, so it needs a permit like a transaction.
  const id = await permits.run(
    () => beginUnchangedSession(knex, unchangedUser(person), session.beginning),
    person.tenantId,
  );
  return id === undefined ? undefined : { kind: 'begun', id, session, changed: false };
}

async function enterChanged(
  parts: LoginParts,
  login: Entering,
  person: DirectoryPerson,
  from: Provenance,
): Promise<Entered> {
  try {
    return await tenantTransaction(parts.db, person.tenantId, async (trx): Promise<Entered> => {
      const provisioned = await provisionUser(trx, parts, person, from, login.startedMs);
      if (provisioned.kind === 'rejected') return provisioned;
      const session = beginning(parts, login, person, from);
      const { id } = provisioned.user;
      const begun = await beginSession(trx, { id, password_version: '' }, session.beginning);
      if (!begun) throw new Fault('a user whose row is locked may not start a session');
      return { kind: 'begun', id, session, changed: provisioned.changed };
    });
  } catch (error) {
    const why = error instanceof Refusal ? refusedWith(error) : undefined;
    if (why === undefined) throw error;
    return { kind: 'rejected', reason: why, id: undefined, tenant: person.tenantId };
  }
}

function refusedWith({ code }: Refusal): ProvisioningRejection | undefined {
  switch (code) {
    case 'quota_exceeded':
      return code;
    // The tenant was deleted after the transaction read it.
    case 'tenant_mismatch':
      return 'unknown_tenant';
    default:
      return undefined;
  }
}

function beginning(
  parts: LoginParts,
  { attempt, cookie }: Entering,
  { directory, tenantId }: DirectoryPerson,
  from: Provenance,
): BeginningSession {
  return beginningSession(parts, from, tenantId, { attempt, forgives: false, cookie, details: { directory } });
}

/** Audits the failure under the sent username, because only a correct password proves the user. */
async function fail(
  parts: LoginParts,
  { username }: DirectoryLogin,
  from: Provenance,
  after: NonNullable<AuthEvent['after']>,
  known: { readonly id?: UserId | undefined; readonly tenant?: TenantId | undefined } = {},
): Promise<void> {
  await record(parts.db.knex, from, {
    action: 'auth.login',
    tenant: known.tenant,
    target: { type: 'user', id: known.id ?? auditUsername(username) },
    result: 'failure',
    after: { ...after, username: auditUsername(username) },
  });
}

/** Takes back the attempt, whose password was correct, and audits the rejection. @returns the refusal */
async function refusedAfterProof(
  parts: LoginParts,
  attempt: LoginAttempt,
  from: Provenance,
  {
    id,
    tenant,
    username,
  }: { readonly id?: UserId | undefined; readonly tenant?: TenantId | undefined; readonly username: string },
  after: Readonly<Record<string, string | number>>,
  refusal: Refusal,
): Promise<Refusal> {
  await returnAttempt(parts.db.knex, attempt);
  const target = { type: 'user', id: id ?? auditUsername(username) } as const;
  return recordRefusal(parts.db.knex, from, { action: 'auth.login', actor: id, tenant, target, after }, refusal);
}

async function passwordExpired(
  parts: LoginParts,
  { username }: DirectoryLogin,
  attempt: LoginAttempt,
  answer: Extract<DirectoryAnswer, { readonly kind: 'password_expired' }>,
  from: Provenance,
): Promise<Refusal> {
  const user = answer.person && (await findDirectoryUser(parts.db.knex, identityOf(answer.person)));
  const { reason, directory } = answer;
  const after = { code: 'password_expired', reason, directory, username: auditUsername(username) };
  const refusal = new Refusal(
    'password_expired',
    'The password has expired in the directory. Change it there, then log in.',
  );
  return refusedAfterProof(parts, attempt, from, { id: user?.id, tenant: user?.tenantId, username }, after, refusal);
}
