import { describe, expect, test } from 'vitest';
import { compileTenant } from '../../src/decision/compile.ts';
import type { Allow } from '../../src/decision/model.ts';
import { limiterOver, settlingWith } from '../../src/extauthz/limiter.ts';
import type { FinishedRequest } from '../../src/extauthz/ports.ts';
import type { AdmissionRequest } from '../../src/metering/admission.ts';
import { ACME, OWNED_KEY, present, ROUTE_LINES, USER } from './support/little-world.ts';

const line = (method: string, template: string) =>
  present(ROUTE_LINES.find((one) => one.method === method && one.template === template));
const tenant = (settings: object, quotas: object) =>
  compileTenant({ id: ACME, status: 'active', settings, quotas, roles: [], policies: [] });

const ALLOW: Allow = {
  kind: 'allow',
  route: line('POST', '/v1/chat/completions'),
  principal: { ...OWNED_KEY, rateLimitRpm: 7 },
  roles: [],
  tenant: tenant(
    { rate_limit_rpm: 60, max_tokens_per_request: 500, timezone: 'Europe/Berlin' },
    { monthly_tokens: 9000, max_collections: 3 },
  ),
  resources: [],
  model: 'm',
  maxTokens: 200,
  defaultModel: undefined,
  askedTokens: 300,
  askedChoices: 2,
  promptTokens: 70,
  inlineFiles: 2,
};

function asked(allow: Allow): AdmissionRequest {
  const asks: AdmissionRequest[] = [];
  const admission = { kind: 'admitted', reservation: 'r', rate: undefined } as const;
  const limiter = limiterOver({
    admit(ask) {
      asks.push(ask);
      return admission;
    },
    release: () => undefined,
  });
  expect(limiter.admit(allow, 0, 400)).toBe(admission);
  return present(asks[0]);
}

describe('the request to the limits', () => {
  test('has the limits of the tenant and the key, and the amounts in the body', () => {
    expect(asked(ALLOW)).toEqual({
      tenant: ALLOW.tenant,
      principal: ALLOW.principal,
      model: 'm',
      tenantId: ACME,
      tenantRpm: 60,
      keyId: OWNED_KEY.id,
      userId: OWNED_KEY.owner?.id,
      keyRpm: 7,
      metered: true,
      askedTokens: 300,
      askedChoices: 2,
      promptTokens: 70,
      inlineFiles: 2,
      maxTokensPerRequest: 500,
      monthlyTokens: 9000,
      timezone: 'Europe/Berlin',
      createsCollection: false,
      removedCollection: undefined,
      maxCollections: 3,
      readsResponse: false,
      reportsUsage: false,
      decideByMs: 400,
    });
  });

  test('has no key for a user, and no limits for a tenant without limits', () => {
    expect(asked({ ...ALLOW, principal: USER, tenant: tenant({}, {}) })).toMatchObject({
      keyId: undefined,
      userId: USER.id,
      keyRpm: undefined,
      tenantRpm: undefined,
      monthlyTokens: undefined,
      maxTokensPerRequest: undefined,
      maxCollections: undefined,
    });
  });

  test.each([
    ['GET', '/v1/models', { metered: false, createsCollection: false, removedCollection: undefined }],
    ['GET', '/v1/responses/{id}/**', { metered: false, readsResponse: true }],
    ['POST', '/v1/images/generations', { metered: false, reportsUsage: true }],
    ['POST', '/v1/audio/transcriptions', { metered: false, reportsUsage: true }],
    ['POST', '/v1/rerank', { metered: false, reportsUsage: true }],
    ['POST', '/v1/batches/**', { metered: false, reportsUsage: false }],
    ['POST', '/v1/embeddings', { metered: true, createsCollection: false, removedCollection: undefined }],
    ['POST', '/v1/rag/collections', { metered: false, createsCollection: true, removedCollection: undefined }],
    [
      'DELETE',
      '/v1/rag/collections/{collection}',
      { metered: false, createsCollection: false, removedCollection: 'hr' },
    ],
  ])('depends on the kind of the route: %s %s', (method, template, expected) => {
    const resources: Allow['resources'] = template.includes('{') ? [{ kind: 'collections', name: 'hr' }] : [];
    expect(asked({ ...ALLOW, resources, route: line(method, template) })).toMatchObject(expected);
  });
});

test('the access log settles finished requests and renews the reservations of running ones', () => {
  const settled: unknown[] = [];
  const renewed: string[] = [];
  const finished: FinishedRequest = {
    reservation: 'r',
    tenant: 'acme',
    user: undefined,
    key: 'key_1',
    model: 'm',
    route: 'POST /v1/chat/completions',
    usage: { prompt: 1, completion: 2, cached: 0, total: 3, model: 'm' },
    status: 200,
    textBytes: 5,
    responseBytes: 6,
    upstream: 'answered',
  };
  const listener = settlingWith({
    settle: (request) => void settled.push(request),
    renew: (id) => void renewed.push(id),
  });
  listener.finished(finished);
  listener.running('r2');
  expect([settled, renewed]).toEqual([[finished], ['r2']]);
});
