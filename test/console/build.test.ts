/** The console follows the API's description, and what is started has the console of now. */

import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const LIMIT_MS = 120_000;

interface Ended {
  readonly code: number | null;
  readonly output: string;
}

function run(command: string, args: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((resolve) => {
    // A run of the tests inside this one has no summary to write for it.
    const env = { ...process.env, TEST_SUMMARY_FILE: '' };
    const child = execFile(command, args, { cwd, env, maxBuffer: 16 * 1024 * 1024 }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, output: stdout + stderr }),
    );
  });
}

/** A copy of parts of the project, with its dependencies. */
async function copyOf(...parts: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-copy-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const isSource = (path: string): boolean => !path.startsWith(join(ROOT, 'console/dist'));
  for (const part of parts) await cp(join(ROOT, part), join(folder, part), { recursive: true, filter: isSource });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** That it passes with the types of now is a stage of `npm run check`. */
describe('the type check of the console', () => {
  /** Changes the types of the API as a changed description would, and gives what the check then says. */
  async function checkedWith(change: (types: string) => string): Promise<Ended> {
    const folder = await copyOf('console', 'client', 'tsconfig.json');
    const file = join(folder, 'client/types.ts');
    const types = await readFile(file, 'utf8');
    const changed = change(types);
    await writeFile(file, changed);
    return run(join(ROOT, 'node_modules/.bin/tsc'), ['--noEmit', '--singleThreaded', '--project', 'console'], folder);
  }

  const replaced = (from: RegExp, to: string) => (types: string) => {
    if (!from.test(types)) throw new Error(`the types have no ${from}`);
    return types.replace(from, to);
  };

  /** All of these changes at once: each must be found among the errors of one check. */
  const CHANGES: readonly (readonly [name: string, change: (types: string) => string, named: string])[] = [
    [
      'a member of an answer that is called otherwise',
      replaced(/last_four: string/g, 'final_four: string'),
      'last_four',
    ],
    [
      'a member of an answer that may be missing now',
      replaced(/(expires_at): (string \| null)/g, '$1?: $2'),
      'undefined',
    ],
    ['an operation that is gone', replaced(/'\/v1\/iam\/audit'/g, "'/v1/iam/audit-log'"), '/v1/iam/audit'],
    ['a parameter of a list that is called otherwise', replaced(/count\?:/g, 'counted?:'), "'count' does not exist"],
    [
      'a member of a body that is required now',
      replaced(/(export type NewApiKey = \{)/, '$1\n  readonly purpose: string;'),
      'purpose',
    ],
    [
      'a kind of rule that is not known yet',
      replaced(/effect: 'allow' \| 'deny'/g, "effect: 'allow' | 'deny' | 'ask'"),
      'ask',
    ],
  ];

  it(
    'fails for a member or an operation that is renamed, missing, required or new',
    async () => {
      const { code, output } = await checkedWith((types) =>
        CHANGES.reduce((changed, [, change]) => change(changed), types),
      );
      expect(code).not.toBe(0);
      const errors = output.split('\n').filter((line) => line.startsWith('console/src/'));
      const missed = CHANGES.filter(([, , named]) => !errors.some((line) => line.includes(named))).map(
        ([name]) => name,
      );
      expect(missed).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe('a console that was built before its source changed', () => {
  const TITLE = 'The console after a change';

  /** A project whose console was built and then changed. Its command prints the page that it finds. */
  async function changedProject(): Promise<string> {
    const folder = await copyOf('console', 'client', 'scripts', 'tsconfig.json', 'package.json');
    await mkdir(join(folder, 'console/dist/assets'), { recursive: true });
    await writeFile(join(folder, 'console/dist/index.html'), '<title>The console of before</title>');
    await writeFile(join(folder, 'console/dist/assets/index-old.js'), '');
    const page = join(folder, 'console/index.html');
    await writeFile(page, (await readFile(page, 'utf8')).replace('<title>Postern</title>', `<title>${TITLE}</title>`));
    return folder;
  }

  const FOUND = `
    import { existsSync, readFileSync } from 'node:fs';
    const dist = new URL('../console/dist/', import.meta.url);
    const title = /<title>(.*)<\\/title>/.exec(readFileSync(new URL('index.html', dist), 'utf8'))?.[1];
    const old = existsSync(new URL('assets/index-old.js', dist));`;

  const CONFIG = `
    import { ResultsReporter } from './test/support/reporter.ts';
    export default { test: { reporters: [new ResultsReporter(process.env['TEST_RESULTS_FILE'] ?? '')] } };`;

  let npmStart: string;
  beforeAll(async () => {
    npmStart = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')).scripts.start;
  });

  it(
    'is rebuilt by npm start before the server starts',
    async () => {
      const folder = await changedProject();
      await mkdir(join(folder, 'src'));
      await writeFile(
        join(folder, 'src/main.ts'),
        `${FOUND}\nconsole.log(process.argv[2], title, old); process.exit(0);`,
      );
      const { code, output } = await run('sh', ['-c', npmStart], folder);
      expect([code, output.trim()]).toEqual([0, `demo ${TITLE} false`]);
    },
    LIMIT_MS,
  );

  it(
    'is rebuilt by npm test before the first test',
    async () => {
      const folder = await changedProject();
      await mkdir(join(folder, 'test/support'), { recursive: true });
      await cp(join(ROOT, 'test/support/reporter.ts'), join(folder, 'test/support/reporter.ts'));
      await writeFile(join(folder, 'vitest.config.ts'), CONFIG);
      // The scripts that install tools need the sources of the server, and the test uses none of the tools.
      for (const name of ['fetch-envoy', 'install-directories', 'fetch-tools'])
        await writeFile(join(folder, `scripts/${name}.ts`), '');
      await writeFile(
        join(folder, 'test/found.test.ts'),
        `import { expect, it } from 'vitest';${FOUND}\nit('finds', () => expect([title, old]).toEqual([${JSON.stringify(TITLE)}, false]));`,
      );
      const { code, output } = await run(process.execPath, ['scripts/run.mjs', 'test', 'test/found.test.ts'], folder);
      expect([code, output.split('\n')]).toEqual([0, expect.arrayContaining(['1 passed, 0 failed'])]);
    },
    LIMIT_MS,
  );
});
