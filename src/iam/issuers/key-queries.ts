/**
 * The key sets of issuers and the state of their refreshes. All times are those of the database's clock. An attempt is
 * identified by its time: a result is stored only if no later attempt began and no change of the issuer ended it.
 */

import type { IssuerId, TenantId } from '../../domain/ids.ts';
import type { IssuerKey } from '../../domain/records.ts';
import { runPrepared } from '../../store/prepared.ts';
import type { Queryable } from '../../store/queryable.ts';

/** Creates the state of an issuer whose keys are fetched; the first fetch is due at once. */
export async function insertKeyState(q: Queryable, id: IssuerId): Promise<void> {
  await q.raw('insert into issuer_keys (issuer_id) values (?) on conflict do nothing', [id]);
}

/**
 * Forgets the keys of an issuer, because they came from another place or are no longer used: a change of `issuer`,
 * `jwks_uri`, `ca` or `jwks`. The next fetch is due at once. A result that is under way is not stored.
 */
export async function resetKeyState(q: Queryable, id: IssuerId): Promise<void> {
  await q.raw(
    `insert into issuer_keys (issuer_id) values (?)
     on conflict (issuer_id) do update set keys = null, fetched_at = null, attempted_at = null, error = null, failures = 0,
       next_fetch_at = clock_timestamp()`,
    [id],
  );
}

/** An issuer whose keys are to be fetched, and the attempt that fetches them. */
export interface KeyAttempt {
  readonly id: IssuerId;
  readonly tenantId: TenantId;
  readonly kind: 'oidc' | 'spiffe';
  readonly issuer: string;
  readonly jwksUri: string | null;
  readonly ca: string | null;
  /** The time of the attempt, in a form that PostgreSQL parses to the microsecond. */
  readonly attempt: string;
  /** The failures since the last success. */
  readonly failures: number;
}

/**
 * An attempt must have ended before the next one begins, also if unknown keys ask for it: otherwise invented keys could
 * keep the result of a slow issuer from being stored. An attempt takes at most 5 s, and its result a moment more.
 */
const ENDED = `(k.attempted_at is null or k.attempted_at < clock_timestamp() - interval '5500 milliseconds')`;
const IS_DUE = `k.next_fetch_at <= clock_timestamp() and ${ENDED} and i.enabled and i.jwks is null`;

/**
 * Names due issuers, at most `limit`. The tenants take turns, so that a tenant with many issuers does not delay the
 * keys of others.
 */
const DUE = {
  name: 'due_issuer_keys',
  text: `
    select id, tenant_id as "tenantId" from (
      select i.id, i.tenant_id, k.next_fetch_at, row_number() over (partition by i.tenant_id order by k.next_fetch_at) as turn
      from issuer_keys k join issuers i on i.id = k.issuer_id
      where ${IS_DUE}
    ) due order by turn, next_fetch_at limit $1`,
};

export async function dueKeyRefreshes(
  q: Queryable,
  limit: number,
): Promise<readonly { readonly id: IssuerId; readonly tenantId: TenantId }[]> {
  return runPrepared(q, DUE, [limit]);
}

const BEGUN = `returning i.id, i.tenant_id as "tenantId", i.kind, i.issuer, i.jwks_uri as "jwksUri", i.ca,
      k.attempted_at::text as attempt, k.failures`;

/** Another process takes over an attempt that ended without a result after this time. */
const LEASE = `interval '30 seconds'`;

const BEGIN_DUE = {
  name: 'begin_due_key_attempt',
  text: `
    update issuer_keys k set attempted_at = clock_timestamp(), next_fetch_at = clock_timestamp() + ${LEASE}
    from issuers i
    where k.issuer_id = $1 and i.id = k.issuer_id and ${IS_DUE}
    ${BEGUN}`,
};
const BEGIN = {
  name: 'begin_key_attempt',
  text: `
    update issuer_keys k set attempted_at = clock_timestamp(), next_fetch_at = clock_timestamp() + ${LEASE}
    from issuers i where k.issuer_id = $1 and i.id = k.issuer_id and i.jwks is null
    ${BEGUN}`,
};

/**
 * Begins an attempt. Of several processes that try, one gets it.
 * @param isDueOnly true: only if the attempt is still due, and the issuer enabled
 * @returns undefined if there is nothing to fetch: not due any longer, a pasted key set, no such issuer
 */
export async function beginKeyAttempt(
  q: Queryable,
  id: IssuerId,
  { isDueOnly }: { readonly isDueOnly: boolean },
): Promise<KeyAttempt | undefined> {
  const [begun] = await runPrepared<KeyAttempt>(q, isDueOnly ? BEGIN_DUE : BEGIN, [id]);
  return begun;
}

const SAVE = {
  name: 'save_issuer_keys',
  text: `
    update issuer_keys set keys = $3::jsonb, fetched_at = clock_timestamp(), error = null, failures = 0,
      next_fetch_at = clock_timestamp() + make_interval(secs => $4)
    where issuer_id = $1 and attempted_at = $2::timestamptz`,
};

/** Stores the keys of an attempt. Has no effect if the attempt is no longer the latest. */
export async function saveKeys(
  q: Queryable,
  { id, attempt }: KeyAttempt,
  keys: readonly IssuerKey[],
  nextInMs: number,
): Promise<void> {
  await runPrepared(q, SAVE, [id, attempt, JSON.stringify(keys), nextInMs / 1000]);
}

const FAIL = {
  name: 'fail_issuer_keys',
  text: `
    update issuer_keys set error = $3, failures = failures + 1, next_fetch_at = clock_timestamp() + make_interval(secs => $4)
    where issuer_id = $1 and attempted_at = $2::timestamptz
    returning fetched_at is null or fetched_at < clock_timestamp() - make_interval(secs => $5) as "isStale"`,
};

/**
 * Stores why an attempt failed; the last keys stay. Has no effect if the attempt is no longer the latest.
 * @returns true if the stored keys are too old to be used, or there are none
 */
export async function saveKeyFailure(
  q: Queryable,
  { id, attempt }: KeyAttempt,
  error: string,
  { nextInMs, maxStalenessMs }: { readonly nextInMs: number; readonly maxStalenessMs: number },
): Promise<boolean> {
  const values = [id, attempt, error, nextInMs / 1000, maxStalenessMs / 1000];
  const [failed] = await runPrepared<{ isStale: boolean }>(q, FAIL, values);
  return failed?.isStale ?? false;
}

/** Enabled issuers with fetched keys, by the state of the keys. */
interface KeyStates {
  /** The last attempt succeeded, or none has failed since. */
  readonly current: number;
  /** The last attempts failed; the last good keys are in use. */
  readonly failing: number;
  /** The keys are too old to be used, or were never fetched. */
  readonly stale: number;
}

const STATES = {
  name: 'issuer_key_states',
  text: `
    select count(*) filter (where not stale and error is null)::int as current,
      count(*) filter (where not stale and error is not null)::int as failing, count(*) filter (where stale)::int as stale
    from (
      select k.error, k.fetched_at is null or k.fetched_at < clock_timestamp() - make_interval(secs => $1) as stale
      from issuer_keys k join issuers i on i.id = k.issuer_id where i.enabled and i.jwks is null
    ) s`,
};

export async function countKeyStates(q: Queryable, maxStalenessMs: number): Promise<KeyStates> {
  const [states] = await runPrepared<KeyStates>(q, STATES, [maxStalenessMs / 1000]);
  return states ?? { current: 0, failing: 0, stale: 0 };
}
