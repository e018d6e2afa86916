/** Assembles the image's layout, runs it against an embedded PostgreSQL outside of it, and measures it. */

import { once } from 'node:events';
import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startEmbedded } from '../../../src/store/embedded/embedded.ts';
import { readDockerfile } from './dockerfile.ts';
import { readIgnore } from './ignore.ts';
import { openJail } from './jail.ts';
import { assemble } from './layout.ts';
import { trial } from './trial.ts';

const ROOT = join(import.meta.dirname, '../../..');

export interface CheckedLayout extends AsyncDisposable {
  /** The folder that holds the image's root. */
  readonly root: string;
  /** One line for each thing that held. */
  readonly held: readonly string[];
}

/** Rejects when the layout cannot be made, or what runs in it fails. */
export async function checkedLayout(say: (line: string) => void): Promise<CheckedLayout> {
  await using made = new AsyncDisposableStack();
  const scratch = await mkdtemp(join(tmpdir(), 'postern-image-'));
  made.defer(() => rm(scratch, { recursive: true, force: true }));
  await chmod(scratch, 0o711);
  const [dockerfile, ignore] = await Promise.all(
    ['Dockerfile', '.dockerignore'].map((name) => readFile(join(ROOT, name), 'utf8')),
  );
  const image = readDockerfile(dockerfile ?? '');
  const node = await realpath(process.execPath);
  const root = await assemble({
    image,
    ignore: readIgnore(ignore ?? ''),
    context: ROOT,
    scratch,
    nodeFolder: dirname(node),
    say,
  });
  const { version }: { version: string } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  await using database = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-image-db-'));
  database.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  const postgres = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  database.defer(() => postgres.stop());
  const relay = await relayTo(postgres.url);
  database.defer(() => relay.close());
  const jail = await openJail({ image, root, node });
  say(`Running it: ${jail.says}`);
  const prefix = image.entrypoint;
  const held = await trial({
    start: (words, env) => jail.start([...prefix, ...words], env),
    store: { POSTERN_DATABASE_URL: relay.url, POSTERN_SECRET_KEY: 'a secret key for the trial of an image' },
    version,
  });
  const kept = made.move();
  return { root, held: [...held, jail.says], [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

/** The database's socket belongs to PostgreSQL's user alone: the image's user gets there as in production, by TCP. */
async function relayTo(url: string): Promise<{ readonly url: string; close(): void }> {
  const host = /[?&]host=([^&]+)/.exec(url)?.[1];
  if (host === undefined) throw new Error('the embedded PostgreSQL has no socket');
  const path = join(decodeURIComponent(host), '.s.PGSQL.5432');
  const server = createServer((client) => {
    const database = connect(path);
    for (const [from, to] of [
      [client, database],
      [database, client],
    ] as const) {
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => to.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port for the database');
  const login = /^postgres(?:ql)?:\/\/([^@]*)@/.exec(url)?.[1] ?? 'postgres';
  const database = /\/([\w-]+)\?/.exec(url)?.[1] ?? 'postern';
  return { url: `postgresql://${login}@127.0.0.1:${address.port}/${database}`, close: () => server.close() };
}
