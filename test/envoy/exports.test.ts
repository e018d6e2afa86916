/** An export whose rights end breaks off for the client of a real Envoy too, and its last line arrives. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:http2';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { done, makeKey } from '../server/support/client.ts';
import { openPlatform, type Platform } from '../server/support/platform.ts';
import type { Server } from '../server/support/postern.ts';
import type { FreshDatabase } from '../support/database.ts';
import type { Edge } from '../support/envoy.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const ROWS = 2000;
const PATH = '/v1/iam/audit?action=made.up';
const NDJSON = 'application/x-ndjson';

let platform: Platform;
let database: FreshDatabase;
let server: Server;
let edge: Edge;
let admin: string;

beforeAll(async () => {
  platform = await openPlatform();
  ({ database, server, edge, admin } = platform);
  await done(server.http, 'POST', '/v1/iam/tenants', { token: admin, body: { id: 'acme', name: 'acme' } });
  for (let first = 1; first < ROWS; first += 100) {
    await database.db.query({
      text: `insert into audit_log (actor_type, tenant_id, action, result, after)
        select 'system', 'acme', 'made.up', 'success', jsonb_build_object('n', n, 'text', repeat('x', 16000))
        from generate_series($1::int, $1::int + 99) n`,
      values: [first],
    });
  }
});

afterAll(() => platform?.close());

interface Begun {
  /** Reads on, and resolves when the answer is over. */
  rest(): Promise<{ readonly body: string; readonly whole: boolean }>;
}

async function overHttp1(key: string): Promise<Begun> {
  const asked = request(`${edge.url}${PATH}`, {
    agent: false,
    headers: { authorization: `Bearer ${key}`, accept: NDJSON },
  });
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  if (answer === undefined) throw new Error('no answer');
  return {
    async rest() {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      answer.on('error', () => undefined);
      await new Promise((resolve) => answer.on('close', resolve));
      return { body: Buffer.concat(chunks).toString(), whole: answer.complete };
    },
  };
}

async function overHttp2(key: string): Promise<Begun> {
  const session = connect(edge.url);
  const stream = session.request({ ':path': PATH, authorization: `Bearer ${key}`, accept: NDJSON });
  await once(stream, 'response');
  return {
    async rest() {
      const chunks: Buffer[] = [];
      let whole = false;
      stream.on('error', () => undefined);
      stream.on('end', () => {
        whole = stream.rstCode === 0;
      });
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      await new Promise((resolve) => stream.on('close', resolve));
      session.destroy();
      return { body: Buffer.concat(chunks).toString(), whole: whole && stream.rstCode === 0 };
    },
  };
}

it.each([
  ['HTTP/1.1', overHttp1],
  ['HTTP/2', overHttp2],
])('over %s, to a reader that begins late', async (_version, begin) => {
  const { id, key } = await makeKey(server.http, admin, { tenant: 'acme', scopes: ['audit:read'] });
  const begun = await begin(key);
  await done(server.http, 'DELETE', `/v1/iam/api-keys/${id}`, { token: admin, tenant: 'acme' });
  const { body, whole } = await begun.rest();
  const lines = body.split('\n');
  expect(whole).toBe(false);
  expect(lines.length).toBeLessThan(ROWS);
  expect(lines.at(-1)).toBe('');
  expect(JSON.parse(lines.at(-2) ?? '')).toEqual({
    object: 'export_stopped',
    reason: 'invalid_credential',
    detail: expect.any(String),
    next_cursor: expect.any(String),
  });
});
