/**
 * The end of tokens of an issuer at one of two servers: when does the other one refuse them? An issuer is disabled, its
 * older tokens are revoked, the user of a token is deactivated, and a key without a secret is revoked.
 */

import { join } from 'node:path';
import { makeIssuerKey, signToken } from '../test/support/issuer.ts';
import { checker } from './checker.ts';
import { chatBody, encodeFrame } from './frames.ts';
import { openWorld } from './server-under-test.ts';
import { printTable, quantile, type Row, scratch } from './stack.ts';

const SAMPLES = Number(process.env['BENCH_ISSUER_SAMPLES'] ?? 50);
const MOST_P99_MS = 50;

export interface IssuerFreshness {
  readonly rows: readonly Row[];
  readonly broken: readonly string[];
}

export async function freshnessOfIssuers(): Promise<IssuerFreshness> {
  await using world = await openWorld(join(scratch(), 'world'), { tenants: 1, keys: 1, usable: 1, sessions: 0 });
  await using stack = new AsyncDisposableStack();
  const first = await world.start();
  stack.defer(() => first.stop());
  const second = await world.start();
  stack.defer(() => second.stop());
  const checks = checker(second.grpc);
  stack.defer(() => checks.close());
  const administrator = await world.administratorToken(first);
  const signer = makeIssuerKey('ES256');

  const send = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://${first.http}/v1/iam/${path}`, {
      method,
      headers: {
        authorization: `Bearer ${administrator}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return text === '' ? {} : JSON.parse(text);
  };

  const rows: Row[] = [];
  const broken: string[] = [];
  let made = 0;
  /** @param end ends what the token proves */
  const measure = async (name: string, subject: string, end: (made: Made) => Promise<unknown>): Promise<void> => {
    const delays: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      const number = ++made;
      const value = `https://issuer-${number}.example`;
      const issuer = await send('POST', 'issuers', {
        name: `issuer-${number}`,
        issuer: value,
        audiences: ['postern'],
        jwks: { keys: [signer.jwk] },
        // A token without a key would prove a user.
        ...(subject === 'pod' ? {} : { users: { create: true, default_roles: ['developer'] } }),
      });
      const key = await send('POST', 'api-keys', {
        description: 'pods',
        scopes: ['chat:write'],
        expires_in_days: 1,
        proof: { issuer: `issuer-${number}`, subject: 'pod' },
      });
      // Old enough for a revocation of all tokens before now.
      const iat = Math.floor(Date.now() / 1000) - 5;
      const token = signToken(signer, { iss: value, sub: subject, aud: 'postern', iat, exp: iat + 3600 });
      const frame = encodeFrame({
        method: 'POST',
        path: '/v1/chat/completions',
        authorization: `Bearer ${token}`,
        body: chatBody('llama-3-8b'),
      });
      if (!(await checks.allowed(frame))) throw new Error(`the token of ${value} was refused before the end`);
      await end({ issuer: `issuers/${String(issuer['id'])}`, key: `api-keys/${String(key['id'])}`, source: number });
      const answered = performance.now();
      while (await checks.allowed(frame)) {
        // The loop is the clock.
      }
      delays.push(performance.now() - answered);
      // A tenant has a bounded number of issuers.
      await send('DELETE', `issuers/${String(issuer['id'])}?force=true`);
    }
    const p99 = quantile(delays, 0.99);
    if (p99 > MOST_P99_MS) broken.push(`${name}: refused elsewhere in ${p99.toFixed(1)} ms at p99, not ${MOST_P99_MS}`);
    rows.push({
      'ended here, refused there': name,
      samples: delays.length,
      'p50 ms': quantile(delays, 0.5).toFixed(1),
      'p99 ms': p99.toFixed(1),
      'max ms': Math.max(...delays).toFixed(1),
    });
  };
  await measure('issuer disabled', 'pod', ({ issuer }) => send('PATCH', issuer, { enabled: false }));
  await measure('revoke-before', 'pod', ({ issuer }) => send('POST', `${issuer}/revoke-before`, {}));
  await measure('key revoked', 'pod', ({ key }) => send('DELETE', key));
  await measure('user deactivated', 'person', async ({ source }) => {
    const { data } = await send('GET', `users?q=person&limit=200`);
    const users: readonly Readonly<Record<string, unknown>>[] = Array.isArray(data) ? data : [];
    const user = users.find((one) => one['source'] === `issuer:issuer-${source}`);
    await send('POST', `users/${String(user?.['id'])}/deactivate`);
  });
  printTable('Freshness: the end of tokens of an issuer at one server and the first refusal at another', rows);
  return { rows, broken };
}

interface Made {
  readonly issuer: string;
  readonly key: string;
  /** The number of the issuer. */
  readonly source: number;
}
