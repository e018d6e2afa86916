/**
 * The decision: steps 2 to 15 in order. The first step that applies ends it. Total and synchronous: every input gives
 * an Allow, a Deny, or a fault if Envoy did not send a body that the decision reads. Nothing throws, and a request that
 * matches nothing is denied. Rate limits and quotas follow later, because they count.
 */

import type { DenyCode } from '../domain/errors.ts';
import type { TenantId } from '../domain/ids.ts';
import { type BodyFacts, readBody } from './body.ts';
import type {
  Allow,
  CheckInput,
  Decision,
  Deny,
  Identity,
  Principal,
  Resource,
  Route,
  Snapshot,
  TenantView,
  Undecidable,
} from './model.ts';
import { isLeftOut } from './narrowing.ts';
import {
  type AccessQuery,
  accessQuery,
  denied,
  isSpent,
  permitted,
  reportedAllow,
  reportedDeny,
  type Trace,
} from './permitted.ts';
import type { CompiledPolicy } from './policies.ts';
import type { RouteMatch } from './routes.ts';
import { effectiveTenant, OTHER_TENANT } from './tenant.ts';

type Matched = Extract<RouteMatch, { kind: 'matched' }>;

const MISSING: Deny = {
  kind: 'deny',
  code: 'missing_credential',
  detail:
    'The request has no credential. Send an API key or an access token as Authorization: Bearer <credential>, or an API key as x-api-key.',
};
const EXPIRED: Deny = {
  kind: 'deny',
  code: 'token_expired',
  detail: 'The access token has expired. Use the refresh token to get a new one, or log in again.',
};
/** The same text for every credential that proves no principal. */
export const INVALID_CREDENTIAL = 'The credential is not valid.';

export const SUSPENDED = 'The tenant is suspended.';

/** Steps 5 to 8, credential to identity. */
function denyUnauthenticated(identity: Exclude<Identity, { kind: 'proved' }>, route: Route): Deny {
  switch (identity.kind) {
    case 'missing':
      return { ...MISSING, route };
    case 'expired':
      return { ...EXPIRED, route, ...ofTenant(identity) };
    case 'invalid':
      return {
        kind: 'deny',
        code: 'invalid_credential',
        detail: INVALID_CREDENTIAL,
        reason: identity.reason,
        route,
        ...ofTenant(identity),
      };
    default:
      return identity satisfies never;
  }
}

function ofTenant({ tenant }: { readonly tenant?: TenantId }): { readonly tenant?: TenantId } | undefined {
  return tenant === undefined ? undefined : { tenant };
}

function deny(code: DenyCode, detail: string, route: Route, principal: Principal): Deny {
  return { kind: 'deny', code, detail, route, principal };
}

/**
 * Returns the resources of the path and those that the route reads from the body. A resource that neither of them names
 * is unknown.
 */
function resourcesOf(match: Matched, body: BodyFacts | undefined, tenant: TenantView): readonly Resource[] {
  const { route, resources: fromPath } = match;
  const takesUnknown = route.model === 'unknown' || route.collection === 'unknown';
  const takesFromBody = body !== undefined && (route.model === 'body' || route.collection === 'body');
  if (!takesUnknown && !takesFromBody) return fromPath;
  // Most bodies name one model. A growing array would reserve 17 elements.
  if (
    body?.model !== undefined &&
    route.model === 'body' &&
    route.collection !== 'body' &&
    !takesUnknown &&
    fromPath.length === 0
  )
    return [{ kind: 'models', name: body.model }];
  const resources: Resource[] = fromPath.length === 0 ? [] : [...fromPath];
  // The tenant's default model does not count here, because the body may name another one.
  if (route.model === 'unknown') resources.push({ kind: 'models', name: undefined });
  if (route.collection === 'unknown') resources.push({ kind: 'collections', name: undefined });
  if (body === undefined) return resources;
  if (route.model === 'body') {
    if (body.model !== undefined) resources.push({ kind: 'models', name: body.model });
    else if (!names(fromPath, 'models')) resources.push({ kind: 'models', name: tenant.settings.default_model });
  }
  if (route.collection === 'body') {
    for (const name of body.collections) resources.push({ kind: 'collections', name });
    if (body.collections.length === 0 && !names(fromPath, 'collections'))
      resources.push({ kind: 'collections', name: undefined });
  }
  return resources;
}

function names(resources: readonly Resource[], kind: Resource['kind']): boolean {
  return resources.some((resource) => resource.kind === kind);
}

/** Longest list of resources in a detail, in characters. */
const MAX_SPELT = 200;

function spelt(resources: readonly Resource[]): string {
  const text = resources
    .map(({ kind, name }) =>
      name === undefined ? `${kind} (the server finds none in the request)` : `${kind}/${name}`,
    )
    .join(', ');
  return text.length <= MAX_SPELT ? text : 'all resources of the request';
}

export function policyDeny(policy: CompiledPolicy, query: AccessQuery): Deny {
  const permission = query.permissions[0]?.text ?? '';
  return {
    kind: 'deny',
    code: 'denied_by_policy',
    detail: `Policy ${policy.name} denies ${permission}.`,
    policy: policy.name,
    principal: query.principal,
  };
}

const PRINCIPALS = { user: 'user', api_key: 'API key' } as const;

export function permissionDeny(query: AccessQuery): Deny {
  const permission = query.permissions[0]?.text ?? '';
  const { kind, id } = query.principal;
  const detail = isLeftOut(query.principal, query.permissions)
    ? `The scope of the access token does not include ${permission}. Exchange the token again, with a scope that includes it or without a scope.`
    : `The ${PRINCIPALS[kind]} ${id} does not have the permission ${permission}: neither a role, a scope nor a policy gives it. An administrator can look the request id up in the recent decisions, or run postern explain --subject ${id}.`;
  return { kind: 'deny', code: 'insufficient_permission', detail, permission, principal: query.principal };
}

const TOO_MUCH =
  'The request names more resources than the server can check against all rules that apply to them. Name fewer resources in one request.';

/** Steps 12 to 14, deny policies to resources; undefined = permitted. */
function checkPolicies(query: AccessQuery, route: Route, trace: Trace | undefined): Deny | undefined {
  const policy = denied(query);
  if (policy !== undefined) return { ...policyDeny(policy, query), route };
  const reached = permitted(query, trace);
  if (isSpent(query)) return deny('resource_not_permitted', TOO_MUCH, route, query.principal);
  switch (reached) {
    case 'permitted':
      return undefined;
    case 'no_permission':
      return { ...permissionDeny(query), route };
    case 'no_resources': {
      const detail = `${query.permissions[0]?.text ?? ''} is granted, but not for ${spelt(query.resources)}.`;
      return deny('resource_not_permitted', detail, route, query.principal);
    }
    default:
      return reached satisfies never;
  }
}

function modelOf(resources: readonly Resource[]): string | undefined {
  for (const resource of resources) if (resource.kind === 'models') return resource.name;
  return undefined;
}

const USAGE_REQUIRED =
  'The tenant requires streams that report their usage. Send "stream_options": {"include_usage": true}, each member once.';

/** Step 15, token limit, and the allow if the step does not apply. */
function checkTokenLimit(
  match: Matched,
  query: AccessQuery,
  body: BodyFacts | undefined,
  tenant: TenantView,
): Allow | Deny {
  const { route } = match;
  const { principal, resources } = query;
  const { max_tokens_per_request: tenantLimit, default_model: tenantModel } = tenant.settings;
  const metered = route.tokens ? body : undefined;
  const largest = metered?.largestLimit;
  if (largest !== undefined && tenantLimit !== undefined && largest > tenantLimit) {
    const detail = `The request asks for ${largest} tokens, but the tenant allows at most ${tenantLimit} per request. Lower the token limit of the request.`;
    return { ...deny('max_tokens_exceeded', detail, route, principal), param: 'max_tokens', askedTokens: largest };
  }
  if (metered?.reportsUsage === false && route.usageOnRequest && tenant.settings.require_stream_usage === true)
    return { ...deny('usage_required', USAGE_REQUIRED, route, principal), param: 'stream_options' };
  const smallest = metered?.smallestLimit;
  const modelNamed = route.model !== 'body' || body?.model !== undefined || names(match.resources, 'models');
  return {
    kind: 'allow',
    route,
    principal,
    roles: query.builtinRoles.existingRoles(principal, query.own),
    tenant,
    resources,
    model: modelNamed ? modelOf(resources) : undefined,
    maxTokens: !route.tokens
      ? undefined
      : smallest === undefined
        ? tenantLimit
        : Math.min(smallest, tenantLimit ?? smallest),
    defaultModel: modelNamed ? undefined : tenantModel,
    askedTokens: smallest,
    askedChoices: metered === undefined ? 1 : metered.choices * metered.prompts,
    promptTokens: metered?.promptTokens ?? 0,
    inlineFiles: metered?.inlineFiles ?? 0,
  };
}

/** Steps 9 to 15, for a proved principal, and after them the report-only policies, which do not change the result. */
function decideForPrincipal(
  match: Matched,
  input: CheckInput,
  principal: Principal,
  snapshot: Snapshot | undefined,
  nowMs: number,
  trace: Trace | undefined,
): Allow | Deny | Undecidable {
  const { route } = match;
  const own = snapshot?.own;
  if (snapshot === undefined || own === undefined || own.id !== principal.tenantId) {
    return { ...deny('invalid_credential', INVALID_CREDENTIAL, route, principal), reason: 'user_missing' };
  }
  const named = effectiveTenant(principal, input.tenant);
  if (named.kind === 'deny') return deny(named.code, named.detail, route, principal);
  const { effective } = snapshot;
  if (effective === undefined || effective.id !== named.id)
    return deny('tenant_mismatch', OTHER_TENANT, route, principal);
  const tenant = effective.id;
  if (own.status !== 'active' || effective.status !== 'active') {
    return { ...deny('tenant_suspended', SUSPENDED, route, principal), tenant };
  }

  const body = route.readsBody ? readBody(input, route.readsPrompts) : undefined;
  if (body?.kind === 'problem') {
    const { code, detail, param } = body;
    const known = { tenant, resources: match.resources, ...(param === undefined ? {} : { param }) };
    return { ...deny(code, detail, route, principal), ...known };
  }
  if (body?.kind === 'not_sent')
    return { kind: 'fault', cause: 'body_not_sent', route, principal, tenant, resources: match.resources };
  const resources = resourcesOf(match, body, effective);
  const { clientAddress } = input;
  const { permissions } = route;
  const { global, builtinRoles } = snapshot;
  const query = accessQuery({
    principal,
    permissions,
    resources,
    own,
    effective,
    tenantPoliciesApply: true,
    global,
    builtinRoles,
    clientAddress,
    nowMs,
  });
  if (trace !== undefined) trace.query = query;
  const refused = checkPolicies(query, route, trace);
  const decision = refused ?? checkTokenLimit(match, query, body, effective);
  if (decision.kind === 'allow') {
    const policy = reportedDeny(query);
    return policy === undefined ? decision : { ...decision, wouldDeny: policy.name };
  }
  const located = { ...decision, tenant, resources };
  if (refused === undefined || refused.code === 'denied_by_policy' || isSpent(query)) return located;
  const policy = reportedAllow(query);
  if (policy === undefined || checkTokenLimit(match, query, body, effective).kind === 'deny') return located;
  return { ...located, wouldAllow: policy.name };
}

/**
 * Decides one request.
 * @param match the result of `matchRoute`
 * @param snapshot undefined unless the identity is proved
 * @param nowMs milliseconds since the epoch
 * @param trace records what an explanation shows
 */
export function decide(
  match: RouteMatch,
  input: CheckInput,
  identity: Identity,
  snapshot: Snapshot | undefined,
  nowMs: number,
  trace?: Trace,
): Decision {
  switch (match.kind) {
    case 'denied':
      return { kind: 'deny', code: match.code, detail: match.detail };
    case 'public':
      return match;
    case 'matched':
      if (identity.kind !== 'proved') return denyUnauthenticated(identity, match.route);
      return decideForPrincipal(match, input, identity.principal, snapshot, nowMs, trace);
    default:
      return match satisfies never;
  }
}
