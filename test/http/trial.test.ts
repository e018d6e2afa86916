/** Decisions in shadow mode: counted, listed with the other gate's outcome, and summed up. */

import { afterAll, describe, expect, test } from 'vitest';
import { OTHER_GATE_REPORTED_AT } from '../../src/store/other-gate.ts';
import { type DecisionSpec, storeDecision } from '../support/recorded-decisions.ts';
import { column, type Harness, it, outcome, type Person, type Reply, rows, unique } from './harness.ts';

const DECISIONS = '/v1/iam/decisions';
const TRIAL = `${DECISIONS}/trial`;
const MINUTE = 60_000;

const ACME = unique('acme');
const GLOBEX = unique('globex');
const now = Date.now();

let h: Harness;
let auditor: Person;
let developer: Person;
const ids: Record<string, string> = {};

/** Records a decision in shadow mode as a gate does, with an `x-request-id` unless it is null. */
async function record(name: string, requestId: string | null, spec: DecisionSpec): Promise<void> {
  ids[name] = await storeDecision(h.db, {
    tenant_id: ACME,
    shadow: true,
    client_request_id: requestId,
    atMs: now - 5 * MINUTE,
    ...spec,
  });
}

async function count(code: string, decisions: number): Promise<void> {
  await h.db.query({
    text: `insert into shadow_decision_counts (tenant_id, minute, code, route, decisions)
      values ($1, date_trunc('minute', to_timestamp($2)), $3, '', $4)`,
    values: [ACME, (now - 5 * MINUTE) / 1000, code, decisions],
  });
}

it.beforeAll(async ({ harness }) => {
  h = harness;
  for (const id of [ACME, GLOBEX]) await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id, name: id } });
  auditor = await h.person(ACME, ['auditor']);
  developer = await h.person(ACME, ['developer']);
  const person = { principal_type: 'user', principal_id: developer.id } as const;
  const request = (name: string) => `${ACME}-${name}`;
  await h.db.query({
    text: 'insert into other_gate_denials (client_request_id) select unnest($1::text[])',
    values: [['both', 'there', 'repeated'].map(request)],
  });
  const denied = { ...person, code: 'denied_by_policy', policy: 'no-chat' } as const;
  await record('here', request('here'), denied);
  await record('both', request('both'), denied);
  await record('unknown', null, { code: 'missing_credential' });
  await record('there', request('there'), { ...person, outcome: 'allow', code: 'allow' });
  await record('neither', request('neither'), { outcome: 'allow', code: 'public' });
  await record('theirs', request('theirs'), { tenant_id: GLOBEX });
  // A client repeats an id, and the other gate denied one of its two requests.
  await record('first', request('repeated'), { outcome: 'allow', code: 'allow' });
  await record('second', request('repeated'), { outcome: 'allow', code: 'allow' });
  ids['enforced'] = await storeDecision(h.db, { tenant_id: ACME, atMs: now - 4 * MINUTE, ...denied });
  for (const [code, decisions] of [
    ['denied_by_policy', 2],
    ['missing_credential', 1],
    ['allow', 10],
  ] as const)
    await count(code, decisions);
});

// Other files on the same database list the decisions of all tenants.
afterAll(() =>
  h.db.query({ text: 'delete from recent_decisions where tenant_id = any($1)', values: [[ACME, GLOBEX]] }),
);

const ask = (path: string, as = auditor.token) => h.api('GET', path, { as });
const named = (reply: Reply) => {
  const names = new Map(Object.entries(ids).map(([name, id]) => [id, name]));
  return column(reply, 'request_id').map((id) => names.get(String(id)));
};
const list = async (query: string) => new Set(named(await ask(`${DECISIONS}/recent?${query}`)));

describe('decisions in shadow mode', () => {
  test.each([
    ['shadow=true', ['here', 'both', 'unknown', 'there', 'neither', 'first', 'second']],
    ['shadow=true&other=deny', ['both', 'there']],
    ['shadow=true&other=allow', ['here', 'neither']],
    ['shadow=true&differs=true', ['here', 'there']],
    ['shadow=true&differs=true&outcome=deny', ['here']],
    ['shadow=true&differs=false', ['both', 'unknown', 'neither', 'first', 'second']],
    ['shadow=true&code=denied_by_policy&differs=true', ['here']],
    ['', ['enforced']],
    ['shadow=false', ['enforced']],
    ['differs=true', []],
    ['other=allow', []],
  ])('are listed apart from enforced ones, filtered by %s', async (query, expected) => {
    expect(await list(query)).toEqual(new Set(expected));
  });

  test('are listed in pages and counted, each once', async () => {
    const seen: unknown[] = [];
    for (let cursor = ''; ; ) {
      const reply = await ask(`${DECISIONS}/recent?shadow=true&differs=true&limit=1&count=true${cursor}`);
      expect(reply.json['total']).toBe(2);
      seen.push(...named(reply));
      if (reply.json['has_more'] !== true) break;
      cursor = `&cursor=${String(reply.json['next_cursor'])}`;
    }
    expect(new Set(seen)).toEqual(new Set(['here', 'there']));
    expect(seen).toHaveLength(2);
  });

  test('are opened and explained, with the outcome of the other gate', async () => {
    const { json } = await ask(`${DECISIONS}/recent/${ids['both']}`);
    expect(json).toMatchObject({ shadow: true, client_request_id: `${ACME}-both`, other: 'deny', not_explained: null });
    expect((await ask(`${DECISIONS}/recent/${ids['unknown']}`)).json).toMatchObject({ shadow: true, other: null });
    expect((await ask(`${DECISIONS}/recent/${ids['neither']}`)).json).toMatchObject({ code: 'public', other: 'allow' });
  });

  test('with one `x-request-id` have no outcome of the other gate, because its report may mean either', async () => {
    for (const name of ['first', 'second'])
      expect((await ask(`${DECISIONS}/recent/${ids[name]}`)).json).toMatchObject({ other: null });
  });

  test('are counted apart from enforced ones', async () => {
    const from = new Date(now - 10 * MINUTE).toISOString();
    const counted = await ask(`${DECISIONS}?shadow=true&group_by=code&interval=day&from=${from}`);
    expect(counted.json['total']).toEqual({ allow: 10, deny: 3, fault: 0 });
    expect(rows(counted).reduce((sum, row) => sum + Number(row['count']), 0)).toBe(13);
    expect((await ask(`${DECISIONS}?from=${from}`)).json['total']).toEqual({ allow: 0, deny: 0, fault: 0 });
  });
});

describe('the summary of a trial', () => {
  test('has the numbers of the tenant by reason and principal, what was not recorded, and the differences of both kinds', async () => {
    const { json } = await ask(TRIAL);
    expect(json).toEqual({
      from: expect.any(String),
      to: expect.any(String),
      tenant_id: ACME,
      total: { allow: 10, deny: 3, fault: 0 },
      recorded: { allow: 4, deny: 3 },
      not_recorded: 6,
      differences: { denied_here: 1, denied_there: 1 },
      other_gate_reported_at: null,
      denied_by_code: [
        { code: 'denied_by_policy', policy: 'no-chat', count: 2, differing: 1 },
        { code: 'missing_credential', policy: null, count: 1, differing: 0 },
      ],
      denied_by_principal: [
        // An auditor may not read the names of users.
        { principal: { type: 'user', id: developer.id, name: null }, count: 2, differing: 1 },
        { principal: null, count: 1, differing: 0 },
      ],
    });
    expect((await ask(`${TRIAL}?tenant_id=${ACME}`, h.root.token)).json['denied_by_principal']).toMatchObject([
      { principal: { id: developer.id, name: expect.any(String) } },
      { principal: null },
    ]);
  });

  test('covers the last day by default, and any span within it', async () => {
    const { json } = await ask(TRIAL);
    const span = Date.parse(String(json['to'])) - Date.parse(String(json['from']));
    expect(span).toBeGreaterThanOrEqual(24 * 60 * MINUTE);
    expect(span).toBeLessThan((24 * 60 + 1) * MINUTE);
    const later = await ask(`${TRIAL}?from=${new Date(now - 3 * MINUTE).toISOString()}`);
    expect(later.json).toMatchObject({ total: { deny: 0 }, recorded: { deny: 0 }, denied_by_code: [] });
    expect(outcome(await ask(`${TRIAL}?from=2026-02-30T99:00:00Z`))).toBe('400 invalid_parameter');
  });

  test("has the time of the last report of the other gate's log", async () => {
    const text = 'insert into meta (name, value) values ($1, $2)';
    await h.db.query({ text, values: [OTHER_GATE_REPORTED_AT, '2026-11-21T09:00:00.000Z'] });
    expect((await ask(TRIAL)).json['other_gate_reported_at']).toBe('2026-11-21T09:00:00.000Z');
    await h.db.query({ text: 'delete from meta where name = $1', values: [OTHER_GATE_REPORTED_AT] });
  });

  test('needs audit:read, and is of another tenant or of all for platform administrators only', async () => {
    expect(outcome(await ask(TRIAL, developer.token))).toBe('403 insufficient_permission');
    for (const tenant of [GLOBEX, '*']) {
      expect(outcome(await ask(`${TRIAL}?tenant_id=${tenant}`))).toBe('403 tenant_mismatch');
      expect((await ask(`${TRIAL}?tenant_id=${tenant}`, h.root.token)).json).toMatchObject({
        tenant_id: tenant,
        recorded: { deny: expect.any(Number) },
      });
    }
  });
});
