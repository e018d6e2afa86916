/** The input of a decision about a request that Envoy did not send. */

import type { CheckInput } from './model.ts';

const encoder = new TextEncoder();

/** Returns the input for a request whose credential is already resolved. */
export function checkInput(
  request: Pick<CheckInput, 'method' | 'path' | 'tenant' | 'contentType' | 'clientAddress'> & Partial<CheckInput>,
  body: string | undefined,
): CheckInput {
  return {
    authorization: undefined,
    upgrade: undefined,
    contentEncoding: undefined,
    body: encoder.encode(body ?? ''),
    bodyPartial: false,
    bodyMissing: false,
    ...request,
  };
}
