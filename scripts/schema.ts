/** `npm run schema`: writes docs/schema.sql from a database that all migrations have run on. */

import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '../src/store/database.ts';
import { startEmbedded } from '../src/store/embedded/embedded.ts';
import { migrate } from '../src/store/migrate.ts';
import { dumpSchema } from './lib/database-schema.ts';

const directory = await mkdtemp(join(tmpdir(), 'postern-schema-'));
// The server of a root user runs as another user, who must reach the directory.
await chmod(directory, 0o711);
try {
  const server = await startEmbedded({ dataDir: join(directory, 'data'), durable: false });
  const db = openDatabase({ url: server.url });
  try {
    await migrate(db);
    await writeFile(join(import.meta.dirname, '..', 'docs', 'schema.sql'), await dumpSchema(db));
    console.log('docs/schema.sql');
  } finally {
    await db.close();
    await server.stop();
  }
} finally {
  await rm(directory, { recursive: true, force: true });
}
