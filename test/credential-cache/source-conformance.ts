/**
 * The requirements of the credential cache on every CacheLoader. A load returns a value and the feed's position from
 * one snapshot. The feed reports every change of a value under the key that loads the value.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CacheLoader, Change, Loaded } from '../../src/credential-cache/ports.ts';
import type { IssuerId, KeyDigest, SessionId, TenantId, UserId } from '../../src/domain/ids.ts';
import type { ChangeKind } from '../../src/domain/records.ts';
import { finish } from '../../src/domain/steps.ts';
import { digest, issuerId, sessionId, tenantId, userId } from './support/ids.ts';

export type LoadedKind = Exclude<ChangeKind, 'signing_keys' | 'prices' | 'issuer_sessions'>;

/** One row of each kind exists, at version 0. */
export interface SourceWorld {
  readonly source: CacheLoader;
  readonly digest: KeyDigest;
  readonly user: UserId;
  readonly session: SessionId;
  readonly tenant: TenantId;
  readonly issuer: IssuerId;
  /** Its value of `iss`. */
  readonly iss: string;
  /** One of its subjects. */
  readonly subject: string;
  /**
   * One transaction that writes a version into the row of that kind, in the form that `versions` reads: a key's only
   * scope `chat:v<n>`, a user's only role `role-<n>`, a session's end SESSION_END_MS + n, a tenant's only custom role
   * `role-<n>`, the only global policy `policy-<n>`, an issuer's only audience `v<n>`, the end of a subject's only key
   * SESSION_END_MS + n.
   */
  write(kind: LoadedKind, version: number): Promise<void>;
  /** Returns the changes after a position of the feed. */
  changes(after: number): Promise<readonly Change[]>;
  close(): Promise<void>;
}

export const SESSION_END_MS = 1_900_000_000_000;

const numberIn = (text: string | undefined): number => Number(/[0-9]+$/.exec(text ?? '')?.[0]);

function versions({ source, ...world }: SourceWorld): { readonly [Kind in LoadedKind]: () => Promise<Loaded<number>> } {
  const of = <T>({ value, asOf }: Loaded<T>, read: (value: T) => number): Loaded<number> => ({
    value: read(value),
    asOf,
  });
  return {
    key: async () => of(await source.key(world.digest, true), (key) => numberIn(key?.scopes[0])),
    user: async () => of(await source.user(world.user), (user) => numberIn(user?.roles[0])),
    session: async () =>
      of(await source.session(world.session), (session) => (session?.expiresAtMs ?? Number.NaN) - SESSION_END_MS),
    tenant: async () =>
      of(await source.tenant(world.tenant), (tenant) => numberIn(tenant && finish(tenant).roles[0]?.name)),
    global: async () => of(await source.globalPolicies(), (policies) => numberIn(finish(policies)[0]?.name)),
    issuer: async () => of(await source.issuer(world.iss, true), (issuer) => numberIn(issuer?.audiences[0])),
    link: async () =>
      of(
        await source.link(world.issuer, world.subject),
        (link) => (link.proofs[0]?.expiresAtMs ?? Number.NaN) - SESSION_END_MS,
      ),
  };
}

const KINDS: readonly LoadedKind[] = ['key', 'user', 'session', 'tenant', 'global', 'issuer', 'link'];
const WRITES = 30;

export function liveSourceConformance(name: string, makeWorld: () => Promise<SourceWorld>): void {
  describe(`a cache loader: ${name}`, () => {
    let world: SourceWorld;
    beforeAll(async () => {
      world = await makeWorld();
    });
    afterAll(() => world.close());

    const keyOf = (kind: LoadedKind): string =>
      ({
        key: world.digest,
        user: world.user,
        session: world.session,
        tenant: world.tenant,
        global: '',
        issuer: world.iss,
        link: `${world.issuer} ${world.subject}`,
      })[kind];

    /** Writes, and returns the changes of the row from the feed. */
    async function told(kind: LoadedKind, after: number, write: () => Promise<void>): Promise<readonly Change[]> {
      await write();
      return (await world.changes(after)).filter((change) => change.kind === kind && change.key === keyOf(kind));
    }

    test.each(KINDS)('%s: a load shows what was committed before it, and a position that includes it', async (kind) => {
      const load = versions(world)[kind];
      const before = await load();
      await world.write(kind, before.value + 1);
      const after = await load();
      expect(after.value).toBe(before.value + 1);
      expect(after.asOf).toBeGreaterThan(before.asOf);
    });

    test.each(KINDS)('%s: the feed reports each of its changes, under the key that loads it', async (kind) => {
      const load = versions(world)[kind];
      const before = await load();
      const changes = await told(kind, before.asOf, () => world.write(kind, before.value + 1));
      expect(changes.length).toBeGreaterThan(0);
      expect((await load()).asOf).toBe(changes.at(-1)?.seq);
    });

    test.each(KINDS)('%s: while it is being written, value and position are of one snapshot', async (kind) => {
      const load = versions(world)[kind];
      const first = await load();
      /** The number of the last change of each version. */
      const written = new Map([[first.value, first.asOf]]);
      const seen: Loaded<number>[] = [];
      const done = new AbortController();
      const reader = async (): Promise<void> => {
        while (!done.signal.aborted) seen.push(await load());
      };
      const readers = [reader(), reader(), reader()];
      for (let version = first.value + 1, last = first.asOf; version <= first.value + WRITES; version++) {
        const changes = await told(kind, last, () => world.write(kind, version));
        last = changes.at(-1)?.seq ?? Number.NaN;
        written.set(version, last);
      }
      done.abort();
      await Promise.all(readers);
      for (const { value, asOf } of seen) {
        expect(written.get(value), `version ${value} seen at ${asOf}`).toBeLessThanOrEqual(asOf);
        expect(written.get(value + 1) ?? Number.POSITIVE_INFINITY, `version ${value} seen at ${asOf}`).toBeGreaterThan(
          asOf,
        );
      }
    });

    test('what does not exist is undefined, as of a position', async () => {
      const { asOf } = await world.source.globalPolicies();
      expect(await world.source.key(digest(404), false)).toEqual({ value: undefined, asOf });
      expect(await world.source.user(userId(404))).toEqual({ value: undefined, asOf });
      expect(await world.source.session(sessionId(404))).toEqual({ value: undefined, asOf });
      expect(await world.source.tenant(tenantId('nowhere'))).toEqual({ value: undefined, asOf });
      expect(await world.source.issuer('https://nowhere.example', false)).toEqual({ value: undefined, asOf });
      expect(await world.source.link(world.issuer, 'stranger')).toEqual({
        value: { proofs: [], user: undefined },
        asOf,
      });
      expect(await world.source.link(issuerId(404), 'stranger')).toEqual({
        value: { proofs: [], user: undefined },
        asOf,
      });
    });
  });
}
