/** A world in a PostgreSQL of its own, and Postern servers on it, each a process as in production. */

import { randomBytes } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import type { SessionId, TenantId, UserId } from '../src/domain/ids.ts';
import { rotationTimes } from '../src/identity/signing-key-plan.ts';
import { SigningKeys } from '../src/identity/signing-keys.ts';
import { AccessTokens } from '../src/identity/tokens.ts';
import { openDatabase } from '../src/store/database.ts';
import { startEmbedded } from '../src/store/embedded/embedded.ts';
import { migrate } from '../src/store/migrate.ts';
import { signingKeyStore } from '../src/store/signing-keys.ts';
import { openSessions, type Population, populate, sessionOf, userOf } from './population.ts';
import { freePort, startPinned } from './stack.ts';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const ADMIN = { email: 'admin@localhost', password: 'a benchmark administrator' };
const ISSUER = 'https://postern.example/benchmark';
const AUDIENCE = 'platform';
/** The same each time, for data that is kept from one run to the next. */
const secretKey = 'not a secret: the key of the benchmarks';

export interface ServerUnderTest {
  readonly grpc: string;
  readonly http: string;
  readonly admin: string;
  readonly pid: number;
  readonly readyMs: number;
  /** Default: SIGTERM. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface World extends AsyncDisposable {
  /** The database's URL. */
  readonly url: string;
  /**
   * @param options.settings environment variables beside those that the world needs
   * @param options.main the main file of another checkout; default: this one's
   */
  start(options?: {
    readonly notifications?: boolean;
    readonly settings?: NodeJS.ProcessEnv;
    readonly main?: string;
  }): Promise<ServerUnderTest>;
  /** Access tokens of the first users, each with a session of its own. */
  tokens(count: number): Promise<string[]>;
  administratorToken(server: ServerUnderTest): Promise<string>;
  /** Stops PostgreSQL while servers use it; what it answers starts it again. */
  stopDatabase(): Promise<() => Promise<void>>;
}

/** Fills a database that is migrated and may have been filled before. */
export type Filler = (client: pg.Client) => Promise<void>;

export async function openWorld(
  directory: string,
  shape: (Population & { readonly sessions: number }) | Filler,
): Promise<World> {
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  const startDatabase = () => startEmbedded({ dataDir: join(directory, 'data'), durable: true });
  let embedded = await startDatabase();
  const db = openDatabase({ url: embedded.url });
  await migrate(db);
  const client = new pg.Client({ connectionString: embedded.url });
  await client.connect();
  if (typeof shape === 'function') await shape(client);
  else {
    await populate(client, shape);
    await openSessions(client, shape.sessions);
  }
  await client.end();

  const start: World['start'] = async ({
    notifications = true,
    settings = {},
    main = MAIN,
  } = {}): Promise<ServerUnderTest> => {
    const [grpc, http, admin] = [
      `127.0.0.1:${await freePort()}`,
      `127.0.0.1:${await freePort()}`,
      `127.0.0.1:${await freePort()}`,
    ];
    const env: NodeJS.ProcessEnv = {
      POSTERN_DATABASE_URL: embedded.url,
      POSTERN_DATABASE_NOTIFICATIONS: String(notifications),
      POSTERN_SECRET_KEY: secretKey,
      POSTERN_ISSUER: ISSUER,
      POSTERN_AUDIENCE: AUDIENCE,
      POSTERN_GRPC_LISTEN: grpc,
      POSTERN_HTTP_LISTEN: http,
      POSTERN_ADMIN_LISTEN: admin,
      POSTERN_BOOTSTRAP_EMAIL: ADMIN.email,
      POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
      POSTERN_LOG_LEVEL: 'warn',
      ...settings,
    };
    const server = await startPinned(
      main,
      ['serve'],
      env,
      async () => (await fetch(`http://${admin}/readyz`)).status === 200,
    );
    const pid = server.process.pid;
    if (pid === undefined) throw new Error('the server has no process id');
    return { grpc, http, admin, pid, readyMs: server.readyMs, stop: (signal) => server.stop(signal) };
  };

  return {
    url: embedded.url,
    start,
    async tokens(count) {
      const keys = new SigningKeys({
        store: signingKeyStore(db),
        secretKey,
        times: rotationTimes(3_600_000),
        clock: Date.now,
        monotonicMs: () => performance.now(),
        onFault: (error) => console.error(error),
      });
      await keys.start();
      const tokens = new AccessTokens({ keys, issuer: ISSUER, audience: AUDIENCE, ttlSeconds: 3600, clock: Date.now });
      const issued: string[] = [];
      for (let i = 0; i < count; i++) {
        const { token } = await tokens.issue({
          userId: userOf(i) as UserId,
          sessionId: sessionOf(i) as SessionId,
          tenantId: `tenant-${i}` as TenantId,
          nowMs: Date.now(),
          jti: randomBytes(12).toString('base64url'),
        });
        issued.push(token);
      }
      keys.close();
      return issued;
    },
    async administratorToken(server) {
      const response = await fetch(`http://${server.http}/v1/auth/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(ADMIN),
      });
      const { access_token } = (await response.json()) as { access_token: string };
      return access_token;
    },
    async stopDatabase() {
      const pid = embedded.pid();
      const stopped = embedded.stop();
      // Stops it as an administrator would, also while it is in use.
      process.kill(pid, 'SIGINT');
      await stopped;
      return async () => {
        embedded = await startDatabase();
      };
    },
    async [Symbol.asyncDispose]() {
      await db.close();
      await embedded.stop();
    },
  };
}
