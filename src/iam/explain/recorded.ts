/**
 * Explains a recorded decision: decides the recorded request again, by the current rules. Resource names of a body come
 * from the record, because bodies are not stored.
 */

import type { Resolution } from '../../credential-cache/credential-cache.ts';
import { checkInput } from '../../decision/check-input.ts';
import { type DecisionExplanation, explainDecision } from '../../decision/explain.ts';
import { stepsOf, type Unproved, type UnprovedReason } from '../../decision/explain-steps.ts';
import { type CheckInput, type Identity, INVALID_REASONS, type InvalidReason } from '../../decision/model.ts';
import { matchRoute } from '../../decision/routes.ts';
import { ERRORS } from '../../domain/errors.ts';
import { parseId } from '../../domain/ids.ts';
import type { Caller } from '../caller/caller.ts';
import { orNotFound } from '../caller/refusals.ts';
import { recentResource } from '../decisions/recent.ts';
import { findRecent, type StoredDecision } from '../decisions/recent-queries.ts';
import type { RecentResource } from '../decisions/schemas.ts';
import { scopeOf } from '../list/list.ts';
import { shownTo } from './explain.ts';
import { actsOutside, type ExplainParts, resolveById, visibleTenant } from './resolve.ts';
import type { ExplainRequest } from './schemas.ts';

interface RecordedExplanation extends DecisionExplanation {
  /** True if the current decision has the recorded code and policy. */
  readonly same: boolean;
  readonly note: string;
}

/**
 * The reason why a decision is not explained. `unknown_principal` includes principals and tenants that the caller must
 * not see.
 */
type NotExplained = 'unreadable' | 'altered' | 'unknown_principal';

export interface ExplainedDecision extends RecentResource {
  /** The recorded request as a body for `explain` and `simulate`; null if the record is not exact. */
  readonly request: ExplainRequest | null;
  readonly explanation: RecordedExplanation | null;
  readonly not_explained: NotExplained | null;
}

/** @throws Refusal `not_found` for a request id without a record, or with a record of another tenant */
export async function readRecent(parts: ExplainParts, caller: Caller, requestId: string): Promise<ExplainedDecision> {
  const id = parseId('req', requestId);
  const row = orNotFound(id && (await findRecent(parts.db.knex, scopeOf(caller), id, caller.nowMs)), 'recent decision');
  const shown = recentResource(row);
  const { method, path, facts } = row;
  if (method === null || path === null) {
    return { ...shown, request: null, explanation: null, not_explained: 'unreadable' };
  }
  if (facts.altered) return { ...shown, request: null, explanation: null, not_explained: 'altered' };
  const body = bodyOf(parts, row, method, path);
  const request = requestOf(row, method, path, body);
  const resolution = await resolutionOf(parts, caller, row);
  if (resolution === undefined) return { ...shown, request, explanation: null, not_explained: 'unknown_principal' };
  const input = inputOf(row, method, path, body);
  // Without the state of the limits, because the state at the time of the decision is not stored.
  const explanation = explainDecision(
    matchRoute(parts.routes, input),
    input,
    resolution.identity,
    resolution.snapshot,
    row.time.getTime(),
    { unproved: unprovedOf(resolution.identity) },
  );
  return { ...shown, request, explanation: shownTo(caller, asRecorded(row, explanation)), not_explained: null };
}

/**
 * Resolves the principal in the tenant that the request named; undefined if the caller must not see it or it does not
 * exist.
 */
async function resolutionOf(parts: ExplainParts, caller: Caller, row: StoredDecision): Promise<Resolution | undefined> {
  const { principal_type: type, principal_id: id, facts, time } = row;
  if (type === null || id === null) return { identity: unproved(row), snapshot: undefined };
  const tenant = facts.tenant ?? undefined;
  const visible = visibleTenant({ kind: 'caller', caller });
  const found = await resolveById(parts, visible, id, tenant, time.getTime());
  return found === undefined || actsOutside(visible, found.resolution.identity, tenant) ? undefined : found.resolution;
}

/** Returns the recorded result of steps 5 to 8, because the credential is not stored. */
function unproved({ code, facts }: StoredDecision): Identity {
  if (code === 'token_expired') return { kind: 'expired' };
  if (code !== 'invalid_credential') return { kind: 'missing' };
  return { kind: 'invalid', reason: INVALID_REASONS.find((reason) => reason === facts.reason) ?? 'unknown' };
}

/** Returns the recorded reason in the words of an explanation. The record does not name the key or the user. */
function unprovedOf(identity: Identity): Unproved | undefined {
  const reason = identity.kind === 'invalid' ? explainedReason(identity.reason) : undefined;
  return reason && { reason, key_id: null, user_id: null, time: null };
}

/** Returns undefined for a reason of step 6. */
function explainedReason(reason: InvalidReason): UnprovedReason | undefined {
  switch (reason) {
    case 'malformed':
    case 'scheme':
      return undefined;
    case 'key_expired':
      return 'expired';
    case 'user_deactivated':
    case 'user_missing':
      return 'owner_deactivated';
    default:
      return reason;
  }
}

/**
 * Returns a body with the resources that the decision read; undefined if the route reads no body or the body was not
 * valid.
 */
export function bodyOf(
  { routes }: Pick<ExplainParts, 'routes'>,
  row: StoredDecision,
  method: string,
  path: string,
): string | undefined {
  const match = matchRoute(routes, { method, path, upgrade: undefined });
  if (match.kind !== 'matched' || !match.route.readsBody || row.code === 'malformed_body') return undefined;
  const named = (kind: string): readonly string[] =>
    row.resources
      .slice(match.resources.length)
      .filter((text) => text.startsWith(`${kind}/`) && text.length > kind.length + 1)
      .map((text) => text.slice(kind.length + 1));
  const [model] = named('models');
  const collections = named('collections');
  return JSON.stringify({
    ...(model === undefined ? {} : { model }),
    ...(collections.length === 0 ? {} : { collections }),
    ...(row.facts.asked_tokens === null ? {} : { max_tokens: row.facts.asked_tokens }),
  });
}

function requestOf(row: StoredDecision, method: string, path: string, body: string | undefined): ExplainRequest {
  return {
    ...(row.principal_id === null ? {} : { subject: row.principal_id }),
    ...(row.facts.tenant === null ? {} : { tenant_id: row.facts.tenant }),
    method,
    path,
    client_ip: row.client_ip,
    time: row.time.toISOString(),
    ...(body === undefined ? {} : { body, content_type: 'application/json' }),
  };
}

export function inputOf(row: StoredDecision, method: string, path: string, body: string | undefined): CheckInput {
  return checkInput(
    {
      method,
      path,
      tenant: row.facts.tenant ?? undefined,
      upgrade: row.facts.upgrade ? 'websocket' : undefined,
      contentType: body === undefined ? undefined : 'application/json',
      bodyPartial: row.code === 'body_too_large',
      clientAddress: row.client_ip ?? undefined,
    },
    body,
  );
}

const NOTE =
  'This explanation decides the recorded request again, at its original time, with the current rules. The rules may have changed since.';
const LIMITS_NOTE =
  'The limit is the recorded one. The steps before it are decided again with the current rules, which may have changed since.';
const OTHER_NOTE =
  'The current decision differs from the recorded one, because the rules, the principal or its credential have changed since.';

const LIMIT_STEPS = { rate_limit_exceeded: 16, insufficient_quota: 17 } as const;

function asRecorded(row: StoredDecision, explanation: DecisionExplanation): RecordedExplanation {
  const { code, detail } = row;
  if (explanation.code === 'allow' && (code === 'rate_limit_exceeded' || code === 'insufficient_quota')) {
    const ending = { line: LIMIT_STEPS[code], outcome: 'denied', code, status: ERRORS[code].status, detail } as const;
    const { status } = ending;
    return {
      ...explanation,
      decision: 'deny',
      status,
      code,
      detail,
      would_deny: null,
      steps: stepsOf(ending, undefined),
      same: true,
      note: LIMITS_NOTE,
    };
  }
  const same = explanation.code === code && explanation.policy === row.policy;
  // Only the record has the error of a body.
  const steps = same
    ? explanation.steps.map((step) => (step.outcome === 'denied' ? { ...step, detail } : step))
    : explanation.steps;
  return {
    ...explanation,
    detail: same && code !== 'allow' ? detail : explanation.detail,
    steps,
    same,
    note: same ? NOTE : OTHER_NOTE,
  };
}
