/** The whole HTTP side over a database of its own, with short-lived access tokens and a clock that a test can put forward. */

import { randomBytes } from 'node:crypto';
import { bootstrap } from '../../../src/admin/bootstrap.ts';
import { buildRouteTable } from '../../../src/decision/routes.ts';
import { apiRoutes } from '../../../src/http/api-routes.ts';
import { trustProxies } from '../../../src/http/client-address.ts';
import { createHttp } from '../../../src/http/server.ts';
import { Passwords } from '../../../src/identity/passwords.ts';
import { rotationTimes } from '../../../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../../../src/identity/signing-keys.ts';
import { AccessTokens } from '../../../src/identity/tokens.ts';
import { Live } from '../../../src/live/live.ts';
import type { ChangeListener } from '../../../src/live/ports.ts';
import type { Database } from '../../../src/store/database.ts';
import { ChangeFeed } from '../../../src/store/feed.ts';
import { PostgresLiveSource } from '../../../src/store/live-source.ts';
import { signingKeyStore } from '../../../src/store/signing-keys.ts';
import { freshDatabase } from '../../support/database.ts';

export const ADMIN = { email: 'admin@localhost', password: 'the administrator of a test' } as const;
/** How long an access token lives, and how much longer the server puts up with it. */
export const TOKEN_LIFE_MS = 60_000;
export const TOLERANCE_MS = 30_000;

export interface TestServer {
  readonly url: string;
  readonly db: Database;
  /** Access tokens age by so much; nothing else does. */
  age(ms: number): void;
  /** Ends every session, as an administrator would. */
  endSessions(): Promise<void>;
  close(): Promise<void>;
}

const SECRET_KEY = 'a secret key of tests that is long enough';
const DAY_MS = 86_400_000;

export async function startTestServer(): Promise<TestServer> {
  const fresh = await freshDatabase();
  const { db } = fresh;
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;
  const keys = new SigningKeys({
    store: signingKeyStore(db),
    secretKey: SECRET_KEY,
    times: rotationTimes(TOKEN_LIFE_MS),
    clock: Date.now,
    monotonicMs: () => performance.now(),
    onFault: () => undefined,
  });
  await keys.start();
  const tokens = new AccessTokens({
    keys,
    issuer: 'postern-test',
    audience: 'platform',
    ttlSeconds: TOKEN_LIFE_MS / 1000,
    clock: now,
  });
  const passwords = await Passwords.start({ maxRunning: 2 });
  const random = (size: number): Uint8Array => randomBytes(size);
  await bootstrap({ db, passwords, now: Date.now, random }, ADMIN);
  const listeners: ChangeListener[] = [keys];
  const feed = new ChangeFeed({ db, listeners });
  const live = new Live({
    source: new PostgresLiveSource(db),
    verifier: tokens,
    feed,
    maxCredentials: 1000,
    maxStalenessMs: 300_000,
    monotonicMs: () => performance.now(),
  });
  listeners.push(live);
  await feed.start();
  const table = buildRouteTable([]);
  if (table.kind === 'error') throw new Error(table.message);
  const parts = {
    db,
    feed,
    flush: () => live.forget(),
    now,
    random,
    passwords,
    tokens,
    secretKey: SECRET_KEY,
    login: { refreshIdleMs: 7 * DAY_MS, refreshMs: 30 * DAY_MS, failuresPerAccount: 1000, failuresPerAddress: 1000 },
  };
  const http = createHttp(
    { live, now, random, trusted: trustProxies([]) },
    apiRoutes({
      ...parts,
      origins: undefined,
      live,
      routes: table.table,
      metering: { windowMs: 60_000, tokenEstimate: 1024, metersItself: () => true },
      keySet: tokens,
    }),
  );
  const url = await http.listen({ host: '127.0.0.1', port: 0 });
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
    async close() {
      await http.close();
      keys.close();
      await feed.stop();
      await fresh.close();
    },
  };
}
