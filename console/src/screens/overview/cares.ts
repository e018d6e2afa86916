/** Asks for what needs care: one page of each kind, never all. */

import type { Notice, User } from '../../../../client/index.ts';
import { nameOf } from '../../api/principal.tsx';
import type { Tenant } from '../../api/session.ts';

const USERS = 5;
const RULES = 100;
/** Statuses of a directory that reject a user's keys and sessions. */
const GONE = ['removed', 'disabled', 'expired', 'tenant_changed', 'several_names', 'several_ids'] as const;

export interface Cares {
  readonly locked: readonly User[];
  readonly conflicts: readonly User[];
  readonly gone: readonly User[];
}

export async function readUsers({ client }: Tenant, signal: AbortSignal): Promise<Cares> {
  const users = async (filter: { locked?: true; email_conflict?: true; directory_status?: (typeof GONE)[number] }) =>
    (await client.request('GET', '/v1/iam/users', { query: { ...filter, status: 'active', limit: USERS }, signal }))
      .data;
  const [locked, conflicts, ...gone] = await Promise.all([
    users({ locked: true }),
    users({ email_conflict: true }),
    ...GONE.map((status) => users({ directory_status: status })),
  ]);
  return { locked, conflicts, gone: gone.flat() };
}

export interface Noticed {
  readonly kind: 'role' | 'policy' | 'key';
  /** A name, of a key its id. */
  readonly id: string;
  readonly name: string;
  readonly notice: Notice;
}

export interface Notices {
  readonly found: readonly Noticed[];
  /** There are more of a kind than were looked at. */
  readonly isPartial: boolean;
  readonly lookedAt: number;
}

export async function readNotices(
  { client }: Tenant,
  may: { readonly policies: boolean; readonly roles: boolean; readonly keys: boolean },
  signal: AbortSignal,
): Promise<Notices> {
  const none = { data: [], has_more: false };
  const [policies, roles, keys] = await Promise.all([
    may.policies ? client.request('GET', '/v1/iam/policies', { query: { enabled: true, limit: RULES }, signal }) : none,
    may.roles ? client.request('GET', '/v1/iam/roles', { query: { builtin: false, limit: RULES }, signal }) : none,
    may.keys ? client.request('GET', '/v1/iam/api-keys', { query: { status: 'active', limit: RULES }, signal }) : none,
  ]);
  const found = [
    ...policies.data.flatMap(({ name, notices = [] }) => noticed('policy', name, name, notices)),
    ...roles.data.flatMap(({ name, notices = [] }) => noticed('role', name, name, notices)),
    ...keys.data.flatMap((key) => noticed('key', key.id, nameOf(key), key.notices ?? [])),
  ];
  return { found, isPartial: [policies, roles, keys].some((page) => page.has_more), lookedAt: RULES };
}

function noticed(kind: Noticed['kind'], id: string, name: string, notices: readonly Notice[]): readonly Noticed[] {
  return notices.map((notice) => ({ kind, id, name, notice }));
}
