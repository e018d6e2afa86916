/** A release: everything that users install, in one folder, with checksums. */

import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkedLayout } from '../image/check.ts';
import { findHelm } from '../tools/helm.ts';
import { billOfMaterials } from './bill.ts';
import { packPackage, rootManifest } from './packages.ts';
import { filesIn, sumsOf } from './sums.ts';
import { ROOT, tool } from './tool.ts';

export const SUMS = 'SHA256SUMS';

export interface Release {
  /** From the release's folder, with slashes, in alphabetical order; without SHA256SUMS. */
  readonly files: readonly string[];
  /** What was tried while it was made. */
  readonly held: readonly string[];
}

/**
 * Makes a release in `folder`, which is emptied first. The console must be built.
 * @throws Error if a part cannot be made, or the image's layout does not run
 */
export async function makeRelease(folder: string, say: (line: string) => void): Promise<Release> {
  const { version } = await rootManifest();
  await rm(folder, { recursive: true, force: true });
  for (const name of ['image', 'chart', 'npm']) await mkdir(join(folder, name), { recursive: true });
  say('Chart');
  await packageChart(join(folder, 'chart'));
  say('npm packages');
  for (const which of ['server', 'client'] as const) await packPackage(which, join(folder, 'npm'));
  say('Image');
  await using layout = await checkedLayout(say);
  const app = join(layout.root, 'app');
  await requireSameConsole(join(app, 'console/dist'));
  // The layout holds native code for this platform.
  const name = `postern-${version}-${process.platform}-${process.arch}`;
  const time = await commitTime();
  await writeTarball(layout.root, join(folder, 'image', `${name}.tar.gz`), time);
  const bill = await billOfMaterials(app, time);
  await writeFile(join(folder, 'image', `${name}.cdx.json`), `${JSON.stringify(bill, undefined, 2)}\n`);
  const files = await filesIn(folder);
  await writeFile(join(folder, SUMS), await sumsOf(folder, files));
  const held = [
    ...layout.held,
    `the bill of materials lists the ${bill.components.length} packages that the image holds`,
  ];
  return { files, held };
}

async function packageChart(target: string): Promise<void> {
  const search = await findHelm();
  if (search.kind === 'missing') throw new Error(search.message);
  await tool(join(search.path, 'helm'), ['package', join(ROOT, 'helm/postern'), '--destination', target], ROOT);
}

/**
 * The image builds the console from its own copy of the sources; `npm start`, `npm test` and the npm package use the
 * build in console/dist.
 */
async function requireSameConsole(other: string): Promise<void> {
  const own = join(ROOT, 'console/dist');
  const [ours, theirs] = await Promise.all([own, other].map(async (folder) => sumsOf(folder, await filesIn(folder))));
  if (ours !== theirs)
    throw new Error('the console of the image differs from the one in console/dist: build it again, then release');
}

/** The epoch outside of a clone. */
async function commitTime(): Promise<Date> {
  const seconds = await tool('git', ['log', '-1', '--format=%ct'], ROOT).catch(() => '0');
  return new Date(Number(seconds) * 1000);
}

/** Root owns every file, and two tarballs of the same commit have the same bytes. Needs GNU tar. */
async function writeTarball(root: string, file: string, time: Date): Promise<void> {
  const program = await gnuTar();
  const owners = [
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
    `--mtime=@${time.getTime() / 1000}`,
  ];
  await tool(program, ['--create', '--gzip', '--file', file, ...owners, '--directory', root, 'app'], ROOT);
}

async function gnuTar(): Promise<string> {
  for (const program of ['tar', 'gtar']) {
    if ((await tool(program, ['--version'], ROOT).catch(() => '')).includes('GNU')) return program;
  }
  throw new Error('A release needs GNU tar; on macOS "brew install gnu-tar" brings it as gtar.');
}
