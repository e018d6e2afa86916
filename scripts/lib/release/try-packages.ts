/** Installs the packed packages as users would, and runs them. */

import { spawn } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startedAs } from '../image/jail.ts';
import { trial } from '../image/trial.ts';
import { rootManifest } from './packages.ts';
import { BIN, tool } from './tool.ts';

const INSTALL = ['install', '--no-audit', '--no-fund', '--loglevel=error'];
/** What the strictest projects set, beyond `strict`. */
const STRICT = {
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noPropertyAccessFromIndexSignature: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  // The declarations are checked as well.
  skipLibCheck: false,
};

/**
 * Runs the installed server with its embedded PostgreSQL.
 * @returns one line for each thing that held
 */
export async function tryServerPackage(tarball: string): Promise<string[]> {
  return inProject(async (folder) => {
    await tool('npm', [...INSTALL, tarball], folder);
    const command = join(folder, 'node_modules/.bin/postern');
    return trial({
      start: (words, env) =>
        startedAs(
          spawn(command, [...words], {
            cwd: folder,
            env: { PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...env },
            stdio: ['ignore', 'pipe', 'pipe'],
          }),
        ),
      store: { POSTERN_DATA_DIR: join(folder, 'data') },
      version: (await rootManifest()).version,
    });
  });
}

/**
 * Compiles the example of the client's README and a small program against the installed client with strict settings,
 * then runs the program with plain Node. Rejects with what the tools say.
 */
export async function tryClientPackage(tarball: string): Promise<void> {
  await inProject(async (folder) => {
    await tool('npm', [...INSTALL, tarball], folder);
    const readme = await readFile(join(folder, 'node_modules/postern-client/README.md'), 'utf8');
    const example = /```ts\n(.*?)```/s.exec(readme)?.[1];
    if (example === undefined) throw new Error("the client's README has no example");
    await writeFile(join(folder, 'example.ts'), example);
    await writeFile(join(folder, 'program.ts'), PROGRAM);
    const libraries = { lib: ['esnext', 'dom', 'dom.iterable'], types: [] };
    const compilerOptions = {
      ...STRICT,
      ...libraries,
      target: 'es2024',
      module: 'nodenext',
      outDir: 'out',
      rootDir: '.',
    };
    await writeFile(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ compilerOptions, files: ['example.ts', 'program.ts'] }),
    );
    await tool(join(BIN, 'tsc'), ['--project', '.'], folder);
    const said = await tool(process.execPath, ['out/program.js'], folder);
    if (said.trim() !== 'unreachable') throw new Error(`the program with the client said: ${said}`);
  });
}

/** Uses a type, an error's class, and a call to a server that does not listen. */
const PROGRAM = `import { type ApiKey, ConnectionError, createClient } from 'postern-client';

const client = createClient({ baseUrl: 'http://127.0.0.1:9', apiKey: 'psk_none', maxRetries: 0 });
export const idOf = (key: ApiKey): string => key.id;
try {
  await client.send('GET', '/v1/iam/users');
} catch (error) {
  if (!(error instanceof ConnectionError)) throw error;
  console.log('unreachable');
}
`;

async function inProject<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-project-'));
  try {
    // As root the embedded PostgreSQL runs as another user, which has to reach its data.
    await chmod(folder, 0o711);
    await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'project', private: true, type: 'module' }));
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
