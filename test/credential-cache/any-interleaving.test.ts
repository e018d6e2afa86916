/**
 * Compares the cache with a model under any interleaving of changes, their delivery, loads that read at one moment and
 * answer at another (also from a standby that lags), rules compiled step by step between them, evictions, elapsed time,
 * flushes and fail-overs. Rows that are at least as new as the delivered changes must explain every answer, so no
 * answer uses a row from before a delivered change.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CredentialForm } from '../../src/domain/credential.ts';
import { Fault } from '../../src/domain/errors.ts';
import { runs } from '../support/properties.ts';
import { roleName } from './support/ids.ts';
import { ManualRunner } from './support/manual-runner.ts';
import { ModelStore, type PendingLoad, settle } from './support/model-store.ts';
import { inWords, naive, type Rows, readers } from './support/naive.ts';
import {
  aKey,
  aLive,
  aPolicy,
  aSession,
  aTenant,
  aUser,
  DEVELOPER,
  developersToken,
  initialState,
  NOW,
  owned,
  TENANTS_OWN,
  tenantsOwn,
} from './support/world.ts';

const CREDENTIALS: readonly CredentialForm[] = [owned, tenantsOwn, developersToken];

type Command =
  | { readonly kind: 'resolve'; readonly credential: number }
  | { readonly kind: 'change'; readonly what: number }
  | { readonly kind: 'deliver'; readonly count: number }
  | { readonly kind: 'see'; readonly load: number; readonly behind: number }
  | { readonly kind: 'answer'; readonly load: number }
  | { readonly kind: 'answerAll'; readonly behind: number }
  | { readonly kind: 'compile'; readonly work: number }
  | { readonly kind: 'compileAll' }
  | { readonly kind: 'fail'; readonly load: number }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'flush' }
  | { readonly kind: 'forget' }
  | { readonly kind: 'failOver'; readonly lost: number };

/** Each change writes its number into the row, so that what is answered shows which row it came from. */
const CHANGES: readonly ((store: ModelStore, version: number) => void)[] = [
  (store, version) => store.putKey(aKey({ scopes: [`chat:v${version}`] })),
  (store, version) => store.putKey(aKey({ scopes: [`chat:v${version}`], revoked: true })),
  (store, version) => store.putKey(aKey({ scopes: [`chat:v${version}`], disabled: true })),
  (store, version) => store.putKey(aKey({ digest: TENANTS_OWN, userId: undefined, scopes: [`chat:v${version}`] })),
  (store, version) =>
    store.putKey(aKey({ digest: TENANTS_OWN, userId: undefined, scopes: [`chat:v${version}`], revoked: true })),
  (store, version) => store.putUser(aUser({ roles: [roleName(`role-${version}`)] })),
  (store) => store.putUser(aUser({ status: 'deactivated' })),
  (store) => store.deleteUser(DEVELOPER),
  (store, version) => store.putSession(aSession({ ended: version % 2 === 0 })),
  (store, version) => store.putTenant(aTenant({ settings: { default_model: `model-${version}` } })),
  (store, version) => store.putGlobals([aPolicy(`policy-${version}`)]),
];

const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('resolve' as const), credential: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('change' as const), what: fc.nat(CHANGES.length - 1) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('deliver' as const), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('see' as const), load: fc.nat(5), behind: fc.nat(3) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('answer' as const), load: fc.nat(5) }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('answerAll' as const), behind: fc.nat(2) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant('compile' as const), work: fc.nat(3) }) },
  { weight: 4, arbitrary: fc.constant({ kind: 'compileAll' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('fail' as const), load: fc.nat(5) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(1, 10_000, 3_600_000) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'flush' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'forget' as const }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('failOver' as const), lost: fc.nat(3) }) },
);

/** One sequence of commands on a cache with little room: two credentials of a kind, and three tombstones or so. */
class Run {
  readonly store = new ModelStore(initialState(), false);
  readonly runner: ManualRunner;
  readonly world: ReturnType<typeof aLive>;
  /** Settled with whether a Fault was the answer. */
  readonly resolutions: Promise<boolean>[] = [];
  /** The feed's position that has been delivered; undefined between a fail-over and the flush that reports it. */
  delivered: number | undefined = 0;
  #version = 0;

  constructor(abandons: boolean) {
    this.runner = new ManualRunner(abandons);
    this.world = aLive(this.store, { maxCredentials: 2, maxTombstones: 3, runner: this.runner });
  }

  /** Every answer is looked at in the moment in which it comes. */
  resolve(credential: CredentialForm): void {
    const resolution = Promise.resolve(this.world.live.resolve(credential, undefined, NOW)).then(
      (answer) => {
        if (this.delivered !== undefined)
          expect(this.#explained(credential, this.delivered)).toContain(inWords(answer));
        return false;
      },
      (error: unknown) => {
        expect(error).toBeInstanceOf(Fault);
        return true;
      },
    );
    resolution.catch(() => {});
    this.resolutions.push(resolution);
  }

  do(next: Command): void {
    const { store, world } = this;
    switch (next.kind) {
      case 'resolve':
        this.resolve(CREDENTIALS[next.credential] ?? owned);
        break;
      case 'change':
        CHANGES[next.what]?.(store, ++this.#version);
        break;
      case 'deliver':
        if (this.delivered === undefined) break;
        store.deliver(world.live, this.delivered, this.delivered + next.count);
        this.delivered = Math.min(this.delivered + next.count, store.position);
        break;
      case 'see':
        this.#load(next.load)?.see(Math.max(0, store.position - next.behind));
        break;
      case 'answer':
        this.#load(next.load)?.answer();
        break;
      case 'answerAll':
        for (const load of store.pending) {
          load.see(Math.max(0, store.position - next.behind));
          load.answer();
        }
        break;
      case 'compile':
        this.runner.step(next.work);
        break;
      case 'compileAll':
        this.runner.finish();
        break;
      case 'fail':
        this.#load(next.load)?.fail(new Fault('no connection'));
        break;
      case 'wait':
        world.clock.nowMs += next.ms;
        break;
      case 'flush':
        world.live.flush(store.position);
        this.delivered = store.position;
        break;
      case 'forget':
        world.live.forget();
        break;
      case 'failOver':
        for (const load of store.pending) load.see();
        store.failOver(Math.max(0, store.position - next.lost));
        this.delivered = undefined;
        break;
      default:
        next satisfies never;
    }
  }

  /** Returns one of the pending loads, for any index. */
  #load(index: number): PendingLoad | undefined {
    const { pending } = this.store;
    return pending[index % Math.max(1, pending.length)];
  }

  /** The answers that rows at least as new as the position can give, each row for itself. */
  #explained(credential: CredentialForm, position: number): Set<string> {
    let combinations: Partial<Rows>[] = [{}];
    for (const [name, read] of Object.entries(readers(credential))) {
      const seen = new Set<unknown>();
      for (let at = position; at <= this.store.position; at++) seen.add(read(this.store.at(at)));
      combinations = combinations.flatMap((rows) => [...seen].map((row) => ({ ...rows, [name]: row })));
    }
    const nothing: Rows = { key: undefined, session: undefined, user: undefined, tenant: undefined, global: '' };
    return new Set(combinations.map((rows) => naive(credential, { ...nothing, ...rows })));
  }

  /** Everything is delivered and every load answered from now on: then all must come out as the naive way says. */
  async finish(): Promise<void> {
    const { store, world } = this;
    if (this.delivered === undefined) this.do({ kind: 'flush' });
    else store.deliver(world.live, this.delivered);
    this.delivered = store.position;
    store.answersAtOnce = true;
    this.runner.atOnce = true;
    this.runner.finish();
    for (const load of store.pending) load.answer();
    await Promise.all(this.resolutions);
    for (const credential of CREDENTIALS) this.resolve(credential);
    expect(await Promise.all(this.resolutions.slice(-CREDENTIALS.length))).not.toContain(true);
    expect(world.live.stats()).toMatchObject({ fillsInFlight: 0, verificationsInFlight: 0, waiting: 0 });
  }
}

test('a resolution never uses anything from before a change that was delivered', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(command, { maxLength: 80, size: 'max' }), fc.boolean(), async (commands, abandons) => {
      const run = new Run(abandons);
      for (const next of commands) {
        run.do(next);
        await settle();
      }
      await run.finish();
    }),
    { numRuns: runs(300) },
  );
});
