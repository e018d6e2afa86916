/**
 * Endless CheckRequests, from honest ones to noise: the honest are encoded by the complete library, then most of them
 * are damaged.
 */

import { checkRequest, type RequestSpec } from '../../test/extauthz/support/requests.ts';
import type { Random } from './random.ts';

export interface Credentials {
  /** Authorization headers with a valid credential. */
  readonly valid: readonly string[];
}

export interface Fuzzed {
  readonly bytes: Buffer;
  /** Set for an undamaged message: whether credential and route permit an allow. */
  readonly mayAllow: boolean | undefined;
}

/** Encoding is slow beside damaging, so each seed is damaged many times. */
const SEEDS = 64;
const USES_PER_SEED = 200;
const PUBLIC = [
  '/v1/auth/login',
  '/v1/iam/users',
  '/console',
  '/docs/x',
  '/openapi.json',
  '/.well-known/jwks.json',
] as const;
const PATHS = [
  '/v1/chat/completions',
  '/v1/chat/completions/',
  '/v1/chat/completions?x=/v1/auth/login',
  '/v1/models',
  '/v1/models/a%2fb',
  '/v1/models/secret-1',
  '/v1/rag/query',
  '/v1/agents/a1/runs',
  '/v1/finetuning/jobs',
  '/v1/unknown',
  '//v1/auth/login',
  '/v1/auth/../chat/completions',
  '/v1/iam/%2e%2e/chat/completions',
  '/V1/AUTH/login',
  '/v1/authentic',
  '',
  '*',
  'http://x/v1/auth/login',
] as const;
const BODIES = [
  '',
  '{}',
  '{"model":"llama-3-8b","max_tokens":5}',
  '{"model":"m","model":"n"}',
  '{"model":1e400}',
  '{"collections":["a","b"]}',
  '[',
  '\ufeff{}',
  `{"messages":${'['.repeat(500)}${']'.repeat(500)}}`,
] as const;
const HEADERS = [
  ['x-tenant-id', 'acme'],
  ['x-tenant-id', 'globex'],
  ['x-tenant-id', 'acme,acme'],
  ['X-Tenant-ID', ''],
  ['content-type', 'application/json'],
  ['content-encoding', 'gzip'],
  ['content-length', '99'],
  ['upgrade', 'websocket'],
  ['x-envoy-auth-partial-body', 'true'],
  ['x-postern-subject', 'usr_root'],
  ['x_postern_roles', 'admin'],
  ['X-Tenant.ID', 'globex'],
  ['x--tenant-id', 'globex'],
  ['x_api_key', 'psk_x'],
  ['authorization-', 'Bearer x'],
  ['x-forwarded-for', '10.0.0.1, 10.0.0.2'],
  [':path', '/v1/auth/login'],
  ['x-http-method-override', 'GET'],
] as const;

export function createGenerator(random: Random, credentials: Credentials): () => Fuzzed {
  const makeSeed = (): Fuzzed => seed(random, credentials);
  const seeds: Fuzzed[] = Array.from({ length: SEEDS }, makeSeed);
  let made = 0;
  return () => {
    made++;
    const place = random.below(SEEDS);
    if (made % (USES_PER_SEED / 10) === 0) seeds[place] = makeSeed();
    const chosen = seeds[place] ?? makeSeed();
    if (random.chance(0.3)) return chosen;
    if (random.chance(0.03)) return { bytes: noise(random), mayAllow: undefined };
    return { bytes: damage(chosen.bytes, random, seeds), mayAllow: undefined };
  };
}

function seed(random: Random, { valid }: Credentials): Fuzzed {
  const path = random.chance(0.15) ? random.pick(PUBLIC) : random.chance(0.5) ? PATHS[0] : random.pick(PATHS);
  const credential = authorization(random, valid);
  const headers: (readonly [string, string])[] = credential.headers.slice();
  if (random.chance(0.7)) headers.push(['content-type', 'application/json']);
  for (let i = random.chance(0.5) ? 0 : random.below(4); i > 0; i--) headers.push(random.pick(HEADERS));
  const body = random.chance(0.6) ? BODIES[2] : random.pick(BODIES);
  const spec: RequestSpec = {
    method: random.chance(0.7) ? 'POST' : random.pick(['GET', 'DELETE', 'HEAD', 'OPTIONS', 'get', '']),
    path,
    headers,
    body: random.chance(0.5) ? body : Buffer.from(body),
    form: random.chance(0.5) ? 'map' : 'raw',
    ...(random.chance(0.1) ? { size: random.pick([-1, 0, 3, 1_000_000]) } : {}),
    ...(random.chance(0.1) ? { ip: random.pick(['', '::1', 'x', '198.51.100.7']) } : {}),
  };
  const isPublic = PUBLIC.some((known) => known === path);
  return { bytes: checkRequest(spec), mayAllow: isPublic || credential.mayBeValid };
}

interface Authorization {
  readonly headers: readonly (readonly [string, string])[];
  readonly mayBeValid: boolean;
}

function authorization(random: Random, valid: readonly string[]): Authorization {
  const one = random.pick(valid);
  switch (random.below(14)) {
    case 0:
      return { headers: [], mayBeValid: false };
    case 1:
      return { headers: [['authorization', `${one},${one}`]], mayBeValid: false };
    case 2:
      return { headers: [['authorization', one.slice(0, -1)]], mayBeValid: false };
    case 3:
      return { headers: [['authorization', flipCase(one, random)]], mayBeValid: false };
    case 4:
      return {
        headers: [
          ['authorization', one],
          ['Authorization', 'Bearer x'],
        ],
        mayBeValid: false,
      };
    case 5:
      return { headers: [['proxy-authorization', one]], mayBeValid: false };
    default:
      return { headers: [['authorization', one]], mayBeValid: true };
  }
}

/** Another credential that differs in the case of one letter after the scheme, or by a character more. */
function flipCase(text: string, random: Random): string {
  const at = 7 + random.below(text.length - 7);
  const letter = text.charAt(at);
  const flipped = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
  return flipped === letter ? `${text}0` : text.slice(0, at) + flipped + text.slice(at + 1);
}

function noise(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.below(300) }, () => random.below(256)));
}

const LETTERS = Buffer.from('abcxyzABZ019-_./,; "{}[]%\\\r\n\0\x80\xff', 'latin1').values().toArray();

function damage(bytes: Buffer, random: Random, seeds: readonly Fuzzed[]): Buffer {
  let damaged: Buffer = Buffer.from(bytes);
  for (let i = random.chance(0.7) ? 1 : random.below(5); i >= 1; i--) damaged = damageOnce(damaged, random, seeds);
  return damaged;
}

function damageOnce(bytes: Buffer, random: Random, seeds: readonly Fuzzed[]): Buffer {
  const at = random.below(bytes.length + 1);
  switch (random.below(12)) {
    case 0:
      return bytes.subarray(0, at);
    case 1:
    case 2:
    case 3:
      if (at < bytes.length) bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8));
      return bytes;
    case 8:
      if (at < bytes.length)
        bytes[at] = random.pick([0, 1, 0x7f, 0x80, 0xff, 0x0a, 0x12, 0x1a, 0x22, 0x5a, 0x62, 0x6a]);
      return bytes;
    case 9:
    case 10:
      // The same length, another text: the structure stays whole.
      for (let i = at; i < Math.min(bytes.length, at + random.below(12)); i++) bytes[i] = random.pick(LETTERS);
      return bytes;
    case 4:
      return Buffer.concat([bytes.subarray(0, at), noise(random), bytes.subarray(at)]);
    case 5:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(Math.min(bytes.length, at + random.below(40)))]);
    case 6: {
      // A part of itself again, as a repeated field would be.
      const end = Math.min(bytes.length, at + random.below(200));
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at, end), bytes.subarray(end)]);
    }
    case 7: {
      const other = seeds[random.below(seeds.length)]?.bytes ?? bytes;
      return Buffer.concat([bytes.subarray(0, at), other.subarray(random.below(other.length + 1))]);
    }
    default:
      // Two messages in a row are one message: the fields of the second merge into the first.
      return Buffer.concat([bytes, seeds[random.below(seeds.length)]?.bytes ?? bytes]);
  }
}
