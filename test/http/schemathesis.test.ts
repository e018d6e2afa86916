/** Schemathesis sends a running server the requests that its description allows and forbids, with every check on. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { openStand, type Stand } from '../server/support/postern.ts';
import { freshDatabase } from '../support/database.ts';
import { rounds } from '../support/properties.ts';
import { findSchemathesis } from './schemathesis/install.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONFIG = 'test/http/schemathesis/schemathesis.toml';
const PASSWORD = 'a lake of tin whistles';
const LIMIT_MS = 3_600_000;

/**
 * Enough to meet every operation with valid and with invalid requests; SCHEMATHESIS=full asks everything that it can
 * think of.
 */
const BOUNDED = ['--phases', 'examples,fuzzing', '--max-examples', String(rounds(3))];

test('schemathesis finds no answer that is missing in the description, and no fault', { timeout: LIMIT_MS }, async ({
  skip,
}) => {
  const search = await findSchemathesis(process.env);
  if (search.kind === 'missing') {
    if (process.env['CI'] === 'true') throw new Error(search.message);
    return skip(search.message);
  }
  const database = await freshDatabase();
  const stand = await openStand();
  try {
    const { code, output } = await schemathesis(search.path, await serve(stand, database.url));
    expect(output).toMatch(/Operations: +\d+ selected/);
    expect(code, output.slice(-16_000)).toBe(0);
  } finally {
    await stand.close();
    await database.close();
  }
});

/** It logs in at will, so failures of login do not shut it out. */
async function serve(stand: Stand, databaseUrl: string): Promise<string> {
  const server = await stand.serveApi({
    POSTERN_DATABASE_URL: databaseUrl,
    POSTERN_SECRET_KEY: 'a secret key of tests that is long enough',
    POSTERN_BOOTSTRAP_PASSWORD: PASSWORD,
    POSTERN_USAGE_SOURCE: 'events',
    POSTERN_LOGIN_FAILURES_PER_ADDRESS: '1000000',
    POSTERN_LOGIN_FAILURES_PER_ACCOUNT: '1000000',
  });
  return `http://${server.http}`;
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
}

function schemathesis(path: string, url: string): Promise<Ran> {
  const main = 'from schemathesis.cli import schemathesis; schemathesis()';
  const how = process.env['SCHEMATHESIS'] === 'full' ? [] : BOUNDED;
  const child = spawn(
    'python3',
    ['-c', main, '--config-file', CONFIG, 'run', '--checks', 'all', `${url}/openapi.json`, ...how],
    {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        PYTHONPATH: path,
        API_EMAIL: 'admin@localhost',
        API_PASSWORD: PASSWORD,
        NO_COLOR: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  let output = '';
  const keep = (text: string): void => {
    output += text;
  };
  child.stdout.setEncoding('utf8').on('data', keep);
  child.stderr.setEncoding('utf8').on('data', keep);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}
