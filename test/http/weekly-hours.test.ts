/** The condition `weekly_hours` in the API: written, shown, explained, simulated, and named by who-can. */

import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { compileConditions, conditionInputs, conditionsHold } from '../../src/decision/conditions.ts';
import { parseConditions } from '../../src/decision/validate.ts';
import { isObject } from '../../src/domain/json.ts';
import { type Harness, it, outcome, type Person, unique } from './harness.ts';

const ACME = unique('acme');

let h: Harness;
let boss: Person;
let ada: Person;
it.beforeAll(async ({ harness }) => {
  h = harness;
  const settings = { timezone: 'Europe/Berlin' };
  await h.api('POST', '/v1/iam/tenants', { as: h.root.token, body: { id: ACME, name: ACME, settings } });
  boss = await h.person(ACME, ['tenant-admin']);
  ada = await h.person(ACME, ['developer']);
  await as('POST', '/v1/iam/policies', OFFICE);
});

const as = (method: 'GET' | 'POST' | 'PUT', path: string, body?: object) =>
  h.api(method, path, { as: boss.token, ...(body === undefined ? {} : { body }) });

const WINDOWS = ['Mon-Fri 08:00-18:00', 'Sun 22:00-02:00'];
const OFFICE = {
  name: 'office-hours',
  effect: 'deny',
  actions: ['embeddings:*'],
  resources: ['*'],
  conditions: { weekly_hours: { not_in: WINDOWS } },
};
const EMBED = { method: 'POST', path: '/v1/embeddings', body: '{"model":"m"}' };

describe('a policy with weekly hours', () => {
  test('is shown and changed as it was written', async () => {
    const shown = await as('GET', '/v1/iam/policies/office-hours');
    expect(shown.json['conditions']).toEqual(OFFICE.conditions);
    const both = {
      weekly_hours: { in: ['Fri-Mon 00:00-24:00'], not_in: ['Sat 12:00-13:00'] },
      timezone: 'America/New_York',
    };
    const body = { ...OFFICE, name: 'weekends', enabled: false };
    expect(outcome(await as('POST', '/v1/iam/policies', body))).toBe('201');
    expect((await as('PUT', '/v1/iam/policies/weekends', { conditions: both })).json['conditions']).toEqual(both);
  });

  test.each([
    ['an empty list', { in: [] }, '/in'],
    ['no operator', {}, ''],
    ['an unknown operator', { between: WINDOWS }, '/between'],
    ['an equal start and end', { not_in: [...WINDOWS, 'Sat 08:00-08:00'] }, '/not_in/2'],
    ['several days with commas', { in: ['Mon,Wed 08:00-18:00'] }, '/in/0'],
    ['85 windows', { in: Array.from({ length: 85 }, () => 'Mon 08:00-18:00') }, '/in'],
  ])('is refused with %s, by the path of the member', async (_what, hours, at) => {
    const path = `/conditions/weekly_hours${at}`;
    const conditions = { weekly_hours: hours };
    for (const reply of [
      await as('POST', '/v1/iam/policies', { ...OFFICE, name: 'wrong', conditions }),
      await as('PUT', '/v1/iam/policies/office-hours', { conditions }),
    ]) {
      expect([outcome(reply), reply.json['errors']]).toMatchObject(['422 invalid_field', [{ path }]]);
    }
    const policies = [{ ...OFFICE, name: 'wrong', conditions }];
    const simulated = await as('POST', '/v1/iam/explain/simulate', { subject: ada.id, ...EMBED, policies });
    expect([outcome(simulated), simulated.json['errors']]).toMatchObject([
      '422 invalid_field',
      [{ path: `/policies/0${path}` }],
    ]);
  });

  test.each([
    ['2026-11-18T11:00:00Z', 'Wed 12:00', 'allow'],
    ['2026-11-18T17:00:00Z', 'Wed 18:00', 'denied_by_policy'],
    ['2026-11-21T11:00:00Z', 'Sat 12:00', 'denied_by_policy'],
    ['2026-11-22T23:30:00Z', 'Mon 00:30', 'allow'],
    ['2026-11-23T01:00:00Z', 'Mon 02:00', 'denied_by_policy'],
  ])(
    "is explained with the day and time on the tenant's clock that the hours are compared with: %s is %s, %s",
    async (time, value, code) => {
      const { json } = await as('POST', '/v1/iam/explain', { subject: ada.id, ...EMBED, time });
      const condition = {
        kind: 'weekly_hours',
        operator: 'not_in',
        operand: WINDOWS,
        timezone: 'Europe/Berlin',
        missing: false,
      };
      expect(json).toMatchObject({
        code,
        policies: expect.arrayContaining([
          expect.objectContaining({
            name: 'office-hours',
            conditions: [{ ...condition, value, matched: code === 'denied_by_policy' }],
          }),
        ]),
      });
    },
  );

  test('is simulated before it is saved', async () => {
    const chat = { method: 'POST', path: '/v1/chat/completions', body: '{"model":"m"}' };
    const policies = [
      { ...OFFICE, name: 'chats', actions: ['chat:*'], conditions: { weekly_hours: { in: ['Sat 22:00-02:00'] } } },
    ];
    const simulated = async (time: string) => {
      const { json } = await as('POST', '/v1/iam/explain/simulate', { subject: ada.id, ...chat, time, policies });
      return [json['code'], isObject(json['current']) ? json['current']['code'] : undefined];
    };
    expect(await simulated('2026-11-22T00:30:00Z')).toEqual(['denied_by_policy', 'allow']);
    expect(await simulated('2026-11-22T01:00:00Z')).toEqual(['allow', 'allow']);
  });

  test('makes a verdict of who-can conditional, and who-can shows the hours', async () => {
    const { json } = await as('POST', '/v1/iam/explain/who-can', { permission: 'embeddings:write' });
    expect(json).toMatchObject({
      users: expect.arrayContaining([
        expect.objectContaining({ id: ada.id, verdict: 'conditional', conditions: ['office-hours'] }),
      ]),
      policies: [{ name: 'office-hours', effect: 'deny', global: false, conditions: OFFICE.conditions }],
    });
  });

  test('that allows gives no permission that its holder could grant', async () => {
    const name = 'whole-week';
    const allow = { name, effect: 'allow', actions: ['finetuning:*'], resources: ['*'], attached_roles: ['developer'] };
    const conditions = { weekly_hours: { in: ['Mon-Sun 00:00-24:00'] } };
    expect(outcome(await as('POST', '/v1/iam/policies', { ...allow, conditions }))).toBe('201');
    const give = () =>
      h.api('POST', '/v1/iam/api-keys', {
        as: ada.token,
        body: { description: 'k', scopes: ['finetuning:read'], expires_in_days: 1 },
      });
    expect(outcome(await give())).toBe('403 escalation');
    await as('PUT', `/v1/iam/policies/${name}`, { conditions: {} });
    expect(outcome(await give())).toBe('201');
  });
});

describe('the office hours that the documentation gives as an example', () => {
  /** Whether a deny with these conditions is in force on Wednesday and on Saturday, at noon and at night. */
  function inForce(conditions: unknown): readonly boolean[] {
    const parsed = parseConditions(conditions);
    if (parsed.kind === 'errors') throw new Error(JSON.stringify(parsed.errors));
    const compiled = compileConditions(parsed.value);
    return ['2026-11-18T12:00:00Z', '2026-11-18T23:00:00Z', '2026-11-21T12:00:00Z', '2026-11-21T23:00:00Z'].map(
      (time) => conditionsHold(compiled, 'deny', conditionInputs(Date.parse(time), undefined, undefined)),
    );
  }

  test.each(['docs/policies.md', '/openapi.json'])('deny nights and the whole weekend: %s', async (source) => {
    const text =
      source === '/openapi.json'
        ? JSON.stringify((await h.api('GET', source)).json)
        : await readFile(new URL(`../../${source}`, import.meta.url), 'utf8');
    const examples = [...text.matchAll(/"name":\s*"office-hours".*?"conditions":\s*(\{.*?\}[^{}]*\})/gs)];
    expect(examples.length).toBeGreaterThan(0);
    for (const [, conditions = ''] of examples)
      expect(inForce(JSON.parse(conditions)), conditions).toEqual([false, true, true, true]);
  });
});
