/**
 * One recorded decision: the decision's inputs without body, query and credential. Client texts are cut when they are
 * taken, so that no long request stays in memory, and masked when they are written.
 */

import { type Principal, REPEATED, type Resource } from '../decision/model.ts';
import { withoutQuery } from '../decision/paths.ts';
import { sharedRequestId } from '../domain/client-request-id.ts';
import type { BudgetId } from '../domain/ids.ts';
import { type CheckCode, type CheckOutcome, tenantOf } from './check-outcome.ts';
import { MASKING_ROOM, maskText } from './masking.ts';

/** A recorded decision as a row of the table `recent_decisions`. */
export interface RecentDecisionRow {
  readonly request_id: string;
  /** RFC 3339. */
  readonly time: string;
  /** Empty if no tenant is known. */
  readonly tenant_id: string;
  readonly outcome: 'allow' | 'deny';
  readonly code: CheckCode;
  /** Other decisions of the tenant and outcome at that time were not recorded. */
  readonly sampled: boolean;
  readonly principal_type: Principal['kind'] | null;
  readonly principal_id: string | null;
  readonly method: string | null;
  readonly path: string | null;
  readonly route: string | null;
  readonly permission: string | null;
  readonly resources: readonly string[];
  readonly client_ip: string | null;
  readonly policy: string | null;
  readonly detail: string;
  readonly facts: RecordedFacts;
  /** Unique in the tenant: names the day, principal, route and model that this is the first allow of. Null: none. */
  readonly first_of: string | null;
  /** The check changed nothing. */
  readonly shadow: boolean;
  /** Envoy's `x-request-id` of a check in shadow mode. */
  readonly client_request_id: string | null;
  /** The report-only policies that would have changed the outcome. */
  readonly would_deny: string | null;
  readonly would_allow: string | null;
}

/** Facts for the explanation only. */
export interface RecordedFacts {
  /** X-Tenant-ID. Null: absent. Empty: repeated. */
  readonly tenant: string | null;
  /** The request asks for an upgrade of the connection. */
  readonly upgrade: boolean;
  /** The reason why the credential proves no principal. */
  readonly reason: string | null;
  /** The largest token limit in the body, for `max_tokens_exceeded`. */
  readonly asked_tokens: number | null;
  /** The budget without room for the request, for `insufficient_quota`. Absent in older records. */
  readonly budget?: BudgetId | null;
  /** A text was cut or masked, or resources were left out. The decision cannot be repeated from the record. */
  readonly altered: boolean;
}

/** A decision that waits for the writer. */
export interface TakenDecision extends Omit<RecentDecisionRow, 'sampled' | 'time' | 'resources' | 'route'> {
  readonly startedAtMs: number;
  readonly route: { readonly method: string; readonly template: string } | undefined;
  readonly resources: readonly Resource[];
  /** An upper bound of its memory. */
  readonly bytes: number;
}

const MAX_METHOD = 32;
const MAX_PATH = 1024;
const MAX_RESOURCES = 16;
const MAX_DETAIL = 512;
const MAX_TENANT = 128;
const MAX_ADDRESS = 64;
/** The memory of the members with a fixed size. */
const BASE_BYTES = 512;
const NO_RESOURCES: readonly Resource[] = [];

/** Returns the record of a check. Every check calls it: it copies no text of a short request. */
export function takeDecision(outcome: CheckOutcome, kind: 'allow' | 'deny'): TakenDecision {
  const { decision, input } = outcome;
  const known = decision === undefined || decision.kind === 'public' ? undefined : decision;
  const denial = decision?.kind === 'deny' ? decision : undefined;
  // The path without its query, the names of resources and the detail may be parts of the target.
  const targetLength = input?.path.length ?? 0;
  const path = input === undefined ? null : taken(withoutQuery(input.path), MAX_PATH, targetLength);
  const resources = known?.resources ?? NO_RESOURCES;
  const first = resources.length > MAX_RESOURCES ? resources.slice(0, MAX_RESOURCES) : resources;
  const isLong = targetLength > MAX_PATH + MASKING_ROOM;
  const some = isLong ? first.map(copied) : first;
  const detail = taken(denial?.detail ?? '', MAX_DETAIL, targetLength);
  const tenant = input?.tenant === REPEATED ? '' : input?.tenant === undefined ? null : taken(input.tenant, MAX_TENANT);
  return {
    request_id: outcome.requestId,
    startedAtMs: outcome.startedAtMs,
    tenant_id: tenantOf(decision),
    outcome: kind,
    code: outcome.code,
    principal_type: known?.principal?.kind ?? null,
    principal_id: known?.principal?.id ?? null,
    method: input === undefined ? null : taken(input.method, MAX_METHOD),
    path,
    route: known?.route,
    permission: known?.route?.permissions[0].text ?? null,
    resources: some,
    client_ip: input?.clientAddress === undefined ? null : taken(input.clientAddress, MAX_ADDRESS),
    policy: denial?.policy ?? null,
    detail,
    facts: {
      tenant,
      upgrade: input?.upgrade !== undefined,
      reason: denial?.reason ?? null,
      asked_tokens: denial?.askedTokens ?? null,
      budget: denial?.budgetId ?? null,
      altered: first !== resources,
    },
    first_of: null,
    shadow: outcome.shadow === true,
    client_request_id: outcome.shadow === true ? (sharedRequestId(outcome.clientRequestId) ?? null) : null,
    would_deny: (decision?.kind === 'allow' && decision.wouldDeny) || null,
    would_allow: denial?.wouldAllow ?? null,
    bytes:
      BASE_BYTES +
      2 * (((isLong ? path?.length : targetLength) ?? 0) + detail.length + (tenant?.length ?? 0) + bytesOf(some)),
  };
}

/** Returns the row of a taken decision. Its texts are masked, cut and storable. */
export function rowOf(taken: TakenDecision, sampled: boolean): RecentDecisionRow {
  const { startedAtMs, route, resources, bytes: _bytes, ...same } = taken;
  let altered = same.facts.altered;
  const shown = (text: string, max: number): string => {
    const stored = storable(maskText(text)).slice(0, max);
    if (stored !== text) altered = true;
    return stored.toWellFormed();
  };
  const method = same.method === null ? null : shown(same.method, MAX_METHOD);
  const path = same.path === null ? null : shown(same.path, MAX_PATH);
  const names = resources.map(({ kind, name }) => shown(`${kind}/${name ?? ''}`, MAX_PATH));
  const tenant = same.facts.tenant === null ? null : shown(same.facts.tenant, MAX_TENANT);
  const address = same.client_ip === null ? null : shown(same.client_ip, MAX_ADDRESS);
  return {
    ...same,
    time: new Date(startedAtMs).toISOString(),
    sampled,
    method,
    path,
    route: route === undefined ? null : `${route.method} ${route.template}`,
    resources: names,
    client_ip: address,
    detail: storable(maskText(same.detail)).slice(0, MAX_DETAIL).toWellFormed(),
    facts: { ...same.facts, tenant, altered },
  };
}

/**
 * Copies the beginning of a long text, because a slice would keep the whole text in memory. @param length the length of
 * the text that this one is a part of; default: its own
 */
function taken(text: string, max: number, length = text.length): string {
  return length <= max + MASKING_ROOM ? text : Buffer.from(text.slice(0, max + MASKING_ROOM)).toString();
}

/** Copies the name of a resource, also one with an unpaired surrogate. */
function copied({ kind, name }: Resource): Resource {
  return { kind, name: name === undefined ? undefined : Buffer.from(name, 'utf16le').toString('utf16le') };
}

function bytesOf(resources: readonly Resource[]): number {
  let bytes = 0;
  for (const { name } of resources) bytes += 32 + (name?.length ?? 0);
  return bytes;
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}
