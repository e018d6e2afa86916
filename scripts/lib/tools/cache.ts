/**
 * The per-user cache of tools that the tests and `npm run test:deploy` use: each in a folder that carries its version.
 */

import { type ExecFileException, execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';

const FETCH_TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export type ToolSearch =
  | { readonly kind: 'found'; readonly path: string }
  /** One sentence: what is missing and how to get it. */
  | { readonly kind: 'missing'; readonly message: string };

export interface Ran {
  readonly ok: boolean;
  readonly output: string;
}

export function cacheFolder(name: string, env: NodeJS.ProcessEnv = process.env): string {
  const base = env['XDG_CACHE_HOME'];
  return join(base !== undefined && base !== '' ? base : join(homedir(), '.cache'), 'postern', name);
}

/**
 * Gives the folder `name` of the cache, and has `fill` make it when it is not there. Two processes at once end with one
 * whole folder.
 * @param fill gets an empty folder beside the cache; what it throws becomes the reason in the sentence
 */
export async function cached(
  name: string,
  what: string,
  how: string,
  fill: (folder: string) => Promise<void>,
): Promise<ToolSearch> {
  const target = cacheFolder(name);
  if (await isThere(target)) return { kind: 'found', path: target };
  let scratch: string | undefined;
  try {
    await mkdir(join(target, '..'), { recursive: true });
    scratch = await mkdtemp(join(target, '..', `.${name}-`));
    const folder = join(scratch, 'made');
    await mkdir(folder);
    await fill(folder);
    // Fails when another process was faster; its folder is as good.
    await rename(folder, target).catch(() => undefined);
    return (await isThere(target))
      ? { kind: 'found', path: target }
      : { kind: 'missing', message: `${what} could not be kept: ${how}.` };
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1);
    return { kind: 'missing', message: `Not found, and could not be fetched (${why}): ${what}. To get it: ${how}.` };
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  }
}

/** Unpacks one prebuilt wheel, with the packages that it needs when `needs` says so. Throws what pip says. */
export async function pipInstall(requirement: string, into: string, needs: 'alone' | 'with-needs'): Promise<void> {
  const options = ['--quiet', '--disable-pip-version-check', '--no-input', '--only-binary', ':all:'];
  const alone = needs === 'alone' ? ['--no-deps'] : [];
  await must('python3', ['-m', 'pip', 'install', ...options, ...alone, '--target', into, requirement]);
}

export async function must(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number } = {},
): Promise<string> {
  const ran = await run(command, args, options);
  if (!ran.ok) throw new Error(ran.output);
  return ran.output;
}

export function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv; readonly timeoutMs?: number } = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    const given = {
      timeout: options.timeoutMs ?? FETCH_TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT_BYTES,
      cwd: options.cwd,
      env: options.env ?? process.env,
    };
    execFile(command, [...args], given, (error: ExecFileException | null, stdout, stderr) => {
      if (error === null) resolve({ ok: true, output: stdout });
      else if (error.code === 'ENOENT') resolve({ ok: false, output: `${command} is missing` });
      else
        resolve({
          ok: false,
          output: error.killed === true ? `${command} took too long` : stderr || stdout || error.message,
        });
    });
  });
}

export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
