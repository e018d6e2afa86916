/** Computes the exact difference that proposed rules would make for the principals of a tenant. Nothing is saved. */

import { Semaphore } from '../../concurrency/semaphore.ts';
import { onEventLoop, Slices } from '../../credential-cache/slices.ts';
import { decide } from '../../decision/decide.ts';
import { differenceInSteps } from '../../decision/difference/difference.ts';
import type { Box, Difference, ManagementAccess, PrincipalGroup } from '../../decision/difference/model.ts';
import { makeGrant } from '../../decision/grants.ts';
import { MANAGEMENT_PERMISSIONS } from '../../decision/management.ts';
import type { Principal, Snapshot, TenantView } from '../../decision/model.ts';
import { withProposal } from '../../decision/proposed.ts';
import { matchRoute, type RouteTable } from '../../decision/routes.ts';
import { userWithRoles } from '../../decision/tenant.ts';
import { Refusal } from '../../domain/errors.ts';
import type { TenantId } from '../../domain/ids.ts';
import { present } from '../../domain/objects.ts';
import type { Steps } from '../../domain/steps.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import { tenantGone } from '../caller/refusals.ts';
import { listRecent, type StoredDecision } from '../decisions/recent-queries.ts';
import { mayWriteOwner } from '../policies/rules.ts';
import { dayIn, momentOf } from '../usage/period.ts';
import { boxResource } from './difference-box.ts';
import {
  type GroupRow,
  type MeteredGroup,
  meteredRequests,
  principalGroups,
  principalsOf,
  USAGE_DAYS,
} from './difference-queries.ts';
import type { DifferenceBox, RulesDifference } from './difference-schemas.ts';
import { refuseLargeProposal } from './explain.ts';
import { proposedNames, readProposal } from './proposal.ts';
import { bodyOf, inputOf } from './recorded.ts';
import type { DifferenceRequest } from './schemas.ts';
import { policiesNamed } from './who-can-queries.ts';

export interface DifferenceParts extends Pick<AdminParts, 'db'> {
  readonly routes: RouteTable;
}

/** Runs differences between other requests, one after the other, and a bounded number of them at once. */
interface DifferenceRunner {
  /** @throws Refusal `unavailable` if too many wait, or if the work takes too long */
  run<T>(tenant: TenantId, work: (finish: Finish) => Promise<T>): Promise<T>;
}

/** A tenant has at most half of each, so that it cannot keep the others waiting. */
const AT_ONCE = 4;
const WAITING = 16;
/** The longest computation, pauses included. */
const MAX_MS = 20_000;
const RETRY_AFTER_SECONDS = 2;

export function differenceRunner(): DifferenceRunner {
  const monotonicMs = (): number => performance.now();
  const slices = new Slices({ monotonicMs, later: onEventLoop });
  const turns = new Semaphore({ permits: AT_ONCE, maxWaiting: WAITING });
  const finish = async <R extends object>(steps: Steps<R>): Promise<R> => {
    const endsMs = monotonicMs() + MAX_MS;
    const { value } = await slices.run(steps, () => monotonicMs() < endsMs);
    if (value === undefined) throw busy('The difference takes too long to compute. Try again, or change fewer rules.');
    return value;
  };
  return {
    run: async (tenant, work) => {
      const running = turns.run(() => work(finish), tenant);
      if (running === undefined) throw busy('Too many differences are under way at once. Try again shortly.');
      return running;
    },
  };
}

function busy(detail: string): Refusal {
  return new Refusal('unavailable', detail, { retryAfter: RETRY_AFTER_SECONDS });
}

/** A user may use its own keys without a grant. */
const MANAGEMENT: readonly ManagementAccess[] = [
  ...MANAGEMENT_PERMISSIONS.map((permission) => ({ permission, self: false })),
  { permission: 'admin:keys', self: true },
  { permission: 'admin:policies', self: true },
];

/**
 * The endpoint has checked `admin:policies`.
 * @throws Refusal `invalid_field` for a change that could not be saved or is too large; `escalation` for a global policy
 *   unless the caller may write one; `unavailable`
 * @param shadow the recorded decisions that are decided again are those of a trial
 */
export async function differenceOfChange(
  parts: DifferenceParts,
  runner: DifferenceRunner,
  caller: Caller,
  request: DifferenceRequest,
  shadow: boolean,
): Promise<RulesDifference> {
  refuseLargeProposal(request);
  const { effective, global, builtinRoles } = caller.snapshot;
  if (effective === undefined) throw tenantGone();
  const { knex } = parts.db;
  const taken = await policiesNamed(knex, effective.id, proposedNames(request));
  const proposal = readProposal(request, {
    tenant: effective,
    taken,
    mayWriteOwner: (owner) => mayWriteOwner(caller, owner),
  });
  const before: Snapshot = { own: effective, effective, global, builtinRoles };
  return runner.run(effective.id, (finish) =>
    compareRules(parts, { before, after: withProposal(before, proposal) }, caller.nowMs, finish, shadow),
  );
}

/** Runs steps to their end, and other work between them. */
type Finish = <R extends object>(steps: Steps<R>) => Promise<R>;

/** @param versions of the rules, both with the tenant as `own` and as `effective` */
export async function compareRules(
  parts: DifferenceParts,
  versions: { readonly before: Snapshot; readonly after: Snapshot },
  nowMs: number,
  finish: Finish,
  shadow = false,
): Promise<RulesDifference> {
  const { effective } = versions.before;
  if (effective === undefined) throw tenantGone();
  const { knex } = parts.db;
  const now = new Date(nowMs);
  const [{ groups: rows, truncated }, metered, recorded] = await Promise.all([
    principalGroups(knex, effective.id, now),
    meteredRequests(knex, effective.id, now, firstDay(effective, nowMs)),
    recordedDecisions(parts, effective.id, nowMs, shadow),
  ]);
  const groups = rows.map((row): PrincipalGroup => {
    const expiresMs = row.expires_at?.getTime();
    return { principal: principalIn(effective.id, row), count: row.count, ...present({ expiresMs }) };
  });
  const { routes } = parts;
  const found = await finish(differenceInSteps({ ...versions, groups, routes, management: MANAGEMENT, nowMs }));
  const changed = await finish(replayed(parts, versions, recorded));
  const requests = await finish(requestsOf(found, rows, metered, routes));
  return responseOf(found, requests, truncated, {
    checked: recorded.length,
    changed: changed.count,
    sampled: recorded.some(({ row }) => row.sampled),
  });
}

function firstDay({ settings }: TenantView, nowMs: number): string {
  return dayIn(momentOf(settings.timezone, nowMs - (USAGE_DAYS - 1) * 86_400_000));
}

function principalIn(tenantId: TenantId, row: GroupRow): Principal {
  const { roles } = row;
  if (row.kind === 'user') return userWithRoles(row.id, tenantId, roles);
  const owner = row.owner === null ? undefined : { id: row.owner, roles };
  const grant = makeGrant(row.scopes, row.resource_constraints);
  return { kind: 'api_key', id: row.id, tenantId, grant, owner, rateLimitRpm: undefined };
}

interface RecordedRequest {
  readonly row: StoredDecision;
  readonly principal: Principal;
}

/** The largest number of recorded decisions of each outcome that a difference decides again. */
const MAX_RECORDED = 500;

/** Returns the newest recorded decisions that can be decided again: of the tenant's principals, and exact. */
async function recordedDecisions(
  { db: { knex } }: DifferenceParts,
  tenant: TenantId,
  nowMs: number,
  shadow: boolean,
): Promise<readonly RecordedRequest[]> {
  const rows = await Promise.all(
    (['allow', 'deny'] as const).map((outcome) =>
      listRecent(knex, { kind: 'one', tenant }, { shadow, outcome }, { after: undefined, take: MAX_RECORDED }, nowMs),
    ),
  );
  const exact = rows
    .flat()
    .filter(({ principal_id, method, path, facts }) => ![principal_id, method, path].includes(null) && !facts.altered);
  const ids = [...new Set(exact.flatMap(({ principal_id: id }) => id ?? []))];
  const found = ids.length === 0 ? [] : await principalsOf(knex, tenant, new Date(nowMs), ids);
  const principals = new Map(found.map((row): [string, Principal] => [row.id, principalIn(tenant, row)]));
  return exact.flatMap((row) => {
    const principal = principals.get(row.principal_id ?? '');
    return principal === undefined ? [] : [{ row, principal }];
  });
}

/** Decides each recorded request under both versions, and counts those whose outcome differs. */
function* replayed(
  { routes }: Pick<DifferenceParts, 'routes'>,
  { before, after }: { readonly before: Snapshot; readonly after: Snapshot },
  recorded: readonly RecordedRequest[],
): Steps<{ readonly count: number }> {
  let count = 0;
  for (const { row, principal } of recorded) {
    yield;
    const { method, path } = row;
    if (method === null || path === null) continue;
    const input = inputOf(row, method, path, bodyOf({ routes }, row, method, path));
    const match = matchRoute(routes, input);
    const isAllowed = (snapshot: Snapshot): boolean =>
      decide(match, input, { kind: 'proved', principal }, snapshot, row.time.getTime()).kind === 'allow';
    if (isAllowed(before) !== isAllowed(after)) count++;
  }
  return { count };
}

type RequestCounts = ReadonlyMap<Box, number | null>;

/** Counts the metered requests that may lie in each box. A box of routes that are not metered has none. */
function* requestsOf(
  { newlyAllowed, newlyDenied }: Difference,
  groups: readonly GroupRow[],
  metered: readonly MeteredGroup[] | undefined,
  { routes }: RouteTable,
): Steps<RequestCounts> {
  const counts = new Map<Box, number | null>();
  const indices = new Map(groups.map((group, index) => [groupKey(group), index]));
  const byGroup = Map.groupBy(metered ?? [], (row) => indices.get(groupKey(row)) ?? -1);
  const meteredRoutes = new Set(
    routes.filter(({ tokens, reportsUsage }) => tokens || reportsUsage).map(({ permissions }) => namesOf(permissions)),
  );
  for (const box of [...newlyAllowed, ...newlyDenied]) {
    let sum = 0;
    if (!box.management && meteredRoutes.has(box.permissions.join(' '))) {
      for (const index of box.groups) {
        yield;
        for (const { model, requests } of byGroup.get(index) ?? []) {
          if (box.mayName('models', model === '' ? undefined : model)) sum += requests;
        }
      }
    }
    counts.set(box, metered === undefined ? null : sum);
  }
  return counts;
}

function namesOf(permissions: readonly { readonly text: string }[]): string {
  return permissions.map(({ text }) => text).join(' ');
}

/** Names the members that rules read. */
function groupKey(row: GroupRow): string {
  return row.kind === 'user'
    ? JSON.stringify(['user', row.roles])
    : JSON.stringify(['api_key', row.scopes, row.resource_constraints, row.owner === null, row.roles]);
}

const TOO_MANY_PRINCIPALS =
  'The tenant has more users, keys or different grants than one difference reads. Those with the same access as many others were compared.';

function responseOf(
  found: Difference,
  requests: RequestCounts,
  truncated: boolean,
  recent: RulesDifference['recent'],
): RulesDifference {
  const { newlyAllowed, newlyDenied, affected } = found;
  const complete = found.complete && !truncated;
  const reasons = [...(found.reason === undefined ? [] : [found.reason]), ...(truncated ? [TOO_MANY_PRINCIPALS] : [])];
  const listsOf = (management: boolean): RulesDifference['management'] => {
    const shown = (boxes: readonly Box[]): DifferenceBox[] =>
      boxes.filter((box) => box.management === management).map((box) => boxResource(box, requests.get(box) ?? null));
    const [allowed, denied] = [shown(newlyAllowed), shown(newlyDenied)];
    const unchanged = complete && allowed.length === 0 && denied.length === 0;
    return { unchanged, newly_allowed: allowed, newly_denied: denied };
  };
  return {
    ...listsOf(false),
    complete,
    ...(complete ? {} : { reason: reasons.join(' ') }),
    management: listsOf(true),
    affected,
    recent,
  };
}
