/** Real `postern` processes, started as in production, watched, and stopped by their own ids also if the test fails. */

import { type ChildProcess, spawn } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFailed, onTestFinished, TestRunner } from 'vitest';
import { send } from '../../support/http.ts';
import { freeAddress } from '../../support/ports.ts';
import { eventually } from './eventually.ts';
import { endPostgres } from './postgres.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const MAIN = join(ROOT, 'src/main.ts');
const START_LIMIT_MS = 90_000;
/** The characters of the output that a failed test shows. */
const SHOWN_CHARACTERS = 4_000;

export interface Finished {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly pid: number;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Resolves when it has ended and all that it wrote is here. */
  readonly finished: Promise<Finished>;
  signal(name: NodeJS.Signals): void;
  /** Closes the pipes that it writes to. */
  deafen(): void;
  /** Default: SIGTERM. */
  stop(name?: NodeJS.Signals): Promise<Finished>;
}

export interface Addresses {
  readonly grpc: string;
  readonly http: string;
  readonly admin: string;
}

export interface Server extends Running, Addresses {}

/** A server without a gate. */
export type ApiServer = Omit<Server, 'grpc'>;

/** A server without an API. */
export type GateServer = Omit<Server, 'http'>;

/** Processes that a test starts end with the test at the latest, the others with the stand. */
export interface Stand {
  /** A folder of its own, which another user can pass through. */
  readonly folder: string;
  /** Starts a command in `folder`. Its environment has these settings and free ports only. */
  start(args: readonly string[], env?: NodeJS.ProcessEnv): Running;
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Finished>;
  /** `postern serve`; resolves when /readyz says that it can decide. */
  serve(env?: NodeJS.ProcessEnv): Promise<Server>;
  /** `postern serve --only api`, for tests that need no gate; resolves when it is ready. */
  serveApi(env?: NodeJS.ProcessEnv): Promise<ApiServer>;
  /** `postern serve --only gate`, for tests that need no API; resolves when it is ready. */
  serveGate(env?: NodeJS.ProcessEnv): Promise<GateServer>;
  /** Ends every process that was started here, embedded databases in `folder` too, and removes the folder. */
  close(): Promise<void>;
}

const children = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** @param isShared true: its processes end with the stand, and not with the test that starts them */
export async function openStand({ isShared = false }: { readonly isShared?: boolean } = {}): Promise<Stand> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-system-'));
  // As root, the embedded PostgreSQL runs as another user, which needs access to the data.
  await chmod(folder, 0o711);
  const started: Running[] = [];
  const start: Stand['start'] = (args, env = {}) => {
    const running = startProcess(folder, args, env, isShared);
    started.push(running);
    return running;
  };
  return {
    folder,
    start,
    run: (args, env) => start(args, env).finished,
    async serve(env) {
      const { grpc, http, ...server } = await untilReady(start(['serve'], { ...(await fixedPorts()), ...env }));
      return { ...server, grpc: addressOf('gate', grpc), http: addressOf('API', http) };
    },
    async serveApi(env) {
      const { http, ...server } = await untilReady(
        start(['serve', '--only', 'api'], { ...(await fixedPorts()), ...env }),
      );
      return { ...server, http: addressOf('API', http) };
    },
    async serveGate(env) {
      const { grpc, ...server } = await untilReady(
        start(['serve', '--only', 'gate'], { ...(await fixedPorts()), ...env }),
      );
      return { ...server, grpc: addressOf('gate', grpc) };
    },
    async close() {
      for (const running of started) running.signal('SIGKILL');
      await Promise.all(started.map((running) => running.finished));
      await endPostgres(folder);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Ports that a replaced process listens at again. The supervisor kills a gate that a busy machine keeps waiting, and what was told the
 * port of the first one would not find the second.
 */
async function fixedPorts(): Promise<NodeJS.ProcessEnv> {
  return { POSTERN_GRPC_LISTEN: await freeAddress(), POSTERN_HTTP_LISTEN: await freeAddress() };
}

function startProcess(folder: string, args: readonly string[], env: NodeJS.ProcessEnv, isShared: boolean): Running {
  const anywhere = '127.0.0.1:0';
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'],
      // Half of a start is compiling the same files again.
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/test-compile-cache'),
      POSTERN_HTTP_LISTEN: anywhere,
      POSTERN_GRPC_LISTEN: anywhere,
      POSTERN_ADMIN_LISTEN: anywhere,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${MAIN} cannot be started`);
  children.add(child);
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const textOf = (): string => `postern ${args.join(' ')} (process ${pid}):\n${stdout}${stderr}\n`;
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => {
      children.delete(child);
      resolve({ code, signal, stdout, stderr });
    });
  });
  // One that was started outside of tests ends with the stand.
  if (!isShared && TestRunner.getCurrentTest() !== undefined) {
    // Shows the output of the process with a failure.
    onTestFailed(() => void process.stderr.write(textOf().slice(-SHOWN_CHARACTERS)));
    // Servers of finished tests would slow the others down.
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await finished;
    });
  }
  return {
    pid,
    stdout: () => stdout,
    stderr: () => stderr,
    finished,
    signal: (name) => void child.kill(name),
    deafen() {
      child.stdout.destroy();
      child.stderr.destroy();
    },
    stop(name = 'SIGTERM') {
      child.kill(name);
      return finished;
    },
  };
}

async function untilReady(running: Running): Promise<Running & Listening> {
  let ended: Finished | undefined;
  void running.finished.then((finished) => {
    ended = finished;
  });
  const ready = await eventually(
    'the server is ready',
    async () => {
      if (ended !== undefined) return ended;
      const addresses = listening(running.stdout());
      return addresses !== undefined && (await isReady(addresses.admin)) && addresses;
    },
    START_LIMIT_MS,
  ).catch((error: unknown) => {
    throw new Error(`no readiness: ${running.stdout()}\n${running.stderr()}`, { cause: error });
  });
  if ('code' in ready)
    throw new Error(`the server ended with ${ready.code ?? ready.signal}: ${ready.stdout}\n${ready.stderr}`);
  return { ...running, ...ready };
}

interface Listening {
  /** Undefined without a gate. */
  readonly grpc: string | undefined;
  /** Undefined without an API. */
  readonly http: string | undefined;
  readonly admin: string;
}

function addressOf(part: string, address: string | undefined): string {
  if (address === undefined) throw new Error(`the server has no ${part}`);
  return address;
}

/** Where it says that it listens; undefined while it has not said so. */
function listening(stdout: string): Listening | undefined {
  const line = logLines(stdout).find((each) => each['msg'] === 'ready');
  const { grpc, http, admin } = line ?? {};
  const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
  return typeof admin === 'string' ? { grpc: text(grpc), http: text(http), admin } : undefined;
}

export function logLines(stdout: string): readonly Readonly<Record<string, unknown>>[] {
  return stdout.split('\n').flatMap((line) => {
    try {
      const parsed: unknown = JSON.parse(line);
      return typeof parsed === 'object' && parsed !== null ? [{ ...parsed }] : [];
    } catch {
      return [];
    }
  });
}

export interface Readiness {
  /** 0 = nothing listens. */
  readonly status: number;
  readonly reasons: readonly string[];
  readonly warnings: readonly string[];
}

/** Returns the answer of /readyz. */
export async function readiness(admin: string): Promise<Readiness> {
  const answer = await send(`http://${admin}`, { path: '/readyz' }).catch(() => undefined);
  if (answer === undefined) return { status: 0, reasons: [], warnings: [] };
  const { reasons = [], warnings = [] }: { reasons?: string[]; warnings?: string[] } = JSON.parse(answer.body);
  return { status: answer.status, reasons, warnings };
}

export async function isReady(admin: string): Promise<boolean> {
  return (await readiness(admin)).status === 200;
}

/** The sum over the samples of /metrics whose line begins so. */
export async function metric(admin: string, start: string): Promise<number> {
  const { body } = await send(`http://${admin}`, { path: '/metrics' });
  const lines = body.split('\n').filter((line) => line.startsWith(start));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}
