/** Cases that every gRPC client runs against the gRPC listener, and the outcome that each must have. */

import { status } from '@grpc/grpc-js';
import { codeOf } from '../../fuzz/judge.ts';

/** The server never answers a check of this path, so that the client's deadline or cancellation ends it. */
export const HELD_PATH = '/v1/held';
export const DEADLINE_MS = 500;
export const LARGE_BYTES = 4 * 1024 * 1024;
/** The largest message of a check is 17 MiB. */
export const TOO_LARGE_BYTES = 17 * 1024 * 1024 + 1;

export const CHECK = '/envoy.service.auth.v3.Authorization/Check';
export const HEALTH = '/grpc.health.v1.Health/Check';

/** A unary call with the message of one file, in the words of all clients. Go and Python read this table as JSON. */
export interface ClientCase {
  readonly name: string;
  readonly method: string;
  /** The file with the message. */
  readonly message: 'allowed' | 'denied' | 'empty' | 'held' | 'large' | 'too-large';
  /** 0 = the case has no deadline of its own. */
  readonly deadlineMs: number;
  /** The client cancels the call after the server has begun it. */
  readonly isCancelled: boolean;
  /** The gRPC status that the client must report. */
  readonly status: number;
}

/** The meaning that an answer must have. */
type Answer = 'allow' | 'deny' | 'serving';

const plain = { deadlineMs: 0, isCancelled: false, status: status.OK };
export const CASES: readonly (ClientCase & { readonly answer?: Answer })[] = [
  { ...plain, name: 'a check is allowed', method: CHECK, message: 'allowed', answer: 'allow' },
  { ...plain, name: 'a check is denied', method: CHECK, message: 'denied', answer: 'deny' },
  { ...plain, name: 'health is SERVING', method: HEALTH, message: 'empty', answer: 'serving' },
  { ...plain, name: 'a check of 4 MiB is allowed', method: CHECK, message: 'large', answer: 'allow' },
  {
    ...plain,
    name: 'an expired deadline is DEADLINE_EXCEEDED',
    method: CHECK,
    message: 'held',
    deadlineMs: DEADLINE_MS,
    status: status.DEADLINE_EXCEEDED,
  },
  {
    ...plain,
    name: 'a cancelled call is CANCELLED',
    method: CHECK,
    message: 'held',
    isCancelled: true,
    status: status.CANCELLED,
  },
  {
    ...plain,
    name: 'an unknown method is UNIMPLEMENTED',
    method: '/envoy.service.auth.v3.Authorization/Missing',
    message: 'empty',
    status: status.UNIMPLEMENTED,
  },
  {
    ...plain,
    name: 'an unknown service is UNIMPLEMENTED',
    method: '/postern.conformance.Missing/Missing',
    message: 'empty',
    status: status.UNIMPLEMENTED,
  },
  // Last, because grpc-js receives the whole message, and a deadline beside it could pass.
  {
    ...plain,
    name: 'a message over 17 MiB is RESOURCE_EXHAUSTED',
    method: CHECK,
    message: 'too-large',
    status: status.RESOURCE_EXHAUSTED,
  },
];

/** The end of one case, as its client saw it. */
export interface Ended {
  readonly name: string;
  readonly status: number;
  /** The answer in hexadecimal digits; empty if there was none. */
  readonly answer: string;
}

export interface Verdict {
  readonly name: string;
  readonly passed: boolean;
  /** The result that the client reported. */
  readonly saw: string;
}

/** Judges every case. A case that the client did not report fails. */
export function judgeCases(ended: readonly Ended[]): readonly Verdict[] {
  return CASES.map((expected) => {
    const found = ended.find(({ name }) => name === expected.name);
    if (found === undefined) return { name: expected.name, passed: false, saw: 'no report' };
    const answer = Buffer.from(found.answer, 'hex');
    const passed =
      found.status === expected.status && (expected.answer === undefined || isAnswer(expected.answer, answer));
    return {
      name: expected.name,
      passed,
      saw: `${status[found.status] ?? found.status}${shown(expected.answer, answer)}`,
    };
  });
}

/** HealthCheckResponse.status = 1, SERVING = 1. */
const SERVING = Buffer.of(0x08, 0x01);

function isAnswer(expected: Answer, answer: Buffer): boolean {
  switch (expected) {
    case 'allow':
      return answer.length > 0 && codeOf(answer) === 0;
    case 'deny':
      return answer.length > 0 && codeOf(answer) !== 0;
    case 'serving':
      return answer.equals(SERVING);
    default:
      return expected satisfies never;
  }
}

function shown(expected: Answer | undefined, answer: Buffer): string {
  if (expected === undefined || answer.length === 0) return '';
  return expected === 'serving' ? `, ${answer.toString('hex')}` : `, code ${codeOf(answer)}`;
}
