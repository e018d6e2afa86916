/** Assembles the image's layout, runs it against an embedded PostgreSQL outside of it, and measures it. */

import { chmod, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
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
  const root = await assemble({ image, ignore: readIgnore(ignore ?? ''), context: ROOT, scratch, nodeFolder: dirname(node), say });
  const { version }: { version: string } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
  await using database = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-image-db-'));
  database.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  const postgres = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  database.defer(() => postgres.stop());
  const jail = await openJail({ image, root, node, shared: [await socketFolder(postgres.url)] });
  say(`Running it: ${jail.says}`);
  const prefix = image.entrypoint;
  const held = await trial({ start: (words, env) => jail.start([...prefix, ...words], env), databaseUrl: postgres.url, version });
  const kept = made.move();
  return { root, held: [...held, jail.says], [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function socketFolder(url: string): Promise<string> {
  const host = new URL(url).searchParams.get('host');
  if (host === null) throw new Error('the embedded PostgreSQL has no socket');
  return host;
}
