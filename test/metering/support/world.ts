/**
 * Several processes and one store with a simulated clock. The test sets the latency of statements, loses answers, lets
 * processes crash or sleep, and reports the ends of requests to any process, any number of times.
 */

import { compileTenant } from '../../../src/decision/compile.ts';
import type { Principal, TenantView } from '../../../src/decision/model.ts';
import { NO_PRICES } from '../../../src/decision/prices.ts';
import { Fault } from '../../../src/domain/errors.ts';
import { makeId, parseTenantId } from '../../../src/domain/ids.ts';
import type { AdmissionRequest, LimitDecision } from '../../../src/metering/admission.ts';
import { Limits, type LimitsParts } from '../../../src/metering/limits.ts';
import type { MeteringStore } from '../../../src/metering/ports.ts';
import { type Reservation, ReservationIds } from '../../../src/metering/reservation-ids.ts';
import type { FinishedUsage } from '../../../src/metering/settlement.ts';
import { MemoryStore } from './memory-store.ts';
import { settle } from './rate-world.ts';

export const TTL_MS = 20_000;
const KEY = Buffer.alloc(16, 7);

type Life = Pick<Process, 'alive'>;

export interface Process {
  readonly limits: Limits;
  readonly processId: string;
  readonly monotonicMs: () => number;
  alive: boolean;
  /** Until then it does nothing by itself: it was stopped, and does not know it. */
  asleepUntilMs: number;
}

/** A request that was admitted and is not over. */
export interface Running {
  readonly reservation: string;
  readonly tenant: string;
  readonly process: Process | undefined;
  readonly admittedMs: number;
  readonly request: AdmissionRequest;
  /** The text that the check's answer carried. */
  readonly charges: string | undefined;
  /** Since when its reservation surely lasts as long as one does. */
  sinceMs: number;
}

/** Returns the tokens that a request may spend. */
export function reservedBy(reservation: Reservation | undefined): number {
  return reservation === undefined ? 0 : reservation.prompt + reservation.answer;
}

export function askOf(parts: Partial<AdmissionRequest>): AdmissionRequest {
  const request = {
    principal: PRINCIPAL,
    model: undefined,
    tenantId: 'acme',
    tenantRpm: undefined,
    keyId: undefined,
    userId: undefined,
    keyRpm: undefined,
    metered: false,
    askedTokens: undefined,
    askedChoices: 1,
    promptTokens: 0,
    inlineFiles: 0,
    maxTokensPerRequest: undefined,
    monthlyTokens: undefined,
    timezone: undefined,
    createsCollection: false,
    removedCollection: undefined,
    maxCollections: undefined,
    readsResponse: false,
    reportsUsage: false,
    ...parts,
  };
  return { tenant: tenantOf(request), ...request };
}

const tenants = new Map<string, TenantView>();

/** Returns the same tenant for the same members, as the gate has it in memory. */
function tenantOf({ tenantId, monthlyTokens }: Pick<AdmissionRequest, 'tenantId' | 'monthlyTokens'>): TenantView {
  const key = `${tenantId} ${monthlyTokens}`;
  const known = tenants.get(key);
  if (known !== undefined) return known;
  const id = parsed(parseTenantId(tenantId));
  const quotas = monthlyTokens === undefined ? {} : { monthly_tokens: monthlyTokens };
  const made = compileTenant({ id, status: 'active', settings: {}, quotas, roles: [], policies: [] });
  tenants.set(key, made);
  return made;
}

const PRINCIPAL: Principal = {
  ...{ kind: 'user', id: makeId('usr', 0, Buffer.alloc(10, 1)), tenantId: parsed(parseTenantId('acme')), roles: [] },
  ...{ platformAdmin: false, sessionId: undefined },
};

function parsed<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a text of this test is malformed');
  return value;
}

export type Keys = Pick<LimitsParts, 'reservationKey' | 'otherReservationKey'>;

export class World {
  nowMs: number;
  prices = NO_PRICES;
  storeUp = true;
  /** Loses the next answer, although the store executed the statement. */
  losesAnswers = false;
  readonly store = new MemoryStore(() => this.nowMs);
  /** How far the clock of each process's machine is ahead of the store's. */
  readonly #localSkewsMs: readonly number[];
  readonly processes: Process[];
  readonly running: Running[] = [];
  /** Every request that was admitted, also after its end. */
  readonly admitted: Running[] = [];
  readonly refused: string[] = [];
  readonly refusals: Extract<LimitDecision, { kind: 'refused' }>[] = [];
  faults = 0;
  pending = 0;
  readonly ids = new ReservationIds(KEY, '0'.repeat(16));
  #started = 0;
  #deliveries: { readonly atMs: number; readonly run: () => void }[] = [];
  readonly #latency: () => number;

  readonly #keysOf: (i: number) => Keys;

  constructor(
    processes: number,
    latency: () => number,
    localSkewsMs: readonly number[] = [],
    keysOf: (i: number) => Keys = () => ({ reservationKey: KEY }),
    startMs = Date.UTC(2026, 10, 21, 12),
  ) {
    this.nowMs = startMs;
    this.#latency = latency;
    this.#keysOf = keysOf;
    this.#localSkewsMs = localSkewsMs;
    this.processes = Array.from({ length: processes }, (_, i) => this.#start(i));
  }

  /** A process is lost, and another takes its place. */
  crash(i: number): void {
    const crashed = this.processes[i];
    if (crashed === undefined) return;
    crashed.alive = false;
    this.processes[i] = this.#start(i);
  }

  #start(i: number): Process {
    const started = ++this.#started;
    const beganMs = this.nowMs - 1000 * started;
    const processId = `${started}`.padStart(16, '0');
    const life = { alive: true, asleepUntilMs: 0 };
    const monotonicMs = (): number => this.nowMs - beganMs;
    const limits = new Limits({
      store: this.#storeOf(life),
      processId,
      ...this.#keysOf(i),
      windowMs: 60_000,
      tokenEstimate: 10,
      fileEstimate: 1000,
      reservationTtlMs: TTL_MS,
      prices: () => this.prices,
      now: () => this.nowMs + (this.#localSkewsMs[i] ?? 0),
      monotonicMs,
    });
    return Object.assign(life, { limits, processId, monotonicMs });
  }

  #storeOf(process: Life): MeteringStore {
    const { store } = this;
    return {
      lease: (...args) => this.#travel(process, () => store.lease(...args)),
      hold: (...args) => this.#travel(process, () => store.hold(...args)),
      settle: (...args) => this.#travel(process, () => store.settle(...args)),
      reserveCollection: (...args) => this.#travel(process, () => store.reserveCollection(...args)),
      changeReservations: (...args) => this.#travel(process, () => store.changeReservations(...args)),
      noteRequests: (...args) => this.#travel(process, () => store.noteRequests(...args)),
      bookLost: (...args) => this.#travel(process, () => store.bookLost(...args)),
      settledLately: (...args) => this.#travel(process, () => store.settledLately(...args)),
      tidy: (...args) => this.#travel(process, () => store.tidy(...args)),
    };
  }

  #travel<T>(process: Life, statement: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#later(() => {
        const lost = this.losesAnswers;
        const done = this.storeUp ? statement() : Promise.reject(new Error('away'));
        const fail = (): void => this.#later(() => this.#deliver(process, () => reject(new Fault('no answer'))));
        done.then((answer) => (lost ? fail() : this.#later(() => this.#deliver(process, () => resolve(answer)))), fail);
      });
    });
  }

  #deliver(process: Life, run: () => void): void {
    if (process.alive) run();
  }

  #later(run: () => void): void {
    this.#deliveries.push({ atMs: this.nowMs + this.#latency(), run });
  }

  admit(process: number, parts: Partial<AdmissionRequest>): void {
    const admitting = this.processes[process];
    if (admitting === undefined) return;
    const { limits } = admitting;
    const request = askOf(parts);
    const note = (admission: LimitDecision): void => {
      this.pending -= 1;
      if (admission.kind === 'refused') {
        this.refused.push(admission.code);
        this.refusals.push(admission);
      }
      if (admission.kind === 'admitted' && admission.reservation !== undefined) {
        const running = {
          reservation: admission.reservation,
          tenant: request.tenantId,
          process: admitting,
          admittedMs: this.nowMs,
          request,
          charges: admission.charges,
          sinceMs: this.nowMs,
        };
        this.running.push(running);
        this.admitted.push(running);
      }
    };
    const fail = (error: unknown): void => {
      if (!(error instanceof Fault)) throw error;
      this.pending -= 1;
      this.faults += 1;
    };
    this.pending += 1;
    try {
      const admission = limits.admit(request);
      if (admission instanceof Promise) void admission.then(note, fail);
      else note(admission);
    } catch (error) {
      fail(error);
    }
  }

  /** Reports the end of a request to one process. The request counts as running until a process has the report. */
  end(process: number, request: Running, parts: Partial<FinishedUsage> & { readonly total?: number } = {}): void {
    const { limits } = this.processes[process] ?? {};
    if (limits === undefined) return;
    const { total, ...rest } = parts;
    limits.settle({
      reservation: request.reservation,
      tenant: request.tenant,
      user: 'usr_1',
      key: undefined,
      model: 'm',
      usage: total === undefined ? undefined : { prompt: 0, completion: total, cached: 0, total, model: 'm' },
      status: 200,
      textBytes: undefined,
      responseBytes: 0,
      upstream: 'answered',
      charges: request.charges,
      ...rest,
    });
  }

  /** A report that the request is still running, to one process. */
  renew(process: number, { reservation }: Running): void {
    this.processes[process]?.limits.renew(reservation);
  }

  /** The tokens that running requests may spend. */
  get reserved(): number {
    return this.running.reduce((sum, { reservation }) => sum + reservedBy(this.ids.read(reservation)), 0);
  }

  /** Time passes in steps of at most a tick, and with it what is under way arrives. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await settle();
    for (;;) {
      const next = this.#deliveries.filter(({ atMs }) => atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined) break;
      this.#deliveries = this.#deliveries.filter((delivery) => delivery !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      await settle();
    }
    this.nowMs = endMs;
  }

  /** Time passes as it does for processes that tick. */
  async live(ms: number, everyMs = 100): Promise<void> {
    for (let passed = 0; passed < ms; passed += everyMs) {
      for (const { limits, asleepUntilMs } of this.processes) if (asleepUntilMs <= this.nowMs) void limits.tick();
      await this.advance(everyMs);
    }
  }
}
