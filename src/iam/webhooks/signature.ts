/** The headers of a delivery, signed as Standard Webhooks 1.0 asks for. */

import { createHmac } from 'node:crypto';
import { secretBytes } from './secret.ts';

/**
 * @param secrets the secret, and during a rotation the former one: a receiver accepts a request if one signature is valid
 * @param timestamp seconds since the epoch, of the attempt
 */
export function signedHeaders(
  secrets: readonly string[],
  { id, timestamp, body }: { readonly id: string; readonly timestamp: number; readonly body: string },
): Readonly<Record<string, string>> {
  const signatures = secrets.map((secret) => {
    const mac = createHmac('sha256', secretBytes(secret)).update(`${id}.${timestamp}.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
