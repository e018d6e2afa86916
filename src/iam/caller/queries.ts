/**
 * Locks and reads the rows that decide the caller's permissions, in the transaction of its change.
 *
 * First it locks each part by name (`hold_turn` in the schema): shared with other changes of the same caller, or
 * exclusively if this change writes the part. These locks are fair, so a caller that writes without a pause cannot
 * delay the end of its rights. Then it locks the rows, `for share` or `for update`, against transactions that hold no
 * names: logouts, directories and the command line.
 *
 * Every transaction takes its locks in one order: names, tenants, administrators, users, then keys and sessions; within
 * a kind sorted by id. So two callers that change each other run one after the other, and no change needs to upgrade a
 * shared lock.
 */

import { Fault } from '../../domain/errors.ts';
import type { KeyDigest, KeyId, SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { KeyRecord, PolicyRecord, SessionRecord, TenantRecord, UserRecord } from '../../domain/records.ts';
import { ADMIN } from '../../domain/roles.ts';
import { finish } from '../../domain/steps.ts';
import { KEY, POLICY, ROLE, SESSION, USER_STATUS } from '../../store/cache-loader.ts';
import type { Row } from '../../store/pool.ts';
import { type Call, type Prepared, runPipelined, runPrepared } from '../../store/prepared.ts';
import { keyRecord, policyRecords, sessionRecord, tenantRecord, userRecord } from '../../store/rows.ts';
import type { Transaction } from '../../store/transaction.ts';
import { ADMINISTRATORS_LOCK } from '../users/administrator-queries.ts';

/** The credential of the caller: a key, a session of a user, or a session of a key without a secret. */
export interface HeldCredential {
  readonly session: SessionId | undefined;
  readonly key: { readonly id: KeyId; readonly digest: KeyDigest } | undefined;
}

/** The existing rows that a change writes. */
export interface WrittenRows {
  readonly tenant?: TenantId | undefined;
  readonly user?: UserId | undefined;
  /** Several users. Not combined with `user`. */
  readonly users?: readonly UserId[] | undefined;
  readonly session?: SessionId | undefined;
  readonly key?: KeyId | undefined;
  /** Several keys. Not combined with `session` or `key`. */
  readonly keys?: readonly KeyId[] | undefined;
  /**
   * `roles`: the change writes roles or policies of the effective tenant. `policies`: it writes policies of the
   * effective tenant or global ones.
   */
  readonly rules?: 'roles' | 'policies' | undefined;
}

interface CallerToHold {
  readonly credential: HeldCredential;
  /** The session's user, or the key's owner; undefined for a key that its tenant owns. */
  readonly userId: UserId | undefined;
  readonly own: TenantId;
  readonly effective: TenantId;
  readonly writes: WrittenRows;
}

/** The rows that decide the caller's permissions. They stay the same until the transaction ends. */
export interface HeldRows {
  /** The database's clock after the locks were granted, in milliseconds since the epoch. */
  readonly nowMs: number;
  readonly key: KeyRecord | undefined;
  readonly session: SessionRecord | undefined;
  readonly user: UserRecord | undefined;
  /** With the roles of the user, and with the enabled policies that may apply to the user. */
  readonly own: TenantRecord | undefined;
  readonly effective: TenantRecord | undefined;
  readonly globalPolicies: readonly PolicyRecord[];
}

/** The name of the lock for global policies. */
const GLOBAL = '';

/**
 * The name that a change of several keys holds. It takes a lock for each key, and PostgreSQL's lock table is bounded,
 * so only one such change runs at a time. No tenant has this name.
 */
const SEVERAL_KEYS = ' keys';
/** The same for a change of several users. */
const SEVERAL_USERS = ' users';

type Mode = 'share' | 'update';

const inBothModes = (name: string, text: string): Readonly<Record<Mode, Prepared>> => ({
  share: { name: `${name}_share`, text: `${text} for share` },
  update: { name: `${name}_update`, text: `${text} for update` },
});

const STATEMENTS = {
  tenant: inBothModes('hold_tenant', 'select from tenants where id = $1'),
  turns: {
    name: 'hold_turns',
    text: 'select hold_turn(name, alone) from unnest($1::text[], $2::boolean[]) as turns(name, alone)',
  },
  /**
   * Taken if the change writes an administrator, because it counts the remaining administrators later. It waits here
   * before it locks a row that another such change needs.
   */
  administrators: {
    name: 'hold_administrators',
    text: `select pg_advisory_xact_lock(${ADMINISTRATORS_LOCK}) where exists (
      select from user_roles r join users u on u.id = r.user_id
      where r.role_name = '${ADMIN}' and r.source = 'manual' and ((u.id = any($1::text[]) and u.tenant_id = $2) or u.tenant_id = $3)
    )`,
  },
  user: inBothModes('hold_user', `select u.id, u.tenant_id, ${USER_STATUS} as status from users u where u.id = $1`),
  session: inBothModes('hold_session', `select ${SESSION} from sessions s where s.id = $1`),
  key: inBothModes(
    'hold_key',
    `select ${KEY}, k.digest <> $2 as by_previous from api_keys k where k.id = $1 and (k.digest = $2 or k.previous_digest = $2)`,
  ),
  /** Locks a row that the change writes and that is not the caller's own, only within the caller's reach. */
  otherUsers: {
    name: 'hold_other_users',
    text: 'select from users where id = any($1::text[]) and tenant_id = $2 order by id collate "C" for update',
  },
  otherSession: { name: 'hold_other_session', text: 'select from sessions where id = $1 and user_id = $2 for update' },
  otherKey: { name: 'hold_other_key', text: 'select from api_keys where id = $1 and tenant_id = $2 for update' },
  otherKeys: {
    name: 'hold_other_keys',
    text: 'select from api_keys where id = any($1::text[]) and tenant_id = $2 order by id collate "C" for update',
  },
  /**
   * Runs after the locks, because a statement that waited for a row sees the other rows as they were before it waited.
   */
  rights: {
    name: 'rights_of_caller',
    text: `
      with caller as materialized (
        select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now_ms,
          array(select distinct role_name from user_roles where user_id = $2 order by role_name) as role_names
      )
      select caller.now_ms, caller.role_names, t.id, t.status, t.settings, t.quotas,
        (select json_agg(${ROLE} order by p.name collate "C")::text from roles p
          where p.tenant_id = owners.owner and p.name = any(caller.role_names)) as roles,
        (select json_agg(${POLICY} order by p.name collate "C")::text from policies p
          where coalesce(p.tenant_id, '') = owners.owner and p.enabled and (p.applies_to = 'everyone' or exists (
            select from policy_roles r where r.policy_id = p.id and r.role_name = any(caller.role_names)
          ))) as policies
      from unnest($1::text[]) with ordinality as owners(owner, place) cross join caller
      left join tenants t on t.id = owners.owner and t.deleted_at is null
      order by owners.place`,
  },
} as const;

/**
 * Locks the rows of the caller until the transaction ends, then reads them. It takes one round trip, because other
 * changes wait for these locks.
 */
export async function holdCallerRows(trx: Transaction, caller: CallerToHold): Promise<HeldRows> {
  const { credential, userId, own, effective, writes } = caller;
  const calls: Call[] = [];
  /** Returns the position of the statement's rows. */
  const add = (...call: Call): number => calls.push(call) - 1;
  const turns = turnsOf(caller);
  const names = inOrder(...turns.keys());
  add(
    STATEMENTS.turns,
    names,
    names.map((name) => turns.get(name)),
  );
  for (const id of inOrder(own, effective, writes.tenant)) add(STATEMENTS.tenant[modeOf(id, writes.tenant)], id);
  const written = inOrder(writes.user, ...(writes.users ?? []));
  if (written.length > 0 || writes.tenant !== undefined) {
    add(STATEMENTS.administrators, written, effective, writes.tenant ?? null);
  }
  const addUsers = (users: readonly UserId[]): void => {
    if (users.length > 0) add(STATEMENTS.otherUsers, users, effective);
  };
  addUsers(written.filter((id) => userId === undefined || id < userId));
  const user =
    userId === undefined
      ? undefined
      : add(STATEMENTS.user[modeOf(userId, written.includes(userId) ? userId : undefined)], userId);
  addUsers(written.filter((id) => userId !== undefined && id > userId));
  const { key, session } = credential;
  const otherKeys = inOrder(...(writes.keys ?? [])).filter((id) => id !== key?.id);
  const addKeys = (keys: readonly KeyId[]): void => {
    if (keys.length > 0) add(STATEMENTS.otherKeys, keys, effective);
  };
  addKeys(otherKeys.filter((id) => key === undefined || id < key.id));
  let keyAt: number | undefined;
  for (const id of inOrder(key?.id, writes.key)) {
    if (id === key?.id) keyAt = add(...heldKey(key, writes));
    else add(STATEMENTS.otherKey, id, effective);
  }
  addKeys(otherKeys.filter((id) => key !== undefined && id > key.id));
  // The ids of sessions follow those of keys.
  let sessionAt: number | undefined;
  for (const id of inOrder(session, writes.session)) {
    if (id === session) sessionAt = add(STATEMENTS.session[modeOf(id, writes.session)], id);
    else add(STATEMENTS.otherSession, id, userId);
  }
  const rights = add(STATEMENTS.rights, [own, effective, GLOBAL], userId ?? null);
  const rows = await runPipelined<Row>(trx, calls);
  const rowsAt = (position: number | undefined): readonly Row[] =>
    position === undefined ? [] : (rows[position] ?? []);
  return recordsOf(credential, rowsAt(rights), {
    key: rowsAt(keyAt)[0],
    session: rowsAt(sessionAt)[0],
    user: rowsAt(user)[0],
  });
}

function heldKey({ id, digest }: NonNullable<HeldCredential['key']>, writes: WrittenRows): Call {
  const mode = modeOf(id, writes.keys?.includes(id) ? id : writes.key);
  return [STATEMENTS.key[mode], id, Buffer.from(digest, 'hex')];
}

function recordsOf(
  credential: HeldCredential,
  [own, effective, global]: readonly Row[],
  { key, session, user }: Readonly<Record<'key' | 'session' | 'user', Row | undefined>>,
): HeldRows {
  const nowMs = own?.['now_ms'];
  if (own === undefined || effective === undefined || global === undefined || typeof nowMs !== 'number') {
    throw new Fault('the database did not return the permissions of a caller');
  }
  return {
    nowMs,
    key: key && credential.key && keyRecord(key, credential.key.digest),
    session: session && sessionRecord(session),
    user: user && userRecord({ ...user, roles: own['role_names'] }),
    own: tenantOf(own),
    effective: tenantOf(effective),
    globalPolicies: finish(policyRecords(pieces(global['policies']))),
  };
}

function tenantOf(row: Row): TenantRecord | undefined {
  if (row['id'] === null) return undefined;
  return finish(tenantRecord(row, { roles: pieces(row['roles']), policies: pieces(row['policies']), budgets: [] }));
}

function pieces(text: unknown): readonly string[] {
  return typeof text === 'string' ? [text] : [];
}

/** Returns each id once, in the order in which every transaction takes its locks. */
function inOrder<Id extends string>(...ids: readonly (Id | undefined)[]): readonly Id[] {
  return [...new Set(ids.filter((id) => id !== undefined))].sort((left, right) => (left < right ? -1 : 1));
}

function modeOf(id: string, written: string | undefined): Mode {
  return id === written ? 'update' : 'share';
}

/**
 * Returns the names to hold, and true for each that is held exclusively. The name of a written row begins with the
 * effective tenant.
 */
function turnsOf({
  credential: { key, session },
  userId,
  own,
  effective,
  writes,
}: CallerToHold): ReadonlyMap<string, boolean> {
  const turns = new Map<string, boolean>([
    [GLOBAL, writes.rules === 'policies'],
    [own, false],
    [effective, writes.rules !== undefined],
  ]);
  for (const id of [key?.id, session]) if (id !== undefined) turns.set(turnOf(own, id), false);
  if (userId !== undefined) turns.set(turnOf(own, userId), false);
  if (writes.tenant !== undefined) turns.set(writes.tenant, true);
  if (writes.keys !== undefined && writes.keys.length > 0) turns.set(SEVERAL_KEYS, true);
  if (writes.users !== undefined && writes.users.length > 0) turns.set(SEVERAL_USERS, true);
  for (const id of [writes.user, writes.key, ...(writes.keys ?? []), ...(writes.users ?? [])]) {
    if (id !== undefined) turns.set(turnOf(id === userId || id === key?.id ? own : effective, id), true);
  }
  if (writes.session !== undefined) turns.set(turnOf(own, writes.session), true);
  return turns;
}

function turnOf(tenant: TenantId, id: UserId | SessionId | KeyId): string {
  return `${tenant}/${id}`;
}

/**
 * Waits until no change of this user, key or session runs, and prevents further ones until the transaction ends. For
 * transactions without a caller that end a right. Call it before the transaction takes a lock.
 */
export async function holdAlone(trx: Transaction, tenant: TenantId, id: UserId | SessionId | KeyId): Promise<void> {
  await runPrepared(trx, STATEMENTS.turns, [[turnOf(tenant, id)], [true]]);
}
