/** The scripts behind npm's: what a child of theirs gets and gives back. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { PART_NAMES } from '../scripts/lib/part-names.mjs';
import type { FileResult, TestResult, TestResults } from '../scripts/lib/test-report.d.mts';
import { reportOf, summaryOf } from '../scripts/lib/test-report.mjs';
import { PARTS } from './parts.ts';
import { isRunning } from './server/support/processes.ts';

const SCRIPTS = fileURLToPath(new URL('../scripts', import.meta.url));
const RUN = fileURLToPath(new URL('../scripts/run.mjs', import.meta.url));
const CHILD = new URL('../scripts/lib/child.mjs', import.meta.url).href;
const TEST_RUN = new URL('../scripts/lib/test-run.mjs', import.meta.url).href;

/** Runs JavaScript as run.mjs would run a command. */
function wrapped(program: string): string {
  return `import { run } from '${CHILD}'; process.exitCode = await run(process.execPath, ['-e', ${JSON.stringify(program)}]);`;
}

function evaluate(script: string, env: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      ['--input-type=module', '-e', script],
      { env: { ...process.env, ...env } },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

it('an unknown command is refused in one sentence', async () => {
  const { code, output } = await new Promise<{ code: number | null; output: string }>((resolve) => {
    const child = execFile(process.execPath, [RUN, 'nothing'], (_error, _stdout, stderr) =>
      resolve({ code: child.exitCode, output: stderr }),
    );
  });
  expect(code).toBe(1);
  expect(output.trim()).toBe(
    'There is no command "nothing"; there are demo, postern, bench, test, test:deploy, check, format, docs, chart, schema, console:build, console:size, screenshots, client:types, image, release-prices, release.',
  );
});

it('the exit code of the command is that of the script', async () => {
  expect((await evaluate(wrapped('process.exit(7)'))).code).toBe(7);
  expect((await evaluate(wrapped("process.kill(process.pid, 'SIGKILL')"))).code).toBe(128 + 9);
});

it('the project’s own tools come first on the path of the command', async () => {
  const { output } = await evaluate(wrapped("console.log(process.env.PATH.split(':')[0])"));
  expect(output.trim()).toMatch(/node_modules\/\.bin$/);
});

it('two SIGINTs in one moment, as npm and a terminal send them, reach the command once, and it is waited for', async () => {
  const program = `
    let count = 0;
    process.on('SIGINT', () => { count++; });
    process.on('SIGTERM', () => { console.log('interrupted', count); process.exit(count); });
    setInterval(() => {}, 1000);
    console.log('up');
    process.once('SIGINT', () => setTimeout(() => process.kill(process.pid, 'SIGTERM'), 300));`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', wrapped(program)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output === 'up\n') {
      child.kill('SIGINT');
      child.kill('SIGINT');
    }
  });
  const [code] = await once(child, 'close');
  expect(output).toBe('up\ninterrupted 1\n');
  expect(code).toBe(1);
});

it('npm ends with the script that installs by it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-scripts-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(SCRIPTS, join(folder, 'scripts'), { recursive: true });
  await writeFile(join(folder, 'package-lock.json'), '{}');
  const npm = join(folder, 'npm.cjs');
  await writeFile(npm, `require('node:fs').writeFileSync('pid', String(process.pid)); setInterval(() => {}, 1000);`);
  const child = spawn(process.execPath, [join(folder, 'scripts/run.mjs'), 'demo'], {
    env: { ...process.env, npm_execpath: npm },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const pid = await vi.waitFor(async () => {
    const text = await readFile(join(folder, 'pid'), 'utf8');
    expect(text).not.toBe('');
    return Number(text);
  }, 20_000);
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  expect([code, said]).toEqual([1, 'The dependencies were not installed: npm ci was stopped (SIGTERM).\n']);
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

it('a command that npm runs gets the signal that npm gets, and npm ends after it, with its exit code', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-scripts-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await cp(join(SCRIPTS, '../package.json'), join(folder, 'package.json'));
  await mkdir(join(folder, 'scripts'));
  const program = `
    process.on('SIGTERM', () => setTimeout(() => { console.log('drained'); process.exit(0); }, 100));
    setInterval(() => {}, 1000);
    console.log('up');`;
  await writeFile(join(folder, 'scripts/run.mjs'), program);
  const child = spawn('npm', ['run', '--silent', 'postern', '--', 'serve', '--config', 'a file.yaml'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output === 'up\n') child.kill('SIGTERM');
  });
  const [code] = await once(child, 'close');
  expect([code, output]).toEqual([0, 'up\ndrained\n']);
});

describe('the closing line', () => {
  const file = (tests: readonly TestResult[], isBroken = false): FileResult => ({
    file: 'test/a.test.ts',
    part: 'unit',
    isBroken,
    importMs: 1,
    testsMs: 2,
    processorMs: 3,
    tests,
  });
  const passed: TestResult = { name: 'a guarantee', state: 'passed', ms: 1 };
  const failed: TestResult = { ...passed, state: 'failed' };
  const skipped: TestResult = { ...passed, state: 'skipped' };

  it.each<[string, TestResults | undefined, string]>([
    ['a run without results as a failure', undefined, '0 passed, 1 failed'],
    ['passed tests', { files: [file([passed, passed])], unhandledErrors: 0 }, '2 passed, 0 failed'],
    ['skipped tests', { files: [file([passed, skipped])], unhandledErrors: 0 }, '1 passed, 0 failed, 1 skipped'],
    [
      'a file that could not be loaded as a failure',
      { files: [file([passed]), file([], true)], unhandledErrors: 0 },
      '1 passed, 1 failed',
    ],
    [
      'a file with a failed test once',
      { files: [file([passed, failed], true)], unhandledErrors: 0 },
      '1 passed, 1 failed',
    ],
    [
      'an error outside of any test as a failure',
      { files: [file([passed])], unhandledErrors: 1 },
      '1 passed, 1 failed',
    ],
  ])('counts %s', (_name, results, line) => {
    expect(summaryOf(results)).toBe(line);
  });
});

it('the report names the slowest file and the slowest test first', () => {
  const fileOf = (name: string, ms: number): FileResult => ({
    file: `test/${name}.test.ts`,
    part: 'unit',
    isBroken: false,
    importMs: 100,
    testsMs: ms,
    processorMs: undefined,
    tests: [{ name: `of ${name}`, state: 'passed', ms }],
  });
  const report = reportOf({ files: [fileOf('quick', 1000), fileOf('slow', 30_000)], unhandledErrors: 0 });
  expect(report.split('\n').map((line) => line.trim().replace(/ {2,}/g, ' | '))).toEqual([
    'part | files | tests | import s | tests s | processor s',
    'unit | 2 | 2 | 0.2 | 31.0 | 0.0',
    '',
    'the 20 slowest files | import s | tests s | processor s',
    'test/slow.test.ts | 0.1 | 30.0 | 0.0',
    'test/quick.test.ts | 0.1 | 1.0 | 0.0',
    '',
    'the 20 slowest tests | s',
    'test/slow.test.ts: of slow | 30.0',
    'test/quick.test.ts: of quick | 1.0',
  ]);
});

it('the command line knows the parts of the suite that test/parts.ts defines', () => {
  expect(PART_NAMES.toSorted()).toEqual(PARTS.map(({ name }) => name).toSorted());
});

it('a run of the tests that was killed leaves no process and no folder after the next run', async () => {
  const base = await mkdtemp(join(tmpdir(), 'postern-scripts-'));
  onTestFinished(() => rm(base, { recursive: true, force: true }));
  const stub = 'setInterval(() => {}, 1000); console.log(process.pid)';
  // A run that starts a process of its own group and dies before it can end it.
  const first = await evaluate(
    `import { openRun } from '${TEST_RUN}'; import { spawn } from 'node:child_process'; import { once } from 'node:events';
     const { folder } = await openRun();
     const child = spawn(process.execPath, ['-e', ${JSON.stringify(stub)}], { cwd: folder, detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
     const [pid] = await once(child.stdout, 'data');
     process.stdout.write(folder + ' ' + pid, () => process.kill(process.pid, 'SIGKILL'));`,
    { TMPDIR: base },
  );
  const [folder = '', pid] = first.output.trim().split(' ');
  expect([existsSync(folder), await isRunning(Number(pid))]).toEqual([true, true]);
  const next = await evaluate(
    `import { openRun } from '${TEST_RUN}'; const { folder, close } = await openRun(); console.log(folder); await close();`,
    { TMPDIR: base },
  );
  expect([existsSync(folder), await isRunning(Number(pid)), existsSync(next.output.trim())]).toEqual([
    false,
    false,
    false,
  ]);
});

it('pictures of the console without a Chromium end with one sentence that says how to get it', async () => {
  const { code, output } = await new Promise<{ code: number | null; output: string }>((resolve) => {
    const env = { ...process.env, CHROMIUM: '/nowhere/chromium' };
    const child = execFile(
      process.execPath,
      [join(SCRIPTS, 'screenshots.ts'), '--to', '/nowhere'],
      { env },
      (_error, stdout, stderr) => resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
  expect([code, output.trim()]).toEqual([
    1,
    'Chromium is not at /nowhere/chromium: "apt-get install --no-install-recommends chromium" as root brings it on Debian; CHROMIUM=/path/to/chromium names another one.',
  ]);
});
