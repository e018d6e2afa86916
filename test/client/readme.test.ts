/** The code of client/README.md, run by Node as a program of its own, against a real server. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished } from 'vitest';
import { ADMIN, startTestServer } from './support/server.ts';

const CLIENT = new URL('../../client/', import.meta.url);

it('the example of the README runs, and changes what it says', async () => {
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const folder = await mkdtemp(join(tmpdir(), 'postern-readme-'));
  onTestFinished(() => rm(folder, { recursive: true }));

  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(await readFile(new URL('README.md', CLIENT), 'utf8')) ?? [];
  const program = code
    .replace('postern-client', new URL('index.ts', CLIENT).href)
    .replace('https://ai.example.com', server.url)
    .replace("'…'", `'${ADMIN.password}'`);
  const file = join(folder, 'program.ts');
  await writeFile(file, program);
  const { stdout } = await promisify(execFile)(process.execPath, [file]);

  const [email, head, row] = stdout.split(/\r?\n/);
  expect(email).toBe('ada@example.com');
  expect(head).toMatch(/^id,time,/);
  expect(row).toContain('user.create');
  const { rows } = await server.db.knex.raw<{ rows: { name: string }[] }>(
    "select name from users where email = 'ada@example.com' union select name from roles where name = 'reader' order by name",
  );
  expect(rows).toEqual([{ name: 'Ada Lovelace' }, { name: 'reader' }]);
});
