/** The form of an attack, and what attacks share. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, type Edge, nameOf, type Request } from './connection.ts';
import type { InnocentRequest } from './innocents.ts';
import type { Mesh, Stand } from './stand.ts';

/** The attacker's own tenant. */
export const ATTACKER = 'attacker';
/** The attacker's address, for Envoy. */
export const ATTACKER_ADDRESS = '127.0.2.1';
/** Longer than any time that Envoy or Postern gives a request. */
const PATIENCE_MS = 60_000;
const LOST_PAUSE_MS = 100;
/**
 * `BENCH_PACE=full`: every attacker sends the next request after each answer, so that a faster server gets more
 * requests.
 */
export const FULL_PACE = process.env['BENCH_PACE'] === 'full';

/** All that the attacker's process needs; it goes there as JSON. */
export interface Target {
  readonly edge: Edge;
  readonly mesh: Mesh;
  /** `host:port` of Postern's HTTP listener, for changes by the administrator that belong to an attack. */
  readonly http: string;
}

/** Made before the attack; it goes to the attacker's process as JSON. */
export interface Ammunition {
  /** Keys and access tokens. */
  readonly credentials?: readonly string[];
  readonly bodies?: readonly string[];
  /** How often each step is done, or how many there are of something; the attack knows. */
  readonly counts?: readonly number[];
  /** Shown beside the result: the form of the attack that validation still accepts. */
  readonly form?: string;
  /**
   * Sent by the innocents beside their mix: one part in the quiet time, the other at the same rate during the attack.
   */
  readonly cold?: readonly InnocentRequest[];
}

/** The answers to the attacker, counted by name. */
export type Tally = Record<string, number>;

export interface Aftermath {
  readonly note: string;
  /** A sentence for each goal that was missed. */
  readonly broken: readonly string[];
}

export interface Attack {
  readonly number: number;
  readonly title: string;
  /** The share of innocent requests that may be 503 or lost. Default: 0. */
  readonly mayFail?: number;
  /** True: Envoy traces. Default: it does not. */
  readonly traces?: boolean;
  /** Returns how long it takes, for an attack that cannot be shorter. Default: BENCH_SECONDS. */
  readonly durationMs?: (nowMs: number) => number;
  /** Runs before the load begins. */
  readonly prepare?: (stand: Stand) => Promise<Ammunition>;
  /** Runs in a process of its own. Ends soon after that time, milliseconds since the epoch. */
  readonly run: (target: Target, ammunition: Ammunition, untilMs: number) => Promise<Tally>;
  /** Runs after the attack. @param got what `run` returned */
  readonly after?: (stand: Stand, got: Tally) => Promise<Aftermath>;
}

export function count(tally: Tally, name: string, by = 1): void {
  tally[name] = (tally[name] ?? 0) + by;
}

/**
 * Sends one request after the other on each connection.
 *
 * @param perSecond the maximum on all connections together; the full pace has no such bound
 */
export async function hammer(
  edge: Edge,
  connections: number,
  request: Request,
  untilMs: number,
  perSecond = Number.POSITIVE_INFINITY,
): Promise<Tally> {
  const tally: Tally = {};
  const everyMs = FULL_PACE ? 0 : (connections * 1000) / perSecond;
  const loop = async (_: unknown, index: number): Promise<void> => {
    const connection = new Connection(edge, ATTACKER_ADDRESS);
    let dueMs = Date.now() + (index * everyMs) / connections;
    while (Date.now() < untilMs) {
      await sleep(Math.max(0, Math.min(dueMs, untilMs) - Date.now()));
      dueMs = Math.max(dueMs + everyMs, Date.now());
      const leftMs = untilMs - Date.now();
      const outcome = await connection.send(request, Math.min(PATIENCE_MS, leftMs));
      const late = outcome.kind === 'lost' && Date.now() >= untilMs;
      count(tally, late ? 'without an answer at the end' : nameOf(outcome));
      if (outcome.kind === 'lost' && !late) await sleep(LOST_PAUSE_MS);
    }
    connection.close();
  };
  await Promise.all(Array.from({ length: connections }, loop));
  return tally;
}

/** Calls `step` by a schedule, and waits for all calls in the end. */
export async function paced(
  perSecond: number,
  untilMs: number,
  step: (index: number) => Promise<void> | void,
): Promise<void> {
  const begunMs = Date.now();
  const calls = new Set<Promise<void>>();
  for (let next = 0; Date.now() < untilMs; await sleep(1)) {
    for (; begunMs + (next * 1000) / perSecond <= Date.now(); next++) {
      const call = Promise.resolve(step(next)).finally(() => calls.delete(call));
      calls.add(call);
    }
  }
  await Promise.all(calls);
}

/** Returns the first of the forms that the server accepts; the last one is taken untried if no other is. */
export async function mostAccepted<T>(forms: readonly [T, ...T[]], accepts: (form: T) => Promise<boolean>): Promise<T> {
  let last = forms[0];
  for (const form of forms) {
    last = form;
    if (await accepts(form)) return form;
  }
  return last;
}

/** Makes the attacker's tenant, with a user who holds these roles. Returns the user's access token. */
export async function makeAttacker(stand: Stand, roles: readonly string[] = []): Promise<string> {
  const { administrator, http } = stand;
  await administrator.makeTenant(ATTACKER, { max_tokens_per_request: 4096 }, { monthly_tokens: 1_000_000_000_000 });
  return administrator.makeUser(http, ATTACKER, 'attacker@attacker.example', roles);
}
