/** A receiver of webhooks as a program has it: it verifies the signature (Standard Webhooks 1.0), and keeps the latest events. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

const KEPT = 20;
const MAX_BYTES = 128 * 1024;
/** Older requests may be replayed by a third party. */
const TOLERANCE_SECONDS = 300;

interface EventReceiver {
  /** POST receives an event, GET shows the latest. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** @param secret `whsec_…` */
  verifyWith(secret: string): void;
}

export function createEventReceiver(): EventReceiver {
  let key: Buffer | undefined;
  const latest: unknown[] = [];
  const receive = async (request: IncomingMessage): Promise<number> => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of request) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) return 413;
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks).toString();
    if (key === undefined || !isSigned(request, body, key)) return 401;
    latest.unshift(JSON.parse(body));
    latest.splice(KEPT);
    return 204;
  };
  return {
    handle(request, response) {
      if (request.method === 'POST') {
        receive(request).then(
          (status) => response.writeHead(status).end(),
          () => response.writeHead(400).end(),
        );
        return;
      }
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`${JSON.stringify(latest, null, 2)}\n`);
    },
    verifyWith(secret) {
      key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    },
  };
}

function isSigned({ headers }: IncomingMessage, body: string, key: Buffer): boolean {
  const timestamp = Number(headers['webhook-timestamp']);
  if (!(Math.abs(Date.now() / 1000 - timestamp) < TOLERANCE_SECONDS)) return false;
  const mac = createHmac('sha256', key).update(`${headers['webhook-id']}.${timestamp}.${body}`).digest();
  return String(headers['webhook-signature'])
    .split(' ')
    .some((signature) => {
      const given = Buffer.from(signature.replace(/^v1,/, ''), 'base64');
      return given.length === mac.length && timingSafeEqual(given, mac);
    });
}
