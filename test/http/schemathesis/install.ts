/** Schemathesis from PyPI in the user's cache: installed once, by the Python of the machine. */

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const VERSION = '4.32.5';
const MIN_PYTHON_MINOR = 11;
const INSTALL_TIMEOUT_MS = 240_000;

const run = promisify(execFile);

export type SchemathesisSearch =
  /** The value of PYTHONPATH for `python3`. */
  | { readonly kind: 'found'; readonly path: string }
  /** One sentence with the missing program and the way to install it. */
  | { readonly kind: 'missing'; readonly message: string };

/** Returns the installation in the cache, after installing it there if necessary. */
export async function findSchemathesis(env: NodeJS.ProcessEnv): Promise<SchemathesisSearch> {
  const python = await pythonVersion();
  if (python === undefined || python.minor < MIN_PYTHON_MINOR) {
    const seen = python === undefined ? 'there is no python3' : `python3 is 3.${python.minor}`;
    return {
      kind: 'missing',
      message: `schemathesis needs Python 3.${MIN_PYTHON_MINOR} or later, and ${seen}: install one.`,
    };
  }
  const base = env['XDG_CACHE_HOME'];
  const cache = join(base !== undefined && base !== '' ? base : join(homedir(), '.cache'), 'postern');
  const target = join(cache, `schemathesis-${VERSION}-python3.${python.minor}`);
  if (await isThere(target)) return { kind: 'found', path: target };
  return install(cache, target);
}

async function pythonVersion(): Promise<{ readonly minor: number } | undefined> {
  const asked = await run('python3', ['--version']).catch(() => undefined);
  const minor = /^Python 3\.(\d+)/.exec(asked?.stdout ?? '')?.[1];
  return minor === undefined ? undefined : { minor: Number(minor) };
}

/** Works in a folder of its own and moves the finished one to its place, so two at once end with one whole copy. */
async function install(cache: string, target: string): Promise<SchemathesisSearch> {
  await mkdir(cache, { recursive: true });
  const scratch = await mkdtemp(join(cache, '.install-'));
  try {
    const into = join(scratch, 'packages');
    const options = { timeout: INSTALL_TIMEOUT_MS, maxBuffer: 1 << 22 };
    await run('python3', ['-m', 'venv', join(scratch, 'venv')], options);
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input', '--target', into];
    await run(join(scratch, 'venv', 'bin', 'python'), [...pip, `schemathesis==${VERSION}`], options);
    await rename(into, target);
  } catch (error) {
    if (!(await isThere(target))) return missing(error);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return { kind: 'found', path: target };
}

function missing(error: unknown): SchemathesisSearch {
  const why = (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1);
  const message = `schemathesis ${VERSION} was not found and could not be fetched (${why}). Install python3-venv, and make sure that "pip install schemathesis==${VERSION}" works.`;
  return { kind: 'missing', message };
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}
