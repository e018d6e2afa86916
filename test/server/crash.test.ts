/** Processes killed during writes: acknowledged writes are kept, and killed processes are replaced. */

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { signal } from '../../src/store/embedded/processes.ts';
import { prepareDataDir } from '../support/prepared-cluster.ts';
import { rounds } from '../support/properties.ts';
import { ADMIN, call, type Decider, decider, login } from './support/client.ts';
import { eventually } from './support/eventually.ts';
import { openStand, type Running, type Server, type Stand } from './support/postern.ts';
import { postmasterOf } from './support/postgres.ts';

vi.setConfig({ testTimeout: 300_000, hookTimeout: 180_000 });

const ROUNDS = rounds(5);
/** For the slowest to come back. */
const FEW_ROUNDS = rounds(3);
const WRITERS = 4;
const MAX_CHANGES_BEFORE_KILL = 40;
/** How many answers are looked at together. */
const BATCH = 50;

/** The acknowledged changes. A change without an answer may have been committed or not. */
class Ledger {
  readonly users: string[] = [];
  /** Each key's text, by id: never asked to be revoked. */
  readonly keys = new Map<string, string>();
  readonly revoked: string[] = [];

  get changes(): number {
    return this.users.length + this.keys.size + 2 * this.revoked.length;
  }
}

/**
 * Writes as fast as it is answered, until the ledger is closed. Answers other than the two expected ones fail the test.
 */
async function write(server: Server, token: string, ledger: Ledger, running: () => boolean): Promise<void> {
  // After it has ended, another process listens on its port.
  let ended = false;
  void server.finished.then(() => {
    ended = true;
  });
  const attempt = async (
    method: string,
    path: string,
    body?: object,
  ): Promise<Awaited<ReturnType<typeof call>> | undefined> => {
    if (ended) return undefined;
    const reply = await call(server.http, method, path, { token, body }).catch(() => undefined);
    if (reply !== undefined && reply.status !== 503 && reply.status >= 300) {
      throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
    }
    return reply?.status === 503 ? undefined : reply;
  };
  while (running() && !ended) {
    const email = `writer-${crypto.randomUUID()}@example.com`;
    const user = await attempt('POST', '/v1/iam/users', { email, name: 'A writer', roles: [] });
    if (user !== undefined) ledger.users.push(String(user.body['id']));
    for (const keep of [true, false]) {
      const made = await attempt('POST', '/v1/iam/api-keys', {
        description: 'a key',
        scopes: ['chat:read'],
        expires_in_days: 1,
      });
      if (made === undefined) continue;
      const [id, key] = [String(made.body['id']), String(made.body['key'])];
      if (keep) ledger.keys.set(id, key);
      else if ((await attempt('DELETE', `/v1/iam/api-keys/${id}`)) !== undefined) ledger.revoked.push(key);
    }
  }
}

async function inBatches<T>(items: Iterable<T>, look: (item: T) => Promise<unknown>): Promise<void> {
  const rest = [...items];
  while (rest.length > 0) await Promise.all(rest.splice(0, BATCH).map(look));
}

/** Waits for an answer other than `untold`, which a connection that was lost with PostgreSQL may still return. */
async function told<T extends string | number>(question: () => Promise<T>, untold: T): Promise<T> {
  return eventually('an answer', async () => {
    const answer = await question();
    return answer === untold ? false : answer;
  });
}

async function everythingIsThere(server: Server, gate: Decider, token: string, ledger: Ledger): Promise<void> {
  const verdict = (key: string): Promise<string> => told(() => gate.decide(key), 'unavailable');
  await inBatches(ledger.users, async (id) => {
    const status = await told(
      async () => (await call(server.http, 'GET', `/v1/iam/users/${id}`, { token })).status,
      503,
    );
    expect(status, `user ${id}`).toBe(200);
  });
  await inBatches(ledger.keys, async ([id, key]) => expect(await verdict(key), `key ${id}`).toBe('allow'));
  await inBatches(ledger.revoked, async (key) => expect(await verdict(key)).toBe('invalid_credential'));
}

describe('killed again and again while four writers write,', () => {
  let stand: Stand;
  let dataDir: string;
  let env: NodeJS.ProcessEnv;
  /** The server that runs after the last kill. */
  let server: Server;
  let token: string;
  const everything = new Ledger();

  beforeAll(async () => {
    stand = await openStand({ isShared: true });
    dataDir = await prepareDataDir(join(stand.folder, 'data'));
    env = { POSTERN_DATA_DIR: dataDir, POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password };
    server = await stand.serve(env);
    // One token for all that follows: signing keys and sessions outlive every crash.
    token = await login(server.http);
  });
  afterAll(() => stand?.close());

  /** Runs the writers, kills at a random moment, and checks the data after `recover` returned a server that decides. */
  async function round(
    server: Server,
    kill: () => Promise<void>,
    recover: (ledger: Ledger) => Promise<Server>,
  ): Promise<Server> {
    const ledger = new Ledger();
    let running = true;
    const writers = Array.from({ length: WRITERS }, () => write(server, token, ledger, () => running));
    let recovered: Server;
    try {
      const moment = 1 + Math.floor(Math.random() * MAX_CHANGES_BEFORE_KILL);
      await Promise.race([eventually('the writers write', async () => ledger.changes >= moment), ...writers]);
      await kill();
      recovered = await recover(ledger);
    } finally {
      running = false;
      await Promise.all(writers);
    }
    const gate = decider(recovered.grpc);
    try {
      await everythingIsThere(recovered, gate, token, ledger);
    } finally {
      gate.close();
    }
    everything.users.push(...ledger.users);
    for (const [id, key] of ledger.keys) everything.keys.set(id, key);
    everything.revoked.push(...ledger.revoked);
    return recovered;
  }

  async function killPostgres(): Promise<void> {
    const postmaster = await postmasterOf(dataDir);
    if (postmaster === undefined) throw new Error('no PostgreSQL runs');
    signal(postmaster, 'SIGKILL');
  }

  it('PostgreSQL only: the server restarts it and continues by itself', async () => {
    for (let i = 0; i < ROUNDS; i++) {
      await round(server, killPostgres, async (ledger) => {
        const before = ledger.changes;
        // Answers that were under way when it was killed may still come in; these are more than there can be of them.
        await eventually('the writers write again', async () => ledger.changes > before + 2 * WRITERS, 60_000);
        return server;
      });
    }
    expect((await server.stop()).code).toBe(0);
    server = await stand.serve(env);
  });

  it('the server alone: the next one adopts the database, and every acknowledged change is there', async () => {
    const postmaster = await postmasterOf(dataDir);
    for (let i = 0; i < ROUNDS; i++) {
      server = await round(
        server,
        async () => server.signal('SIGKILL'),
        () => stand.serve(env),
      );
    }
    expect(await postmasterOf(dataDir)).toBe(postmaster);
  });

  it('PostgreSQL and the server with it: the next start recovers both', async () => {
    for (let i = 0; i < FEW_ROUNDS; i++) {
      server = await round(
        server,
        async () => {
          const killed = killPostgres();
          server.signal('SIGKILL');
          await killed;
        },
        () => stand.serve(env),
      );
    }
    expect((await server.stop()).code).toBe(0);
  });

  it('and after all of it, nothing that was ever acknowledged is gone, and revoked keys stay revoked', async () => {
    server = await stand.serve(env);
    expect(everything.revoked.length).toBeGreaterThan(0);
    const gate = decider(server.grpc);
    try {
      await everythingIsThere(server, gate, token, everything);
    } finally {
      gate.close();
    }
  });
});

describe('killed in the middle of its first start', () => {
  it('the next start completes a partial first start', async () => {
    const stand = await openStand();
    onTestFinished(() => stand.close());
    const dataDir = join(stand.folder, 'data');
    const env = { POSTERN_DATA_DIR: dataDir };
    const found = async (name: RegExp): Promise<boolean> => (await readdir(dataDir)).some((entry) => name.test(entry));
    const moments: readonly ((starting: Running) => Promise<boolean>)[] = [
      () => found(/^postgres\.new-/),
      () => found(/^postgres$/),
      async (starting) => starting.stdout().includes('the PostgreSQL server'),
      // It may be there already, when the one before was killed late; then none is shown.
      async (starting) => /Password|"ready"/.test(starting.stdout()),
    ];
    for (const moment of moments) {
      const starting = stand.start(['serve'], env);
      await eventually('the moment to kill it', () => moment(starting));
      await starting.stop('SIGKILL');
    }
    const server = await stand.serve(env);
    // The password that was shown, or was about to be, went down with the terminal.
    const reset = await stand.run(['reset-admin', '--yes'], env);
    const password = /^Password: +(\S+)$/m.exec(reset.stdout)?.[1] ?? '';
    const gate = decider(server.grpc);
    onTestFinished(() => gate.close());
    expect(await gate.decide(await login(server.http, { email: ADMIN.email, password }))).toBe('allow');
    expect((await server.stop()).code).toBe(0);
  });
});
