/**
 * A setup file may have the members that the API accepts. Every other member is an error with its line, its path and
 * the expected form.
 */

import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { stringify } from 'yaml';
import { readSetupText } from '../../src/cli/apply-file.ts';
import { planText } from '../../src/cli/apply-plan.ts';
import { isAgreed } from '../../src/cli/terminal.ts';
import { formatConfigError } from '../../src/config/config-error.ts';
import {
  issuerDocument,
  policyDocument,
  roleDocument,
  tenantDocument,
  userDocument,
} from '../../src/iam/setup/document.ts';
import { type Harness, startHarness } from '../http/harness.ts';

function problems(text: string | Uint8Array): readonly string[] {
  const read = readSetupText('f.yaml', typeof text === 'string' ? Buffer.from(text) : text);
  return read.kind === 'invalid' ? read.errors.map(formatConfigError) : [];
}

describe('every error names its place', () => {
  it.each([
    ['nothing', '', ['f.yaml:1:1: expected a map, with version: 1']],
    ['no map', '- a', ['f.yaml:1:1: Must be an object; you sent a list.']],
    ['no version', 'tenants: []', ['f.yaml:1:1: version: This member is required.']],
    ['another version', 'version: 2', ['f.yaml:1:1: version: Must be 1; you sent 2.']],
    [
      'a misspelt member',
      'version: 1\ntenats: []',
      ['f.yaml:2:1: tenats: This member is unknown; did you mean tenants?'],
    ],
    ['an empty list', 'version: 1\ntenants:', ['f.yaml:2:1: tenants: Must be a list; you sent null.']],
    ['a key twice', 'version: 1\nversion: 1', ['f.yaml:2:1: this key appears twice in the same map']],
    ['broken YAML', 'version: 1\ntenants: [}', ['f.yaml:2:11: not valid YAML here (BAD_INDENT)']],
    ['a key that is no text', 'version: 1\n? { a: b }\n: x', ['f.yaml:2:3: not valid YAML here (NON_STRING_KEY)']],
    ['a tag', 'version: !secret 1', ['f.yaml:1:10: not valid YAML here (TAG_RESOLVE_FAILED)']],
    ...['!!omap [{ monthly_tokens: 5 }]', '!!set { monthly_tokens }', '!!timestamp 2026-01-01'].map(
      (value): [string, string, string[]] => [
        `a value of another type of YAML, ${value}`,
        `version: 1\ntenants: [{ id: a, quotas: ${value} }]`,
        ['f.yaml:2:28: not valid YAML here (TAG_RESOLVE_FAILED)'],
      ],
    ),
    [
      'what may be a secret that lost its place',
      'version: 1\nhunter2 opens: it',
      ['f.yaml:2:1: (not a name): This member is unknown.'],
    ],
    ['an alias in its own value', 'version: 1\ntenants: &x [*x]', ['f.yaml: nested too deeply']],
    ['an alias of nothing', 'version: *x', ['f.yaml: an alias has no anchor, or there are too many aliases']],
    [
      'a number for a name',
      'version: 1\ntenants:\n  - id: acme\n    name: 12',
      ['f.yaml:4:5: tenants[0].name: Must be a string; you sent 12.'],
    ],
    [
      'NUL',
      'version: 1\ntenants:\n  - id: acme\n    name: "a\\0"',
      ['f.yaml:4:5: tenants[0].name: Text must not contain NUL characters or lone surrogates.'],
    ],
    [
      'the same tenant twice, behind an alias',
      'version: 1\ntenants:\n  - &a\n    id: acme\n    name: Acme\n  - *a',
      ['f.yaml:4:5: tenants[1].id: This tenant appears twice. Also in line 4.'],
    ],
    [
      'a wrong role in the second document',
      '# A file.\n---\nversion: 1\n---\nversion: 1\ntenants:\n  - id: acme\n    users: [{ email: a@b.test, roles: ["A B"] }]',
      ['f.yaml:8:40: tenants[0].users[0].roles[0]: This role does not exist in the tenant.'],
    ],
    [
      'a user in two documents',
      'version: 1\ntenants: [{ id: a, users: [{ email: a@b.test }] }]\n---\nversion: 1\ntenants: [{ id: a, users: [{ email: A@b.test }] }]',
      ['f.yaml:5:30: tenants[0].users[0].email: A user with this email address appears twice. Also in line 2.'],
    ],
    [
      'a tenant of the first document with more than users in the second',
      'version: 1\ntenants: [{ id: a, users: [] }]\n---\nversion: 1\ntenants: [{ id: a, name: A }]',
      ['f.yaml:5:13: tenants[0].id: This tenant appears twice. Also in line 2.'],
    ],
    [
      'a second document without a version',
      'version: 1\n---\ntenants: []',
      ['f.yaml:3:1: version: This member is required.'],
    ],
    ['a marker in a text', 'version: 1\n---\nversion: "a\n---\nb"', ['f.yaml:4:1: not valid YAML here (MISSING_CHAR)']],
    [
      'the first tenant suspended',
      'version: 1\ntenants:\n  - id: default\n    name: P\n    status: suspended',
      ['f.yaml:5:5: tenants[0].status: The first tenant cannot be suspended.'],
    ],
  ])('%s', (_, text, expected) => {
    expect(problems(text)).toEqual(expected);
  });

  it('a document over 8 MiB, with its first line', () => {
    const large = `version: 1\n---\n${'#'.repeat(8 * 1_048_576)}\nversion: 1`;
    expect(problems(large)).toEqual([
      'f.yaml:2:1: expected a document of at most 8 MiB; a line --- begins another document',
    ]);
  });

  it('errors of form and of meaning in one run, each once, in the order of the file', () => {
    const lines = [
      'version: 1',
      'global_policies:',
      '  - { name: nights, effect: Deny, actions: ["chat"], resources: ["*"] }',
      '  - { name: days, applies_to: sometimes, attached_roles: [developer], actions: ["*"], resources: ["models"] }',
      'tenants:',
      '  - id: acme',
      '    roles:',
      '      - 7',
      '      - { name: editor, permissions: ["chat", 5, "chat:re*"] }',
      '    users:',
      '      - { name: Ada }',
      '      - { email: ben@acme.test, roles: [No Role], status: asleep }',
      '  - id: default',
      '    status: suspended',
      '    nickname: "a\\0"',
    ];
    expect(problems(lines.join('\n')).map((problem) => problem.split(': ').slice(0, 2).join(' '))).toEqual([
      'f.yaml:3:21 global_policies[0].effect',
      'f.yaml:3:45 global_policies[0].actions[0]',
      'f.yaml:4:19 global_policies[1].applies_to',
      'f.yaml:4:99 global_policies[1].resources[0]',
      'f.yaml:8:9 tenants[0].roles[0]',
      'f.yaml:9:39 tenants[0].roles[1].permissions[0]',
      'f.yaml:9:47 tenants[0].roles[1].permissions[1]',
      'f.yaml:9:50 tenants[0].roles[1].permissions[2]',
      'f.yaml:11:9 tenants[0].users[0].email',
      'f.yaml:12:41 tenants[0].users[1].roles[0]',
      'f.yaml:12:51 tenants[0].users[1].status',
      'f.yaml:14:5 tenants[1].status',
      'f.yaml:15:5 tenants[1].nickname',
    ]);
  });

  it('what is not UTF-8, and what is nested without end', () => {
    expect(problems(Uint8Array.from([0xff]))).toEqual(['f.yaml: expected UTF-8 text']);
    expect(problems('['.repeat(100_000))).not.toEqual([]);
  });

  it('an alias that would grow without measure', () => {
    const lines = ['a: &a0 [x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 12; i++)
      lines.push(
        `b${i}: &a${i} [${Array(9)
          .fill(`*a${i - 1}`)
          .join(', ')}]`,
      );
    expect(problems(lines.join('\n'))).toEqual(['f.yaml: an alias has no anchor, or there are too many aliases']);
  });
});

describe('secrets have no place in it, and what looks like one is not repeated', () => {
  it.each(['password', 'password_hash', 'api_keys', 'key', 'token', 'secret'])('%s', (member) => {
    const text = `version: 1\ntenants:\n  - id: acme\n    name: Acme\n    users:\n      - { email: a@b.c, name: A, ${member}: sesame-open }`;
    expect(problems(text)).toEqual([
      `f.yaml:6:34: tenants[0].users[0].${member}: This member is unknown, and this file must not contain secrets.`,
    ]);
  });
});

test('a plan shows no character that a terminal would obey', () => {
  const changes = [{ member: 'name', before: 'a\u001b[2Jb', after: 'c\u009bd\u202ee\u2028' }];
  const text = planText([{ verb: 'change', type: 'tenant', tenant: undefined, name: 'acme', changes }]);
  expect(text).toContain('    name: "a\\u001b[2Jb" -> "c\\u{9b}d\\u{202e}e\\u{2028}"\n');
});

test.each([
  ['yes\n', true],
  ['no\n', false],
  ['y\n', false],
  ['\n', false],
  ['', false],
])('an operator that answers %j agrees: %j', async (answer, agreed) => {
  const input = new PassThrough();
  const asked = isAgreed(input, new PassThrough(), 'This plan changes the database.');
  input.end(answer);
  expect(await asked).toBe(agreed);
});

describe('the API and a file take and refuse the same', () => {
  let h: Harness;
  beforeAll(async () => {
    h = await startHarness();
  });
  afterAll(() => h?.close());

  const LISTS = { users: 'users', roles: 'roles', policies: 'policies', tenants: 'tenants' } as const;
  const GOOD = {
    users: { email: 'ada@acme.test', name: 'Ada' },
    roles: { name: 'editor', permissions: ['chat:*'] },
    policies: { name: 'office', effect: 'deny', actions: ['*'], resources: ['*'] },
    tenants: { id: 'acme', name: 'Acme' },
  } as const;

  const rows: readonly (readonly [keyof typeof LISTS, string, unknown])[] = [
    ['users', 'email', 'no address'],
    ['users', 'email', 'ä@acme.test'],
    ['users', 'email', `${'a'.repeat(251)}@b.c`],
    ['users', 'name', ' '],
    ['users', 'name', 'x'.repeat(201)],
    ['users', 'department', 'x'.repeat(201)],
    ['users', 'department', 5],
    ['users', 'roles', ['no-such-role-form!']],
    ['users', 'roles', Array(101).fill('developer')],
    ['roles', 'name', 'Editor'],
    ['roles', 'name', 'admin'],
    ['roles', 'description', 'x'.repeat(2001)],
    ['roles', 'permissions', ['chat']],
    ['roles', 'permissions', ['chat:re*']],
    ['roles', 'permissions', 'chat:*'],
    ['roles', 'permissions', Array(1001).fill('*')],
    ['roles', 'resource_constraints', { model: ['a'] }],
    ['roles', 'resource_constraints', { models: [''] }],
    ['roles', 'resource_constraints', []],
    ['policies', 'name', '9lives'],
    ['policies', 'effect', 'Deny'],
    ['policies', 'actions', []],
    ['policies', 'actions', ['*:*:*']],
    ['policies', 'resources', ['models']],
    ['policies', 'resources', ['buckets/x']],
    ['policies', 'conditions', { ip_address: { in: ['10.0.0.1/8'] } }],
    ['policies', 'conditions', { ip_address: { in: [] } }],
    ['policies', 'conditions', { ip_address: {} }],
    ['policies', 'conditions', { time: { between: ['22:00', '22:00'] } }],
    ['policies', 'conditions', { time: { between: ['24:00', '06:00'] } }],
    ['policies', 'conditions', { day_of_week: { in: ['Monday'] } }],
    ['policies', 'conditions', { weekly_hours: { in: [] } }],
    ['policies', 'conditions', { weekly_hours: { not_in: ['Mon-Fri'] } }],
    ['policies', 'conditions', { timezone: 'Mars/Olympus' }],
    ['policies', 'conditions', { moon: { in: ['full'] } }],
    ['policies', 'applies_to', 'nobody'],
    ['policies', 'attached_roles', ['Bad Name']],
    ['policies', 'enabled', 'yes'],
    ['tenants', 'id', 'Acme'],
    ['tenants', 'id', '-acme'],
    ['tenants', 'name', ''],
    ['tenants', 'settings', { timezone: 'Mars/Olympus' }],
    ['tenants', 'settings', { max_tokens_per_request: -1 }],
    ['tenants', 'settings', { max_tokens_per_request: 1.5 }],
    ['tenants', 'settings', { default_model: ' ' }],
    ['tenants', 'settings', { allow_keys_without_expiry: 'yes' }],
    ['tenants', 'settings', { require_stream_usage: 'yes' }],
    ['tenants', 'settings', { colour: 'red' }],
    ['tenants', 'quotas', { max_users: Number.MAX_SAFE_INTEGER + 1 }],
    ['tenants', 'quotas', { max_users: '5' }],
    ['users', 'nickname', 'A'],
    ['roles', 'builtin', true],
    ['policies', 'tenant_id', 'acme'],
    ['tenants', 'owner', 'A'],
  ];

  function fileWith(list: keyof typeof LISTS, type: object): string {
    const tenants = list === 'tenants' ? [type] : [{ ...GOOD.tenants, [LISTS[list]]: [type] }];
    return stringify({ version: 1, tenants });
  }

  test.each(Object.keys(GOOD).map((list) => [list]))('%s as they should be are taken by both', async (list) => {
    const kind = list as keyof typeof LISTS;
    expect(problems(fileWith(kind, GOOD[kind]))).toEqual([]);
    expect((await h.api('POST', `/v1/iam/${kind}`, { as: h.root.token, body: GOOD[kind] })).status).toBe(201);
  });

  /** Keywords of a schema that only describe it. */
  const TOLD: ReadonlySet<string> = new Set(['asksAlso', 'examples']);
  const isTold = (key: string, value: unknown): boolean =>
    TOLD.has(key) || (key === 'description' && typeof value === 'string');

  /** In a file, null removes what is there, also where the API has nothing to remove yet. */
  const withoutNull = (key: string, value: unknown): unknown =>
    key === 'type' && Array.isArray(value) ? value.filter((one) => one !== 'null').join() : value;

  /** The members of a type and what the validator asks of them. */
  function membersOf(schema: unknown): Readonly<Record<string, unknown>> {
    const plain = JSON.stringify(schema, (key, value: unknown) =>
      isTold(key, value) ? undefined : withoutNull(key, value),
    );
    return JSON.parse(plain).properties;
  }

  test.each([
    ['users', userDocument, ['password', 'tenant_id', 'identities'], ['status']],
    ['roles', roleDocument, [], []],
    ['policies', policyDocument, ['global'], []],
    ['tenants', tenantDocument, [], ['status', 'roles', 'policies', 'issuers', 'webhooks', 'budgets', 'users']],
    // A file has no client secret.
    ['issuers', issuerDocument, ['sso'], ['sso']],
  ] as const)('%s have the same members with the same schemas', (list, schema, missing, besides) => {
    const route = h.routes.find(({ method, path }) => method === 'POST' && path === `/v1/iam/${list}`);
    const expected = Object.entries(membersOf(route?.bodySchema)).filter(
      ([name]) => !missing.some((one) => one === name),
    );
    const found = Object.entries(membersOf(schema)).filter(([name]) => !besides.some((one) => one === name));
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(expected));
    expect(found.length).toBeGreaterThan(1);
  });

  test.each(rows)('%s: %s %j is refused by both', async (list, member, value) => {
    const type = { ...GOOD[list], [member]: value };
    const answer = await h.api('POST', `/v1/iam/${list}`, { as: h.root.token, body: type });
    // A built-in role's name is taken.
    expect([409, 422]).toContain(answer.status);
    const told = problems(fileWith(list, type));
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(new RegExp(`^f\\.yaml:\\d+:\\d+: tenants\\[0\\](\\.${list}\\[0\\])?\\.${member}`));
  });
});
