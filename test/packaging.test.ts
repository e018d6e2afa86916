import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';

interface LockedPackage {
  readonly version?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

it('package-lock.json holds the packages of every platform: npm ci refuses one that lacks any', async () => {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    await readFile(new URL('../package-lock.json', import.meta.url), 'utf8'),
  );
  const names = new Set(Object.keys(lock.packages).map((path) => path.split('node_modules/').at(-1)));
  const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !names.has(name))
      .map((name) => `${name}, wanted by ${path === '' ? 'package.json' : path}`),
  );
  expect(missing).toEqual([]);
});

it('package-lock.json names no registry, so that each user installs from their own', async () => {
  const text = await readFile(new URL('../package-lock.json', import.meta.url), 'utf8');
  expect(text).not.toMatch(/"resolved": "http/);
});
