/** The ways in which a caller's right ends: each as an administrator does it by the API, and as the store sees it. */

import type { Harness, Reply } from '../harness.ts';
import { type Case, MANAGER } from './cases.ts';
import type { Operation } from './samples.ts';

export interface Ending {
  readonly name: string;
  readonly callers: readonly Case['caller'][];
  readonly sql: (of: Case) => string;
  /** Undefined: time does it. */
  readonly byApi?: (h: Harness, of: Case) => Promise<Reply>;
  /** The answer to requests after the end. */
  readonly answer: string;
  /** Ends the rights of a role only. */
  readonly ofRole?: true;
  /** Not of built-in roles. */
  readonly ofCustomRole?: true;
  /** The credential still reads. */
  readonly ofWrites?: true;
}

const KEY = ['key'] as const;
const SESSION = ['session'] as const;
const BOTH = ['key', 'session'] as const;
const INVALID = '401 invalid_credential';
const MISSING = '403 insufficient_permission';

const asRoot = (h: Harness, { own }: Case, method: string, path: string, body?: object) =>
  h.api(method, path, { as: h.root.token, tenant: own, ...(body === undefined ? {} : { body }) });

export const ENDINGS: readonly Ending[] = [
  {
    name: 'its key is revoked',
    callers: KEY,
    sql: ({ keyId }) => `update api_keys set revoked_at = clock_timestamp() where id = '${keyId}'`,
    byApi: (h, of) => asRoot(h, of, 'DELETE', `/v1/iam/api-keys/${of.keyId}`),
    answer: INVALID,
  },
  {
    name: 'its key is disabled',
    callers: KEY,
    sql: ({ keyId }) => `update api_keys set disabled_at = clock_timestamp() where id = '${keyId}'`,
    byApi: (h, of) => asRoot(h, of, 'POST', `/v1/iam/api-keys/${of.keyId}/disable`),
    answer: INVALID,
  },
  {
    name: 'its secret is rotated with a grace',
    callers: KEY,
    sql: ({
      keyId,
    }) => `update api_keys set digest = sha256(digest), previous_digest = digest, previous_until = now() + interval '1 hour'
      where id = '${keyId}'`,
    byApi: (h, of) => asRoot(h, of, 'POST', `/v1/iam/api-keys/${of.keyId}/rotate`, { grace_seconds: 3600 }),
    answer: INVALID,
    ofWrites: true,
  },
  {
    name: 'its key expires',
    callers: KEY,
    sql: ({ keyId }) => `update api_keys set expires_at = clock_timestamp() where id = '${keyId}'`,
    answer: INVALID,
  },
  {
    name: "its user, or its key's owner, is deactivated",
    callers: BOTH,
    sql: ({ userId }) => `update users set status = 'deactivated' where id = '${userId}'`,
    byApi: (h, of) => asRoot(h, of, 'POST', `/v1/iam/users/${of.userId}/deactivate`),
    answer: INVALID,
  },
  {
    name: 'its directory suspends its user',
    callers: BOTH,
    sql: ({ userId }) =>
      `update users set source = 'ldap', directory = 'corp', directory_id = id, password_hash = null,
         directory_suspension = 'removed', directory_suspended_at = clock_timestamp() where id = '${userId}'`,
    answer: INVALID,
  },
  {
    name: 'its session ends',
    callers: SESSION,
    sql: ({ sessionId }) => `update sessions set ended_at = clock_timestamp() where id = '${sessionId}'`,
    byApi: (h, { credential }) => h.api('POST', '/v1/auth/logout', { as: credential }),
    answer: INVALID,
  },
  {
    name: 'its role is taken',
    callers: BOTH,
    sql: ({ userId }) => `delete from user_roles where user_id = '${userId}'`,
    byApi: (h, of) => asRoot(h, of, 'PUT', `/v1/iam/users/${of.userId}`, { roles: [] }),
    answer: MISSING,
    ofRole: true,
  },
  {
    name: 'its role is narrowed',
    callers: BOTH,
    sql: ({ own }) =>
      `update roles set permissions = '{chat:write}' where tenant_id = '${own}' and name = '${MANAGER}'`,
    byApi: (h, of) => asRoot(h, of, 'PUT', `/v1/iam/roles/${MANAGER}`, { permissions: ['chat:write'] }),
    answer: MISSING,
    ofRole: true,
    ofCustomRole: true,
  },
  {
    name: 'a policy denies it',
    callers: BOTH,
    sql: ({ own, number }) =>
      `insert into policies (tenant_id, name, effect, actions, resources, applies_to)
       values ('${own}', 'stop-${number}', 'deny', '{*}', '{*}', 'everyone')`,
    byApi: (h, of) =>
      asRoot(h, of, 'POST', '/v1/iam/policies', {
        ...{ name: `stop-${of.number}`, effect: 'deny', actions: ['*'], resources: ['*'] },
      }),
    answer: '403 denied_by_policy',
    ofCustomRole: true,
  },
  {
    name: 'its tenant is suspended',
    callers: BOTH,
    sql: ({ own }) => `update tenants set status = 'suspended' where id = '${own}'`,
    byApi: (h, { own }) => h.api('POST', `/v1/iam/tenants/${own}/suspend`, { as: h.root.token }),
    answer: '403 tenant_suspended',
  },
];

/** Reports whether the caller could use the endpoint before this ending, and cannot use it afterwards. */
export function concerns(ending: Ending, caller: Case['caller'], operation: Operation): boolean {
  const aboutItself = operation.needs === '';
  if (!ending.callers.includes(caller) || (caller === 'key' && (aboutItself || needsPlatformAdmin(operation))))
    return false;
  if (ending.ofWrites === true && operation.onlyReads) return false;
  return !(ending.ofRole === true && aboutItself) && !(ending.ofCustomRole === true && needsPlatformAdmin(operation));
}

export function needsPlatformAdmin({ needs }: Operation): boolean {
  return needs.includes('`admin:tenants`') || needs.includes('platform administrator');
}

/**
 * Returns the expected answer. Without the role a user may still create keys for itself, but only with permissions that
 * it has.
 */
export function answerTo(ending: Ending, caller: Case['caller'], { id }: Operation): string {
  return ending.answer === MISSING && caller === 'session' && id === 'createApiKey' ? '403 escalation' : ending.answer;
}
