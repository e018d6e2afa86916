/** GET /v1/iam/audit: who sees which rows, the filters, pages, and exports as streams. */

import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { column, type Harness, type Json, outcome, type Person, rows, startHarness, text } from '../http/harness.ts';
import { write } from './support.ts';

const AUDIT = '/v1/iam/audit';

let h: Harness;
let auditor: Person;
let nobody: Person;
beforeAll(async () => {
  h = await startHarness();
  for (const id of ['acme', 'globex'])
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  auditor = await h.person('acme', ['auditor']);
  nobody = await h.person('acme', []);
  await write(
    h.db,
    {
      action: 'auth.login',
      actorType: 'anonymous',
      actorId: undefined,
      targetType: 'user',
      targetId: 'eve@acme.example',
      result: 'failure',
    },
    { action: 'role.create', targetId: 'reader', result: 'refused', address: '2001:db8::1' },
    { action: 'role.create', targetId: 'reader', before: undefined },
    { action: 'policy.create', targetType: 'policy', targetId: 'reader', requestId: 'req_0000000000000000000000000a' },
    { action: 'role.delete', targetId: 'reader', after: undefined, tenantId: 'globex' },
    { action: 'user.bootstrap', actorType: 'system', actorId: undefined, tenantId: undefined, requestId: undefined },
  );
  // Each at a whole second of its own: answers show milliseconds, within which several are written.
  await h.db.query({
    text: `update audit_log set time = date_trunc('second', time) - (1000 - id) * interval '1 second'`,
  });
});
afterAll(async () => {
  await h?.close();
});

const list = (query: string, as = auditor.token) => h.api('GET', `${AUDIT}${query}`, { as });
const actions = async (query: string, as = auditor.token) => column(await list(query, as), 'action');

describe('a row', () => {
  test('says who did what to what, from where, and what it was before and after', async () => {
    const [row] = rows(await list('?action=policy.create'));
    expect(row).toEqual({
      id: expect.stringMatching(/^\d+$/),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      actor: { type: 'user', id: 'usr_00000000000000000000000001' },
      tenant_id: 'acme',
      address: '192.0.2.7',
      action: 'policy.create',
      target: { type: 'policy', id: 'reader' },
      result: 'success',
      before: { permissions: ['rag:read'], resource_constraints: {} },
      after: { permissions: ['rag:read', 'chat:*'], resource_constraints: { models: ['llama-*'] }, limit: 10.5 },
      request_id: 'req_0000000000000000000000000a',
    });
  });

  test('has null where nothing is known', async () => {
    const [row] = rows(await list('?tenant_id=*&action=user.bootstrap', h.root.token));
    expect(row).toMatchObject({ actor: { type: 'system', id: null }, tenant_id: null, request_id: null });
  });
});

describe('the permission to read the audit log', () => {
  test('needs audit:read', async () => {
    expect(outcome(await list('', nobody.token))).toBe('403 insufficient_permission');
    expect(outcome(await h.api('GET', AUDIT))).toBe('401 missing_credential');
  });

  test('sees the rows of its own tenant alone, in pages and in exports', async () => {
    expect(new Set(column(await list(''), 'tenant_id'))).toEqual(new Set(['acme']));
    const exported = await h.api('GET', AUDIT, { as: auditor.token, headers: { accept: 'application/x-ndjson' } });
    expect(new Set(linesOf(exported.text).map((row) => row['tenant_id']))).toEqual(new Set(['acme']));
    expect(outcome(await list('?tenant_id=globex'))).toBe('403 tenant_mismatch');
    expect(outcome(await list('?tenant_id=*'))).toBe('403 tenant_mismatch');
  });

  test('as a platform administrator, sees one tenant at a time, or all and the platform itself', async () => {
    expect(new Set(column(await list('?tenant_id=globex', h.root.token), 'tenant_id'))).toEqual(new Set(['globex']));
    const everywhere = column(await list('?tenant_id=*', h.root.token), 'tenant_id');
    expect(everywhere).toEqual(expect.arrayContaining(['acme', 'globex', null]));
    expect(column(await list('', h.root.token), 'tenant_id')).not.toContain(null);
  });
});

describe('filters', () => {
  test.each([
    ['actor=usr_00000000000000000000000001', ['policy.create', 'role.create', 'role.create']],
    ['actor=anonymous', ['auth.login']],
    ['action=role.create', ['role.create', 'role.create']],
    ['target=eve@acme.example', ['auth.login']],
    ['target=reader', ['policy.create', 'role.create', 'role.create']],
    ['target=policy/reader', ['policy.create']],
    ['target=nothing/reader', []],
    ['result=failure', ['auth.login']],
    ['result=refused', ['role.create']],
    ['request_id=req_0000000000000000000000000a', ['policy.create']],
    ['action=role.create&result=success', ['role.create']],
    ['to=2000-01-01T00:00:00Z', []],
    ['from=2999-01-01T00:00:00%2B02:00', []],
  ])('%s', async (query, expected) => {
    expect(await actions(`?${query}`)).toEqual(expected);
  });

  test('from is the first instant that counts, to the first that does not', async () => {
    const all = rows(await list(''));
    const middle = all[1];
    const at = text(middle ?? {}, 'time');
    const since = column(await list(`?from=${at}`), 'id');
    const until = column(await list(`?to=${at}`), 'id');
    expect(since).toContain(middle?.['id']);
    expect(until).not.toContain(middle?.['id']);
    expect(since.length + until.length).toBe(all.length);
  });

  test.each([
    '?actors=x',
    '?result=maybe',
    '?from=yesterday',
    '?from=2026-06-30T23:59:60Z',
    '?from=2026-06-30T00:00:00%2B02',
    '?limit=0',
    '?cursor=abc',
    '?action=',
  ])('%s is refused', async (query) => {
    expect(outcome(await list(query))).toBe('400 invalid_parameter');
  });
});

describe('pages', () => {
  test('are newest first and give each row once, while new rows come', async () => {
    const ids: unknown[] = [];
    const before = column(await list('?limit=200'), 'id');
    for (let cursor = ''; ; ) {
      const page = await list(`?limit=2${cursor}`);
      ids.push(...column(page, 'id'));
      await write(h.db, { action: 'came.later' });
      if (page.json['has_more'] !== true) break;
      cursor = `&cursor=${text(page.json, 'next_cursor')}`;
    }
    expect(ids).toEqual(before);
    expect(ids.map(Number)).toEqual(ids.map(Number).toSorted((a, b) => b - a));
  });

  test('have cursors that work for their caller only', async () => {
    const page = await list('?tenant_id=*&limit=1', h.root.token);
    const cursor = text(page.json, 'next_cursor');
    expect(outcome(await list(`?limit=1&cursor=${cursor}`))).toBe('400 invalid_parameter');
    expect(outcome(await list(`?tenant_id=*&result=failure&cursor=${cursor}`, h.root.token))).toBe(
      '400 invalid_parameter',
    );
  });
});

function linesOf(body: string): readonly Json[] {
  return body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => ({ ...JSON.parse(line) }));
}

/** RFC 4180, the plain way. */
function cellsOf(csv: string): readonly (readonly string[])[] {
  const found: string[][] = [[]];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    found.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain ?? '');
    if (end === '\r\n') found.push([]);
    if (end === '') break;
  }
  return found.filter((cells) => cells.length > 1);
}

describe('exports', () => {
  const fetchAs = (accept: string, query = '') =>
    h.api('GET', `${AUDIT}${query}`, { as: auditor.token, headers: { accept } });

  test('as NDJSON are the rows of the pages, one on each line', async () => {
    const exported = await fetchAs('application/x-ndjson', '?action=role.create');
    expect(exported.headers['content-type']).toBe('application/x-ndjson; charset=utf-8');
    expect(exported.headers['content-disposition']).toBe('attachment; filename="audit.ndjson"');
    expect(linesOf(exported.text)).toEqual(rows(await list('?action=role.create')));
  });

  test('as CSV are the same rows under a header, with before and after as JSON', async () => {
    const exported = await fetchAs('text/csv', '?action=role.create');
    expect(exported.headers['content-type']).toMatch(/^text\/csv; charset=utf-8/);
    const [header, ...lines] = cellsOf(exported.text);
    expect(header).toEqual(
      'id,time,actor_type,actor_id,tenant_id,address,action,target_type,target_id,result,before,after,request_id'.split(
        ',',
      ),
    );
    const shown = rows(await list('?action=role.create'));
    expect(lines.map((cells) => cells[0])).toEqual(shown.map((row) => row['id']));
    expect(lines.map((cells) => cells[10])).toEqual(
      shown.map((row) => (row['before'] === null ? '' : JSON.stringify(row['before']))),
    );
    expect(lines.map((cells) => cells[5])).toEqual(['192.0.2.7', '2001:db8::1']);
  });

  test('as CSV run nothing in a spreadsheet and survive commas, quotes and line ends', async () => {
    const typed = ['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', ' =1', '|calc', 'a,b', 'a"b', 'a\r\nb', "it's"];
    await write(h.db, ...typed.map((targetId) => ({ action: 'typed.in', targetId, before: undefined })));
    const [, ...lines] = cellsOf((await fetchAs('text/csv', '?action=typed.in')).text);
    expect(lines.map((cells) => cells[8]).toReversed()).toEqual(
      typed.map((name) => (/^[\s]*[=+\-@|\t\r]/.test(name) ? `'${name}` : name)),
    );
    const exact = linesOf((await fetchAs('application/x-ndjson', '?action=typed.in')).text);
    expect(exact.map((row) => Object(row['target']).id).toReversed()).toEqual(typed);
  });

  test('of nothing are empty, with the header in CSV', async () => {
    expect((await fetchAs('application/x-ndjson', '?action=no.such')).text).toBe('');
    expect(cellsOf((await fetchAs('text/csv', '?action=no.such')).text)).toHaveLength(1);
  });

  test.each([
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/html, application/xhtml+xml', 'application/json'],
    ['text/csv;q=0.5, application/x-ndjson', 'application/x-ndjson'],
    ['TEXT/CSV', 'text/csv'],
    ['text/*', 'text/csv'],
    ['application/json;q=0.1, text/csv', 'text/csv'],
    ['text/csv;q=0, */*', 'application/json'],
  ])('Accept: %s gets %s', async (accept, type) => {
    const answer = await fetchAs(accept, '?action=role.create');
    expect(String(answer.headers['content-type']).split(';')[0]).toBe(type);
    expect(answer.headers['vary']).toBe('accept');
  });

  test('are not in pages', async () => {
    expect(outcome(await fetchAs('text/csv', '?limit=10'))).toBe('400 invalid_parameter');
  });

  test('are refused as JSON problems like everything else', async () => {
    const refused = await h.api('GET', AUDIT, { as: nobody.token, headers: { accept: 'text/csv' } });
    expect(outcome(refused)).toBe('403 insufficient_permission');
    expect(outcome(await fetchAs('text/csv', '?from=2026-06-30T23:59:60Z'))).toBe('400 invalid_parameter');
  });

  describe('that are large', () => {
    const ROWS = 4000;
    beforeAll(async () => {
      for (let first = 1; first < ROWS; first += 400) {
        await h.db.query({
          text: `insert into audit_log (actor_type, tenant_id, action, result, after)
            select 'system', 'acme', 'made.up', 'success', jsonb_build_object('n', n, 'text', repeat('x', 8000))
            from generate_series($1::int, $1::int + 399) n`,
          values: [first],
        });
      }
    });

    test('come whole and in order, batch by batch', async () => {
      const exported = linesOf((await fetchAs('application/x-ndjson', '?action=made.up')).text);
      expect(exported.map((row) => Object(row['after']).n)).toEqual(Array.from({ length: ROWS }, (_, i) => ROWS - i));
    });

    test('read from the database only what the client reads, and stop when the client disconnects', async () => {
      let batches = 0;
      const count = ({ sql }: { readonly sql: string }) => {
        if (sql.includes('from audit_log')) batches++;
      };
      const asked = request(`${h.url}${AUDIT}?action=made.up`, {
        headers: { authorization: `Bearer ${auditor.token}`, accept: 'application/x-ndjson' },
      });
      h.db.knex.on('query', count);
      asked.end();
      const [answer]: IncomingMessage[] = await once(asked, 'response');
      expect(answer?.statusCode).toBe(200);
      // The client does not read: the server fills the connection and then waits.
      for (let seen = -1; seen !== batches; ) {
        seen = batches;
        for (let i = 0; i < 5; i++) await h.api('GET', '/v1/iam/roles', { as: h.root.token });
      }
      asked.destroy();
      for (let i = 0; i < 5; i++) await h.api('GET', '/v1/iam/roles', { as: h.root.token });
      h.db.knex.off('query', count);
      expect(batches).toBeGreaterThan(0);
      expect(batches).toBeLessThan(ROWS / 200);
    });
  });
});

describe('a search', () => {
  const SEARCHED = 'searched';
  let reader: Person;
  let ada: Person;
  let key: Json;

  /** Rows older than all others of the tenant, each a second older than the one before. */
  const older = (count: number, actor: string, target: string) =>
    h.db.knex.raw(
      `insert into audit_log (time, actor_type, actor_id, tenant_id, action, target_type, target_id, result)
       select (select min(time) from audit_log where tenant_id = :tenant) - i * interval '1 second', 'user', :actor, :tenant,
         'user.update', 'user', :target, 'success' from generate_series(1, :count) i`,
      { tenant: SEARCHED, actor, target, count },
    );

  beforeAll(async () => {
    await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: SEARCHED, name: SEARCHED } });
    reader = await h.person(SEARCHED, ['tenant-admin']);
    ada = await h.person(SEARCHED, []);
    await h.db.knex.raw(`update users set name = 'Ada Lovelace', email = 'countess@mine.example' where id = ?`, [
      ada.id,
    ]);
    const made = await h.api('POST', '/v1/iam/api-keys', {
      as: reader.token,
      body: { name: 'Shop', description: 'The shop', scopes: ['chat:write'], expires_in_days: 3 },
    });
    key = made.json;
    await older(1, ada.id, 'usr_00000000000000000000000009');
    await older(1, 'usr_00000000000000000000000009', ada.id);
  });

  const found = async (q: string, query = '') => {
    const reply = await list(`?q=${encodeURIComponent(q)}${query}`, reader.token);
    return rows(reply).map((row) => [Object(row['actor']).id, Object(row['target']).id]);
  };
  const ofAda = () => [
    [ada.id, 'usr_00000000000000000000000009'],
    ['usr_00000000000000000000000009', ada.id],
  ];

  test('finds the rows of a user by any part of its name or address, as actor and as target', async () => {
    for (const q of ['lovelace', 'ADA L', 'countess@', 'countess@mine.example', ada.id])
      expect(await found(q), q).toEqual(ofAda());
    expect(await found('babbage')).toEqual([]);
  });

  test('finds the rows of a key by its name and prefix, and whole ids, targets and request ids', async () => {
    const created = [[reader.id, text(key, 'id')]];
    for (const q of ['sho', text(key, 'prefix'), text(key, 'id'), `api_key/${text(key, 'id')}`])
      expect(await found(q), q).toEqual(created);
    const [row] = rows(await list('?q=shop', reader.token));
    expect(await found(text(row ?? {}, 'request_id'))).toEqual(created);
    expect(await found('shop', '&action=api_key.revoke')).toEqual([]);
  });

  test('shows the names of actors and targets with include=names, to callers that may read them', async () => {
    const named = async (as: string) =>
      rows(await list('?q=lovelace&include=names&tenant_id=searched', as)).map(({ actor, target }) => [
        Object(actor).name,
        Object(target).name,
      ]);
    expect(await named(reader.token)).toEqual([
      ['Ada Lovelace', null],
      [null, 'Ada Lovelace'],
    ]);
    const auditorOfIt = await h.person(SEARCHED, ['auditor']);
    expect(await named(auditorOfIt.token)).toEqual([
      [null, null],
      [null, null],
    ]);
  });

  test('finds no user of another tenant', async () => {
    expect(rows(await list('?q=lovelace'))).toEqual([]);
  });

  const counted = async (q: string, query = '') =>
    (await list(`?q=${encodeURIComponent(q)}&count=true&limit=1${query}`, reader.token)).json['total'];

  test('is counted, with its filters', async () => {
    for (const q of ['lovelace', 'countess@', ada.id]) expect(await counted(q), q).toBe(2);
    for (const q of ['sho', text(key, 'prefix'), text(key, 'id'), `api_key/${text(key, 'id')}`])
      expect(await counted(q), q).toBe(1);
    expect([await counted('babbage'), await counted('shop', '&action=api_key.revoke')]).toEqual([0, 0]);
    await older(1, ada.id, ada.id);
    await older(10_000, 'usr_00000000000000000000000006', 'usr_00000000000000000000000005');
    expect(await counted('lovelace')).toBe(3);
    const reply = await list('?q=usr_00000000000000000000000005&count=true', reader.token);
    expect([reply.json['total'], reply.json['total_exceeds']]).toEqual([10_000, undefined]);
    await older(1, ada.id, 'usr_00000000000000000000000005');
    const beyond = await list('?q=usr_00000000000000000000000005&count=true', reader.token);
    expect([beyond.json['total'], beyond.json['total_exceeds']]).toEqual([undefined, 10_000]);
    await h.db.knex.raw(`delete from audit_log where target_id = 'usr_00000000000000000000000005'`);
    await h.db.knex.raw('delete from audit_log where actor_id = :id and target_id = :id', { id: ada.id });
  });

  test('finds rows behind thousands of others, and continues if too many users have the text', async () => {
    await older(5100, 'usr_00000000000000000000000008', 'usr_00000000000000000000000008');
    await older(2, ada.id, 'usr_00000000000000000000000007');
    const all = [...ofAda(), ...Array.from({ length: 2 }, () => [ada.id, 'usr_00000000000000000000000007'])];
    expect(await found('lovelace')).toEqual(all);
    const pages: unknown[] = [];
    let cursor = '';
    for (let more = true; more; ) {
      const reply = await list(`?q=lovelace&limit=3${cursor}`, reader.token);
      pages.push(...rows(reply).map((row) => [Object(row['actor']).id, Object(row['target']).id]));
      more = reply.json['has_more'] === true;
      cursor = `&cursor=${String(reply.json['next_cursor'])}`;
    }
    expect(pages).toEqual(all);
    await h.db.knex.raw(
      `insert into users (id, tenant_id, email, name)
       select 'usr_2' || lpad(i::text, 25, '0'), :tenant, 'namesake' || i || '@mine.example', 'Lovelace' from generate_series(1, 501) i`,
      { tenant: SEARCHED },
    );
    // Too many to count their rows.
    expect(await counted('lovelace')).toBe(undefined);
    const first = await list('?q=lovelace', reader.token);
    expect([rows(first).length, first.json['has_more']]).toEqual([2, true]);
    const second = await list(`?q=lovelace&cursor=${String(first.json['next_cursor'])}`, reader.token);
    expect([rows(second).length, second.json['has_more']]).toEqual([2, false]);
    const exported = await h.api('GET', `${AUDIT}?q=lovelace`, {
      as: reader.token,
      headers: { accept: 'application/x-ndjson' },
    });
    expect(linesOf(exported.text)).toHaveLength(4);
  });
});
