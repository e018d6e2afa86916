/** The product's API over a database of its own, with access tokens that a test can make older. */

import { randomBytes } from 'node:crypto';
import { DEFAULT_TENANT, makeId } from '../../../src/domain/ids.ts';
import { WriteRate } from '../../../src/iam/caller/write-rate.ts';
import { bootstrap } from '../../../src/iam/users/bootstrap.ts';
import { readCredential } from '../../../src/identity/credential.ts';
import { wireApi } from '../../../src/server/api-wiring.ts';
import { NO_LOCAL_GATES } from '../../../src/server/applied.ts';
import { startCredentialCache } from '../../../src/server/credential-cache.ts';
import type { Database } from '../../../src/store/database.ts';
import { freshDatabase } from '../../support/database.ts';
import { openWiring, type Settings, sharedPasswords } from '../../support/wiring.ts';

export const ADMIN = { email: 'admin@localhost', password: 'the administrator of a test' } as const;
/** How long an access token lives, and how much longer the server puts up with it. */
export const TOKEN_LIFE_MS = 60_000;
export const TOLERANCE_MS = 30_000;

export interface TestServer {
  readonly url: string;
  readonly db: Database;
  /** Ages access tokens, and nothing else. */
  age(ms: number): void;
  /** Ends every session, as an administrator would. */
  endSessions(): Promise<void>;
  close(): Promise<void>;
}

const SETTINGS = {
  POSTERN_TOKEN_ACCESS_TTL: `${TOKEN_LIFE_MS / 1000}s`,
  POSTERN_LOGIN_FAILURES_PER_ACCOUNT: '1000',
  POSTERN_LOGIN_FAILURES_PER_ADDRESS: '1000',
} satisfies Settings;

export async function startTestServer(): Promise<TestServer> {
  await using starting = new AsyncDisposableStack();
  const fresh = await freshDatabase();
  starting.defer(() => fresh.close());
  const wiring = await openWiring(fresh.url, SETTINGS, starting);
  const { db } = wiring.store;
  const passwords = await sharedPasswords();
  await bootstrap({ db, passwords, now: Date.now, random: (size) => randomBytes(size) }, ADMIN);
  const services = await startCredentialCache(wiring, starting);
  const { feed, live, tokens } = services;

  // A token that is too old is replaced by one that expired long ago, because the clock of the verifier is the store's.
  let aheadMs = 0;
  const issuedAheadMs = new Map<string, number>();
  const nowMs = Date.now() - 100 * TOKEN_LIFE_MS;
  const subject = { userId: makeId('usr', nowMs, randomBytes(10)), sessionId: makeId('ses', nowMs, randomBytes(10)) };
  const { token: expired } = await tokens.issue({ ...subject, tenantId: DEFAULT_TENANT, nowMs, jti: 'expired' });
  const isOld = (token: string): boolean =>
    aheadMs - (issuedAheadMs.get(token) ?? aheadMs) >= TOKEN_LIFE_MS + TOLERANCE_MS;

  const { http } = wireApi(wiring, {
    services,
    tokens: {
      issuer: tokens.issuer,
      audience: tokens.audience,
      lifetimeMs: tokens.lifetimeMs,
      jwks: () => tokens.jwks(),
      verify: (token) => tokens.verify(isOld(token) ? expired : token),
      async issue(grant) {
        const issued = await tokens.issue(grant);
        issuedAheadMs.set(issued.token, aheadMs);
        return issued;
      },
    },
    resolver: {
      resolve: (credential, ...rest) =>
        live.resolve(
          credential.kind === 'token' && isOld(credential.token) ? readCredential(`Bearer ${expired}`) : credential,
          ...rest,
        ),
    },
    passwords,
    gates: NO_LOCAL_GATES,
    directory: undefined,
    writes: new WriteRate(() => performance.now()),
    draining: () => false,
    onUntrustedForwarding: () => undefined,
    onRefused: () => undefined,
  });
  starting.defer(() => http.close());
  const url = await http.listen({ host: '127.0.0.1', port: 0 });
  const running = starting.move();
  return {
    url,
    db,
    age(ms) {
      aheadMs += ms;
    },
    async endSessions() {
      await db.knex.raw('update sessions set ended_at = now() where ended_at is null');
      await feed.catchUp();
    },
    close: () => running.disposeAsync(),
  };
}
