/**
 * The demo's own issuer: a small provider that publishes a discovery document and one ES256 key, which it makes at its
 * start, and signs tokens for a workload. It serves no tokens: only the process that started it can sign them. It also
 * receives the events of a webhook, and shows the latest.
 */

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createEventReceiver } from './event-receiver.ts';

export interface DemoIssuer {
  /** The value of `iss`, for example `http://127.0.0.1:8082`. */
  readonly url: string;
  /**
   * Signs a token.
   * @param lifetime seconds
   */
  sign(claims: { readonly sub: string; readonly aud: string }, lifetime: number): string;
  /** The address that receives events by POST, and shows the latest by GET. */
  readonly eventsUrl: string;
  /** Verifies events with the secret of a webhook: `whsec_…`. */
  verifyEvents(secret: string): void;
  close(): Promise<void>;
}

const EVENTS_PATH = '/events';

/** Rejects with Node's error if it cannot listen. */
export async function startDemoIssuer(host: string, port: number): Promise<DemoIssuer> {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const kid = randomBytes(8).toString('hex');
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const documents: Readonly<Record<string, object>> = {
    '/.well-known/openid-configuration': { issuer: url, jwks_uri: `${url}/jwks` },
    '/jwks': { keys: [{ ...publicKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' }] },
  };
  const events = createEventReceiver();
  const server = createServer((request, response) => {
    if (request.url === EVENTS_PATH) {
      events.handle(request, response);
      return;
    }
    const document = documents[request.url ?? ''];
    response.writeHead(document === undefined ? 404 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(document ?? { error: 'not_found' }));
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    url,
    eventsUrl: url + EVENTS_PATH,
    verifyEvents: events.verifyWith,
    sign(claims, lifetime) {
      const iat = Math.floor(Date.now() / 1000);
      const jti = randomBytes(12).toString('hex');
      const parts = [
        { alg: 'ES256', typ: 'JWT', kid },
        { iss: url, ...claims, iat, exp: iat + lifetime, jti },
      ];
      const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
      const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
      return `${text}.${signature.toString('base64url')}`;
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
