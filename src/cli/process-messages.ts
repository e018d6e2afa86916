/** The messages between the supervisor and the processes that it started. */

import type { StoreAddress } from '../server/store.ts';
import type { ProcessIdentity } from '../server/wiring.ts';

export type ProcessKind = 'gate' | 'api';

/** The environment variable that tells a process of this program what it is: a ProcessKind. */
export const PROCESS_KIND = 'POSTERN_PROCESS';

/** From the supervisor. */
export type Order =
  | { readonly kind: 'start'; readonly store: StoreAddress; readonly identity: ProcessIdentity }
  | { readonly kind: 'drain' }
  /** To a gate: apply the change feed and answer with `applied`. */
  | ApplyRequest
  /** To the API: every gate has answered its request. */
  | Applied;

export interface ApplyRequest {
  readonly kind: 'apply';
  readonly request: number;
  /** A sequence number of the change feed; null = everything committed by now. */
  readonly through: number | null;
}

export interface Applied {
  readonly kind: 'applied';
  readonly request: number;
}

/** From a process. */
export type Report =
  /** It takes orders. */
  | { readonly kind: 'hello' }
  /** It listens. */
  | { readonly kind: 'listening'; readonly address: string }
  /** Every REPORT_EVERY_MS: why it cannot serve (empty = ready), and what an operator should know. */
  | { readonly kind: 'state'; readonly reasons: readonly string[]; readonly warnings: readonly string[] }
  /** From the API. */
  | ApplyRequest
  /** From a gate. */
  | Applied;

/** Messages come from this program, but other parts of it use the same channel. */
export function isOrder(message: unknown): message is Order {
  return hasKind(message, ['start', 'drain', 'apply', 'applied']);
}

export function isReport(message: unknown): message is Report {
  return hasKind(message, ['hello', 'listening', 'state', 'apply', 'applied']);
}

function hasKind(message: unknown, kinds: readonly string[]): boolean {
  return typeof message === 'object' && message !== null && 'kind' in message && kinds.includes(String(message.kind));
}
