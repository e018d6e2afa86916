/** The Idempotency-Key of a request, for POST under /v1/iam. */

import { REPEATED } from '../decision/model.ts';
import { Refusal } from '../domain/errors.ts';
import { fingerprintOf, type IdempotentRequest } from '../iam/change/idempotency.ts';
import type { Endpoint, RawRequestInput } from './endpoint.ts';

const KEY = /^[\x20-\x7e]{1,255}$/;

/** Reports whether an endpoint takes an Idempotency-Key. Other endpoints ignore the header. */
export function takesIdempotencyKey(endpoint: Pick<Endpoint, 'method' | 'path'>): boolean {
  return endpoint.method === 'POST' && endpoint.path.startsWith('/v1/iam/');
}

/**
 * @returns undefined if the request has no key, or the endpoint takes none
 * @throws Refusal `invalid_parameter` for a key that is empty, too long, repeated, or not printable ASCII
 */
export function readIdempotentRequest(
  endpoint: Pick<Endpoint, 'method' | 'path'>,
  input: RawRequestInput,
): IdempotentRequest | undefined {
  const key = takesIdempotencyKey(endpoint) ? input.header('idempotency-key') : undefined;
  if (key === undefined) return undefined;
  if (key === REPEATED || !KEY.test(key)) {
    throw new Refusal('invalid_parameter', 'Idempotency-Key is one text of 1 to 255 printable ASCII characters.', {
      param: 'Idempotency-Key',
    });
  }
  let fingerprint: Buffer | undefined;
  return {
    key,
    path: endpoint.path.replace(/:(\w+)/g, (_colon, name: string) => encodeURIComponent(input.param(name))),
    // Computed when the change needs it, after the body has passed its schema, so the number of members to sort is
    // bounded.
    get fingerprint() {
      fingerprint ??= fingerprintOf(key, [input.query, input.body ?? {}]);
      return fingerprint;
    },
    replayed: false,
  };
}
