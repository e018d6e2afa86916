/** Adapts the limits of `metering` to the ports of the check handler. */

import type { Allow } from '../decision/model.ts';
import type { AdmissionRequest } from '../metering/admission.ts';
import type { LimitReadings } from '../metering/limit-readings.ts';
import type { Limits } from '../metering/limits.ts';
import type { FinishedListener, Limiter } from './ports.ts';

export function limiterOver(limits: Pick<Limits, 'admit' | 'release'>): Limiter {
  return {
    admit: (allow, _nowMs, decideByMs) => limits.admit(askOf(allow, decideByMs)),
    release: (reservation) => limits.release(reservation),
  };
}

/** The limits of checks in shadow mode. There is nothing to release. */
export function readingLimiter(readings: Pick<LimitReadings, 'admit'>): Limiter {
  return { admit: (allow) => readings.admit(askOf(allow)), release: () => undefined };
}

function collectionIn(resources: Allow['resources']): string | undefined {
  return resources.find(({ kind }) => kind === 'collections')?.name;
}

export function settlingWith(limits: Pick<Limits, 'settle' | 'renew'>): FinishedListener {
  return { finished: (request) => limits.settle(request), running: (reservation) => limits.renew(reservation) };
}

function askOf(allow: Allow, decideByMs?: number): AdmissionRequest {
  const { tenant, principal, route, resources, askedTokens, askedChoices, promptTokens, inlineFiles } = allow;
  const { settings, quotas } = tenant;
  const key = principal.kind === 'api_key' ? principal : undefined;
  return {
    tenant,
    principal,
    model: allow.model ?? allow.defaultModel,
    tenantId: tenant.id,
    tenantRpm: settings.rate_limit_rpm,
    keyId: key?.id,
    userId: principal.kind === 'user' ? principal.id : principal.owner?.id,
    keyRpm: key?.rateLimitRpm,
    metered: route.tokens,
    askedTokens,
    askedChoices,
    promptTokens,
    inlineFiles,
    maxTokensPerRequest: settings.max_tokens_per_request,
    monthlyTokens: quotas.monthly_tokens,
    timezone: settings.timezone,
    createsCollection: route.counts === 'adds-collection',
    removedCollection: route.counts === 'removes-collection' ? collectionIn(resources) : undefined,
    maxCollections: quotas.max_collections,
    readsResponse: route.readsResponse,
    reportsUsage: route.reportsUsage,
    decideByMs,
  };
}
