/** The scripts behind npm's: what a child of theirs gets and gives back. */

import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';

const SCRIPTS = fileURLToPath(new URL('../scripts', import.meta.url));
const RUN = fileURLToPath(new URL('../scripts/run.mjs', import.meta.url));
const CHILD = new URL('../scripts/lib/child.mjs', import.meta.url).href;
const CHECKS = new URL('../scripts/lib/checks.mjs', import.meta.url).href;

/** Runs JavaScript as run.mjs would run a command. */
function wrapped(program: string): string {
  return `import { run } from '${CHILD}'; process.exitCode = await run(process.execPath, ['-e', ${JSON.stringify(program)}]);`;
}

function evaluate(script: string): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, ['--input-type=module', '-e', script], (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
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
    'There is no command "nothing"; there are demo, postern, bench, test, test:deploy, check, format, docs, chart, console:build, console:size, screenshots, client:types, image, release.',
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

it.each([
  ['nothing at all', '', '0 passed, 1 failed'],
  ['all passed', { passed: 3 }, '3 passed, 0 failed'],
  ['some skipped', { passed: 3, pending: 2 }, '3 passed, 0 failed, 2 skipped'],
  ['a file that could not be loaded', { passed: 3, files: [{ status: 'failed', assertionResults: [] }] }, '3 passed, 1 failed'],
])('the closing line counts %s', async (_name, results, line) => {
  const json =
    typeof results === 'string'
      ? results
      : JSON.stringify({
          numPassedTests: results.passed,
          numFailedTests: 0,
          numPendingTests: 'pending' in results ? results.pending : 0,
          numTodoTests: 0,
          testResults: 'files' in results ? results.files : [],
        });
  const { output } = await evaluate(`import { summaryOf } from '${CHECKS}'; console.log(summaryOf(${JSON.stringify(json)}));`);
  expect(output.trim()).toBe(line);
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
