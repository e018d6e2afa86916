/** Schemathesis sends a running server the requests that its description allows and forbids, with every check on. */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openStand, type Stand } from '../server/support/postern.ts';
import { freshDatabase } from '../support/database.ts';
import { runs, SEED } from '../support/properties.ts';
import { findSchemathesis } from './schemathesis/install.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONFIG = 'test/http/schemathesis/schemathesis.toml';
const PASSWORD = 'a lake of tin whistles';
const LIMIT_MS = 3_600_000;

/** Asks every operation everything that schemathesis can think of. */
const IS_FULL = process.env['SCHEMATHESIS'] === 'full';
/** Enough to meet an operation with valid and with invalid requests. */
const BOUNDED = ['--phases', 'examples,fuzzing', '--max-examples', '3'];

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
    const url = await serve(stand, database.url);
    const chosen = await operations(url);
    const { code, output } = await schemathesis(search.path, url, chosen);
    expect(output).toMatch(new RegExp(`Operations: +${chosen.length} selected`));
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

/** Returns the ids of the operations to ask: all of them, or as many as a bounded run tries. */
async function operations(url: string): Promise<readonly string[]> {
  const answer = await fetch(`${url}/openapi.json`);
  const { paths }: { readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>> } = JSON.parse(
    await answer.text(),
  );
  const ids = Object.values(paths).flatMap((path) =>
    Object.values(path).flatMap((operation) => ('operationId' in operation ? [String(operation.operationId)] : [])),
  );
  const length = IS_FULL ? ids.length : runs(ids.length);
  const seed = SEED === undefined ? {} : { seed: SEED };
  return fc.sample(fc.shuffledSubarray(ids, { minLength: length, maxLength: length }), { numRuns: 1, ...seed }).flat();
}

interface Ran {
  readonly code: number | null;
  readonly output: string;
}

function schemathesis(path: string, url: string, chosen: readonly string[]): Promise<Ran> {
  const main = 'from schemathesis.cli import schemathesis; schemathesis()';
  const how = IS_FULL ? [] : BOUNDED;
  const child = spawn(
    'python3',
    [
      ...['-c', main, '--config-file', CONFIG, 'run', '--checks', 'all', `${url}/openapi.json`, ...how],
      ...chosen.flatMap((id) => ['--include-operation-id', id]),
    ],
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
