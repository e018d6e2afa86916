/** A backup of the database by PostgreSQL's own programs, made while a server runs, restored into another database. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freeAddress } from '../../test/support/ports.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { api, textOf } from '../lib/rolling/api.ts';
import { startServer } from '../lib/rolling/server.ts';
import { must, run } from '../lib/tools/cache.ts';
import { findPostgres, startPostgres } from '../lib/tools/postgres.ts';

const ROOT = join(import.meta.dirname, '../..');
const SECRET_KEY = 'the key of a database that is backed up and restored';
const PASSWORD = 'the administrator of a restored database';

const found = await findPostgres();

async function backedUp(bin: string): Promise<CheckOutcome> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'postern-backup-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o711);
  const postgres = await startPostgres(bin, folder);
  cleanUp.defer(() => postgres.stop());
  const place = { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
  const envOf = (url: string): NodeJS.ProcessEnv => ({
    PATH: process.env['PATH'],
    POSTERN_DATABASE_URL: url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: PASSWORD,
  });
  const verified = (url: string): ReturnType<typeof run> =>
    run(process.execPath, [join(ROOT, 'src/main.ts'), 'verify-audit'], { cwd: folder, env: envOf(url) });

  const url = await postgres.create('postern');
  const server = await startServer(ROOT, folder, place, envOf(url));
  cleanUp.defer(() => server.kill());
  const login = { email: 'admin@localhost', password: PASSWORD };
  const token = textOf(await api(place.http, 'POST', '/v1/auth/login', { body: login }), 'access_token');
  const spec = { description: 'made before the backup', scopes: ['models:read'], expires_in_days: 1 };
  const key = textOf(await api(place.http, 'POST', '/v1/iam/api-keys', { token, body: spec }), 'key');
  const file = join(folder, 'postern.dump');
  await must(join(bin, 'pg_dump'), ['--format=custom', `--file=${file}`, url]);
  await server.stop();

  const restored = await postgres.create('restored');
  await must(join(bin, 'pg_restore'), ['--exit-on-error', `--dbname=${restored}`, file]);
  const chain = await verified(restored);
  if (!chain.ok) return { kind: 'failed', says: `postern verify-audit: ${chain.output}` };
  const again = await startServer(ROOT, folder, place, envOf(restored));
  cleanUp.defer(() => again.kill());
  // Each throws unless it is answered with 200: the key, the token and the password are those of the backup.
  for (const credential of [key, token]) await api(place.http, 'GET', '/v1/auth/me', { token: credential });
  await api(place.http, 'POST', '/v1/auth/login', { body: login });
  await again.stop();
  return { kind: 'ok', says: `key, token and password work; ${chain.output.trim().replaceAll('\n', ' ')}` };
}

export const checks: readonly Check[] = [
  {
    name: 'a backup that pg_dump makes of a running installation is restored by pg_restore, with its keys, tokens, passwords and audit log',
    ...(found.kind === 'found' ? { tool: { name: 'PostgreSQL', version: found.version } } : {}),
    run: async () => (found.kind === 'found' ? backedUp(found.bin) : { kind: 'unavailable', says: found.message }),
  },
];
