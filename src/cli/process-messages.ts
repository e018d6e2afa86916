/** The messages between the supervisor and the processes that it started. */

import cluster from 'node:cluster';
import type { Config, Secrets } from '../config/config.ts';
import type { StoreAddress } from '../server/store.ts';
import type { ProcessIdentity } from '../server/wiring-context.ts';

export const KINDS = ['gate', 'api'] as const;

export type ProcessKind = (typeof KINDS)[number];

/** The environment variable with the ProcessKind of a process that the supervisor starts. */
export const PROCESS_KIND = 'POSTERN_PROCESS';

/** Returns the kind of this process; undefined if no supervisor started it. */
export function childKind(): ProcessKind | undefined {
  return cluster.isWorker ? KINDS.find((kind) => kind === process.env[PROCESS_KIND]) : undefined;
}

/** A message from the supervisor. */
export type Order =
  | StartOrder
  | { readonly kind: 'drain' }
  /** To a gate, which applies the change feed and answers with `applied`. */
  | ApplyRequest
  /** To the API: every gate has answered its request. */
  | AppliedMessage;

/**
 * Has the configuration that the supervisor read when it started. A process that read the file itself would decide by
 * an edited file, while the others decide by the former one, or would not start because of an error in it.
 */
export interface StartOrder {
  readonly kind: 'start';
  readonly config: Config;
  readonly secrets: Secrets;
  readonly store: StoreAddress;
  readonly identity: ProcessIdentity;
}

export interface ApplyRequest {
  readonly kind: 'apply';
  readonly request: number;
  /** A sequence number of the change feed; null = everything that is committed. */
  readonly through: number | null;
}

export interface AppliedMessage {
  readonly kind: 'applied';
  readonly request: number;
}

/** A message to the supervisor. */
export type Report =
  /** The process accepts orders. */
  | { readonly kind: 'hello' }
  /** The process listens. */
  | { readonly kind: 'listening'; readonly address: string }
  /** Every REPORT_EVERY_MS: the reasons why the process cannot serve (empty = ready), and warnings for the operator. */
  | { readonly kind: 'state'; readonly reasons: readonly string[]; readonly warnings: readonly string[] }
  /** From the API. */
  | ApplyRequest
  /** From a gate. */
  | AppliedMessage;

/** Other parts of this program use the same channel. */
export function isOrder(message: unknown): message is Order {
  return hasKind(message, ['start', 'drain', 'apply', 'applied']);
}

export function isReport(message: unknown): message is Report {
  return hasKind(message, ['hello', 'listening', 'state', 'apply', 'applied']);
}

function hasKind(message: unknown, kinds: readonly string[]): boolean {
  return typeof message === 'object' && message !== null && 'kind' in message && kinds.includes(String(message.kind));
}
