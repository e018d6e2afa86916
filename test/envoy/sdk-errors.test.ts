/**
 * The official SDKs, through a real Envoy and the real gate: each error of Postern or of Envoy is one of their typed
 * errors.
 */

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import type { LimitDecision } from '../../src/metering/admission.ts';
import { builtinRoutes, type LittleWorld, littleWorld } from '../extauthz/support/little-world.ts';
import { type Edge, startEdge } from '../support/envoy.ts';
import { type NamedServer, startServer } from '../support/http.ts';

const ADMITTED: LimitDecision = { kind: 'admitted', reservation: undefined, rate: undefined };
const REQUEST_ID = /^req_/;
const MESSAGES = [{ role: 'user' as const, content: 'Hello' }];
const BATCH = [{ custom_id: 'one', params: { model: 'm', max_tokens: 5, messages: MESSAGES } }];

type AnthropicError = InstanceType<typeof Anthropic.APIError>;
type OpenAIError = InstanceType<typeof OpenAI.APIError>;

let admission: LimitDecision;
let checks: number;
let world: LittleWorld;
let server: ExtAuthzServer;
let upstream: NamedServer;
let edge: Edge;
/** An Envoy whose checks nothing answers. */
let orphan: Edge;

beforeAll(async () => {
  world = littleWorld({});
  const gate = createCheckHandler({
    routes: builtinRoutes(),
    resolver: world.resolver,
    limiter: { admit: () => admission, release: () => undefined },
    observer: { observe: () => void checks++ },
    trustedHops: 0,
    forwardCredential: false,
  });
  server = await startExtAuthz(gate, { listen: '127.0.0.1:0' });
  server.setReady(true);
  upstream = await startServer((incoming, outgoing) => {
    incoming.resume();
    incoming.on('end', () => outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":3}'));
  });
  const { address } = upstream;
  const gone = await startServer(() => undefined);
  gone.close();
  edge = await startEdge({ grpc: server.address, http: address, upstream: address });
  orphan = await startEdge({ grpc: gone.address, http: address, upstream: address, isGrpcDown: true });
});

afterAll(async () => {
  await edge.stop();
  await orphan.stop();
  await server.drain(1000);
  upstream.close();
});

beforeEach(() => {
  admission = ADMITTED;
  checks = 0;
});

const anthropic = (apiKey = world.ownedKey, at = edge): Anthropic =>
  new Anthropic({ apiKey, baseURL: at.url, maxRetries: 0 });
const openai = (apiKey = world.ownedKey, at = edge): OpenAI =>
  new OpenAI({ apiKey, baseURL: `${at.url}/v1`, maxRetries: 0 });

function message(client: Anthropic, model = 'm', content = 'Hello'): Promise<unknown> {
  return client.messages.create({ model, max_tokens: 5, messages: [{ role: 'user', content }] });
}

function completion(client: OpenAI, model = 'm', content = 'Hello'): Promise<unknown> {
  return client.chat.completions.create({ model, messages: [{ role: 'user', content }] });
}

/** Returns what a request throws. */
async function thrownBy(asking: Promise<unknown>): Promise<unknown> {
  return asking.then(
    () => undefined,
    (reason: unknown) => reason,
  );
}

async function anthropicError(
  asking: Promise<unknown>,
  type: abstract new (...args: never[]) => Error,
): Promise<AnthropicError> {
  const error = await thrownBy(asking);
  expect(error).toBeInstanceOf(type);
  if (error instanceof Anthropic.APIError) return error;
  throw new Error('the SDK threw no error of an answer');
}

async function openaiError(
  asking: Promise<unknown>,
  type: abstract new (...args: never[]) => Error,
): Promise<OpenAIError> {
  const error = await thrownBy(asking);
  expect(error).toBeInstanceOf(type);
  if (error instanceof OpenAI.APIError) return error;
  throw new Error('the SDK threw no error of an answer');
}

const RATE = { limit: 1, remaining: 0, resetSeconds: 30, windowSeconds: 60 };
const limitRate = (): void => {
  admission = { kind: 'refused', code: 'rate_limit_exceeded', detail: 'No.', rate: RATE };
};
const spendQuota = (): void => {
  admission = { kind: 'refused', code: 'insufficient_quota', detail: 'No.', rate: undefined, resetsAt: undefined };
};
const TOO_LARGE = 'x'.repeat(1_100_000);

describe('Anthropic’s SDK throws its typed error with the request’s id', () => {
  it.each<[string, number, string, string, () => Promise<unknown>, (() => void)?]>([
    ['an unknown key', 401, 'authentication_error', 'invalid_credential', () => message(anthropic('sk-ant-unknown'))],
    ['a deny policy', 403, 'permission_error', 'denied_by_policy', () => message(anthropic(), 'secret-1')],
    [
      'a path below without a route',
      403,
      'permission_error',
      'no_route',
      () => anthropic().post('/v1/messages/other', { body: {} }),
    ],
    [
      'a body that is no object',
      400,
      'invalid_request_error',
      'malformed_body',
      () => anthropic().post('/v1/messages', { body: [] }),
    ],
    ['a body over 1 MiB', 413, 'request_too_large', 'body_too_large', () => message(anthropic(), 'm', TOO_LARGE)],
    ['a rate limit', 429, 'rate_limit_error', 'rate_limit_exceeded', () => message(anthropic()), limitRate],
    ['a spent quota', 429, 'rate_limit_error', 'insufficient_quota', () => message(anthropic()), spendQuota],
  ])('%s: %i %s', async (_name, status, type, code, asking, prepare) => {
    prepare?.();
    const error = await anthropicError(asking(), Anthropic.APIError);
    expect(error).toMatchObject({ status, type, error: { type: 'error', code, status, error: { type } } });
    expect(error.requestID).toMatch(REQUEST_ID);
    expect(error.requestID).toBe(error.headers?.get('x-request-id'));
    expect(error.error).toMatchObject({ request_id: error.requestID, detail: error.apiMessage });
  });

  it('Envoy’s own 503 while no Postern answers', async () => {
    const error = await anthropicError(message(anthropic(world.ownedKey, orphan)), Anthropic.InternalServerError);
    expect(error).toMatchObject({
      status: 503,
      type: 'overloaded_error',
      error: { type: 'error', code: 'unavailable' },
    });
    expect(error.requestID).toEqual(expect.any(String));
    expect(error.requestID).toBe(error.headers?.get('x-request-id'));
  });

  it('a spent quota is not retried', async () => {
    spendQuota();
    const client = new Anthropic({ apiKey: world.ownedKey, baseURL: edge.url, maxRetries: 3 });
    await anthropicError(message(client), Anthropic.RateLimitError);
    expect(checks).toBe(1);
  });
});

describe('Anthropic’s SDK reaches', () => {
  it('token counts, and finds the request’s id in the answer', async () => {
    const answer = await anthropic(world.userToken).messages.countTokens({ model: 'm', messages: MESSAGES });
    expect(answer).toMatchObject({ input_tokens: 3, _request_id: expect.stringMatching(REQUEST_ID) });
  });

  it('token counts of permitted models only', async () => {
    const asking = anthropic().messages.countTokens({ model: 'secret-1', messages: MESSAGES });
    const error = await anthropicError(asking, Anthropic.PermissionDeniedError);
    expect(error.error).toMatchObject({ code: 'denied_by_policy' });
  });

  it('message batches with batches:read and batches:write only', async () => {
    const { batches } = anthropic(world.tenantKey).messages;
    const asked: [string, () => Promise<unknown>][] = [
      ['batches:read', () => batches.list()],
      ['batches:read', () => batches.retrieve('msgbatch_1')],
      ['batches:write', () => batches.create({ requests: BATCH })],
      ['batches:write', () => batches.cancel('msgbatch_1')],
      ['batches:write', () => batches.delete('msgbatch_1')],
    ];
    for (const [permission, asking] of asked) {
      const error = await anthropicError(asking(), Anthropic.PermissionDeniedError);
      expect(error.error).toMatchObject({
        code: 'insufficient_permission',
        detail: expect.stringContaining(permission),
      });
    }
  });
});

describe('the OpenAI SDK throws its typed error with the request’s id', () => {
  it.each<[string, number, string, string, () => Promise<unknown>, (() => void)?]>([
    ['an unknown key', 401, 'authentication_error', 'invalid_credential', () => completion(openai('sk-unknown'))],
    ['a deny policy', 403, 'permission_error', 'denied_by_policy', () => completion(openai(), 'secret-1')],
    ['a body over 1 MiB', 413, 'invalid_request_error', 'body_too_large', () => completion(openai(), 'm', TOO_LARGE)],
    ['a spent quota', 429, 'insufficient_quota', 'insufficient_quota', () => completion(openai()), spendQuota],
  ])('%s: %i %s', async (_name, status, type, code, asking, prepare) => {
    prepare?.();
    const error = await openaiError(asking(), OpenAI.APIError);
    expect(error).toMatchObject({ status, type, code, requestID: expect.stringMatching(REQUEST_ID) });
    expect(error.headers?.get('request-id')).toBeNull();
  });

  it('Envoy’s own 503 while no Postern answers', async () => {
    const error = await openaiError(completion(openai(world.ownedKey, orphan)), OpenAI.InternalServerError);
    expect(error).toMatchObject({
      status: 503,
      type: 'server_error',
      code: 'unavailable',
      requestID: expect.any(String),
    });
  });
});
