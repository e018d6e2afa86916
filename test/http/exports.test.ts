/**
 * Exports of the audit log and of usage: the end when the caller loses its permissions, and the continuation by a
 * client.
 */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { MAX_EXPORT_MS } from '../../src/iam/list/export.ts';
import { type Harness, type Json, outcome, type Person, startHarness, text } from './harness.ts';

/** More rows than a connection buffers while its client does not read. */
const ROWS = 1000;
const ROW_BYTES = 16_000;
const MODELS = 20_000;
const AUDIT = '/v1/iam/audit?action=made.up';
const USAGE = '/v1/iam/usage?period=2001-02&group_by=model';

// Thousands of rows, on machines that are busy.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

let h: Harness;
let aheadMs = 0;
beforeAll(async () => {
  h = await startHarness({ now: () => Date.now() + aheadMs });
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: 'acme', name: 'Acme' } });
  for (let first = 1; first < ROWS; first += 100) {
    await h.db.query({
      text: `insert into audit_log (actor_type, tenant_id, action, result, after)
        select 'system', 'acme', 'made.up', 'success', jsonb_build_object('n', n, 'text', repeat('x', $2::int))
        from generate_series($1::int, $1::int + 99) n`,
      values: [first, ROW_BYTES],
    });
  }
  for (let first = 1; first < MODELS; first += 2_000) {
    await h.db.query({
      text: `insert into usage_by_model (tenant_id, day, model, requests, prompt_tokens, completion_tokens, total_tokens)
        select 'acme', date '2001-02-03', lpad(n::text, 500, 'm'), 1, 1, 1, 2 from generate_series($1::int, $1::int + 1999) n`,
      values: [first],
    });
  }
});
afterAll(async () => {
  await h?.close();
});

interface Slow {
  /** Reads on: the whole body, and whether its end came. */
  rest(): Promise<{ readonly body: string; readonly whole: boolean }>;
}

/** Begins an export and does not read it. */
async function begin(path: string, accept: string, credential: string): Promise<Slow> {
  const asked = request(`${h.url}${path}`, {
    agent: false,
    headers: { authorization: `Bearer ${credential}`, accept },
  });
  asked.end();
  const [answer]: IncomingMessage[] = await once(asked, 'response');
  if (answer?.statusCode !== 200) throw new Error(`the export did not begin: ${answer?.statusCode}`);
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

const jsonLines = (body: string): readonly Json[] =>
  body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ ...JSON.parse(line) }));
const numberOf = (row: Json): unknown => Object(row['after']).n;
const ALL = Array.from({ length: ROWS }, (_, i) => ROWS - i);

/** A key of a tenant, with the rights to export. */
async function makeKey(owner?: Person): Promise<{ readonly id: string; readonly key: string }> {
  const reply = await h.api('POST', '/v1/iam/api-keys', {
    as: h.root.token,
    tenant: 'acme',
    body: {
      description: 'exports',
      scopes: ['audit:read', 'usage:read'],
      expires_in_days: 1,
      user_id: owner?.id ?? null,
    },
  });
  return { id: text(reply.json, 'id'), key: text(reply.json, 'key') };
}

const asRoot = (method: string, path: string, body?: object) =>
  h.api(method, path, { as: h.root.token, tenant: 'acme', ...(body === undefined ? {} : { body }) });

interface Ending {
  readonly reason: string;
  /** The credential, and how its rights end. */
  begin(): Promise<{ readonly credential: string; end(): Promise<unknown>; undo?(): Promise<unknown> }>;
}

async function person(end: (who: Person) => Promise<unknown>, undo?: (who: Person) => Promise<unknown>) {
  const who = await h.person('acme', ['auditor']);
  return { credential: who.token, end: () => end(who), undo: async () => undo?.(who) };
}

const ENDINGS: Readonly<Record<string, Ending>> = {
  'its key is revoked': {
    reason: 'invalid_credential',
    async begin() {
      const { id, key } = await makeKey();
      return { credential: key, end: () => asRoot('DELETE', `/v1/iam/api-keys/${id}`) };
    },
  },
  'its key expires': {
    reason: 'invalid_credential',
    async begin() {
      const { id, key } = await makeKey();
      const end = () =>
        h.db.query({ text: 'update api_keys set expires_at = clock_timestamp() where id = $1', values: [id] });
      return { credential: key, end };
    },
  },
  "its key's owner is deactivated": {
    reason: 'invalid_credential',
    async begin() {
      const owner = await h.person('acme', ['auditor']);
      const { key } = await makeKey(owner);
      return { credential: key, end: () => asRoot('POST', `/v1/iam/users/${owner.id}/deactivate`) };
    },
  },
  'its caller logs out': {
    reason: 'invalid_credential',
    begin: () => person(({ token }) => h.api('POST', '/v1/auth/logout', { as: token })),
  },
  'its caller loses the role': {
    reason: 'insufficient_permission',
    begin: () => person(({ id }) => asRoot('PUT', `/v1/iam/users/${id}`, { roles: [] })),
  },
  'a policy denies it': {
    reason: 'denied_by_policy',
    begin: () =>
      person(
        () =>
          asRoot('POST', '/v1/iam/policies', {
            name: 'no-exports',
            effect: 'deny',
            actions: ['audit:read', 'usage:read'],
            resources: ['*'],
          }),
        () => asRoot('DELETE', '/v1/iam/policies/no-exports'),
      ),
  },
  'its tenant is suspended': {
    reason: 'tenant_suspended',
    begin: () =>
      person(
        () => h.api('POST', '/v1/iam/tenants/acme/suspend', { as: h.root.token }),
        () => h.api('POST', '/v1/iam/tenants/acme/activate', { as: h.root.token }),
      ),
  },
  'the store is gone': {
    reason: 'unavailable',
    begin: () =>
      person(
        () => h.cutDatabase(),
        () => h.restoreDatabase(),
      ),
  },
  'its time is over': {
    reason: 'time_limit',
    begin: () =>
      person(
        async () => {
          aheadMs = MAX_EXPORT_MS;
        },
        async () => {
          aheadMs = 0;
        },
      ),
  },
};

/** Begins an export, ends it in the middle, and reads the rest. */
async function stopped(name: string, path: string, accept: string) {
  const ending = ENDINGS[name];
  if (ending === undefined) throw new Error(name);
  const { credential, end, undo } = await ending.begin();
  const slow = await begin(path, accept, credential);
  try {
    await end();
    return { ...(await slow.rest()), reason: ending.reason };
  } finally {
    await undo?.();
  }
}

describe('an export breaks off, and its last line says where to go on,', () => {
  test.each(Object.keys(ENDINGS))('when %s: NDJSON of the audit log', async (name) => {
    const { body, whole, reason } = await stopped(name, AUDIT, 'application/x-ndjson');
    const lines = jsonLines(body);
    const last = lines.at(-1) ?? {};
    expect({ whole, ...last }).toEqual({
      whole: false,
      object: 'export_stopped',
      reason,
      detail: expect.any(String),
      next_cursor: expect.any(String),
    });
    const { token } = await h.person('acme', ['auditor']);
    const rest = await h.api('GET', `${AUDIT}&cursor=${text(last, 'next_cursor')}`, {
      as: token,
      headers: { accept: 'application/x-ndjson' },
    });
    expect([...lines.slice(0, -1), ...jsonLines(rest.text)].map(numberOf)).toEqual(ALL);
  });

  test.each(['its key is revoked', 'its caller loses the role', 'its time is over'])(
    'when %s: CSV of usage',
    async (name) => {
      const { body, whole, reason } = await stopped(name, USAGE, 'text/csv');
      const lines = body.trimEnd().split('\r\n');
      const [object, why, cursor] = lines.at(-1)?.split(',') ?? [];
      expect([whole, object, why]).toEqual([false, 'export_stopped', reason]);
      const { token } = await h.person('acme', ['auditor']);
      const rest = await h.api('GET', `${USAGE}&cursor=${cursor}`, { as: token, headers: { accept: 'text/csv' } });
      const [header, ...others] = rest.text.trimEnd().split('\r\n');
      expect(header).toBe(lines[0]);
      expect([...lines.slice(1, -1), ...others]).toHaveLength(MODELS);
      expect(new Set([...lines.slice(1, -1), ...others]).size).toBe(MODELS);
    },
  );
});

describe('an export', () => {
  test('of a caller that keeps its permissions is complete for a slow reader, and has only rows', async () => {
    const { key } = await makeKey();
    const slow = await begin(AUDIT, 'application/x-ndjson', key);
    await asRoot('POST', '/v1/iam/roles', { name: 'other-news', permissions: ['chat:read'] });
    const { body, whole } = await slow.rest();
    expect(whole).toBe(true);
    expect(jsonLines(body).map(numberOf)).toEqual(ALL);
  });

  test('as CSV of the audit log breaks off in the same way', async () => {
    const { id, key } = await makeKey();
    const slow = await begin(AUDIT, 'text/csv', key);
    await asRoot('DELETE', `/v1/iam/api-keys/${id}`);
    const { body, whole } = await slow.rest();
    const [object, reason, cursor] = body.trimEnd().split('\r\n').at(-1)?.split(',') ?? [];
    expect([whole, object, reason]).toEqual([false, 'export_stopped', 'invalid_credential']);
    const page = await asRoot('GET', `${AUDIT}&limit=1&cursor=${cursor}`);
    expect(outcome(page)).toBe('200');
  });

  test('refuses the cursor of another list or of other filters', async () => {
    const page = await asRoot('GET', `${AUDIT}&limit=1`);
    const cursor = text(page.json, 'next_cursor');
    const exported = (path: string) =>
      h.api('GET', path, { as: h.root.token, tenant: 'acme', headers: { accept: 'text/csv' } }).then(outcome);
    expect(await exported(`/v1/iam/audit?action=other&cursor=${cursor}`)).toBe('400 invalid_parameter');
    expect(await exported(`${USAGE}&cursor=${cursor}`)).toBe('400 invalid_parameter');
  });
});
