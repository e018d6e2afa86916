/** The rules that hold for every answer, checked without the product's own readers and writers. */

import { decodeRequest, readAnswer } from '../../test/extauthz/support/definition.ts';
import { twin } from '../../test/extauthz/support/twin.ts';
import { message, messages, readFields, text } from '../../test/support/protobuf.ts';
import type { Fuzzed } from './generator.ts';

/** `google.rpc.Status.code` of a CheckResponse, as Envoy sees it: 0 when absent. */
export function codeOf(answer: Buffer): number {
  const code = readFields(message(answer, 1)).find((field) => field.number === 1)?.value;
  return typeof code === 'number' ? code : 0;
}

const PUBLIC_PATHS = ['/v1/auth', '/v1/iam', '/console', '/docs', '/openapi.json', '/.well-known/jwks.json'];

export interface Verdict {
  readonly code: number;
  /** Undefined when all is well. */
  readonly complaint: string | undefined;
}

/**
 * @param outcome the outcome of this request that the gate reported to its observer
 * @param credentials valid credentials, without the scheme
 */
export function judge(
  asked: Fuzzed,
  answer: Buffer,
  outcome: string | undefined,
  credentials: readonly string[],
): Verdict {
  const code = codeOf(answer);
  return {
    code,
    complaint:
      code === 0 ? complaintOfAllow(asked, answer, outcome, credentials) : complaintOfDenial(asked, answer, outcome),
  };
}

function complaintOfAllow(
  asked: Fuzzed,
  answer: Buffer,
  outcome: string | undefined,
  credentials: readonly string[],
): string | undefined {
  if (outcome !== 'allow' && outcome !== 'public') return `code 0 after the outcome ${outcome}`;
  const { kind, headers } = readAnswer(answer);
  if (kind !== 'ok') return 'code 0 without an ok_response';
  if (asked.mayAllow === false) return 'an allow without a valid credential';
  if (outcome === 'allow') {
    if (!('x-postern-subject' in headers)) return 'an allow without a subject';
    // Damaged or not: a credential that is nowhere in the message cannot have been proved by it.
    return credentials.some((one) => asked.bytes.includes(one)) ? undefined : 'an allow without a valid credential';
  }
  if (Object.keys(headers).length > 0) return 'a public allow with an identity';
  return PUBLIC_PATHS.some((path) => asked.bytes.includes(path)) ? undefined : 'a public allow without a public path';
}

/**
 * Only a check without the body that its request has, or may have, cannot be decided. A message that a full reader
 * rejects may look like one, because the gate reads no more of a message than it needs.
 */
function mayLackBody(bytes: Buffer): boolean {
  try {
    if (hasRepeatedPart(bytes)) return true;
    const checked = twin(decodeRequest(bytes), 0);
    return checked.kind === 'request' && checked.input.bodyMissing;
  } catch {
    return true;
  }
}

/** Field numbers of attributes, request, http and header_map. */
const PATH_TO_HEADERS = [1, 4, 2, 13];

/**
 * True if a part of the message that should come once comes several times. The gate merges them, as Protocol Buffers
 * demands; the library of the twin keeps the last one, so it sees another request.
 */
function hasRepeatedPart(bytes: Uint8Array): boolean {
  let part = bytes;
  for (const number of PATH_TO_HEADERS) {
    const [first, ...others] = messages(part, number);
    if (first === undefined) return false;
    if (others.length > 0) return true;
    part = first;
  }
  return false;
}

function complaintOfDenial(asked: Fuzzed, answer: Buffer, outcome: string | undefined): string | undefined {
  if (outcome === 'allow' || outcome === 'public') return `a denial after the outcome ${outcome}`;
  if (outcome === 'unavailable' && !mayLackBody(asked.bytes)) return 'a fault';
  const denied = message(answer, 2);
  const body = text(message(denied, 3));
  return body.includes(`"code":"${outcome}"`) ? undefined : `a denial whose body does not say ${outcome}`;
}
