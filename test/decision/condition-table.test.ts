import { glob, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONDITION_KEYS, CONDITIONS, type Condition } from '../../src/decision/condition-table.ts';
import { compileConditions } from '../../src/decision/conditions.ts';
import { parseConditions } from '../../src/decision/validate.ts';
import { type ChangedCopy, copyProject } from '../support/changed-copy.ts';

const ROOT = new URL('../..', import.meta.url).pathname;

describe.each(Object.entries<Condition>(CONDITIONS))('the condition %s', (key, { operators, schema, bytes }) => {
  const { items } = schema;
  const [first] = [items.enum, items['examples'], schema['examples']].filter(Array.isArray);
  const [example]: unknown[] = first ?? [];
  const operand = Array.isArray(example) ? example : [example];

  test.each(operators)('is read, compiled and rejected by the same rules with the operator %s', (operator) => {
    const conditions = { [key]: { [operator]: operand } };
    expect(parseConditions(conditions)).toEqual({ kind: 'ok', value: conditions });
    expect(compileConditions(conditions).checks).toMatchObject([{ kind: 'readable', key, operator, operand }]);
    for (const wrong of [[], ['~'], [operand]]) {
      const refused = { [key]: { [operator]: wrong } };
      expect(parseConditions(refused).kind).toBe('errors');
      expect(compileConditions(refused).checks).toEqual([{ kind: 'unreadable', key }]);
    }
  });

  test('takes memory for each entry', () => {
    expect(bytes([...operand, ...operand])).toBeGreaterThan(bytes(operand));
  });
});

test('no other file of src names a condition', async () => {
  // A log message and an example of the documentation.
  const exempt = new Set(['decision/condition-table.ts', 'http/forwarding.ts', 'iam/policies/entity.ts']);
  const distinct = CONDITION_KEYS.filter((key) => key !== 'time');
  const named: string[] = [];
  for await (const path of glob('**/*.ts', { cwd: join(ROOT, 'src') })) {
    const code = (await readFile(join(ROOT, 'src', path), 'utf8')).replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '');
    if (!exempt.has(path) && distinct.some((key) => code.includes(key))) named.push(path);
  }
  expect(named).toEqual([]);
});

/** A condition that the server does not have: whether the client's address is of IPv4 or IPv6. */
const ENTRY = `
  address_family: condition({
    operators: ['in', 'not_in'],
    usesClock: false,
    input: addressOf,
    inputText: ({ family }) => \`ipv\${family}\`,
    compile: (operand) => (operand.length === 0 ? undefined : ({ family }) => operand.includes(\`ipv\${family}\`)),
    borders: () => networkBorders('::/0'),
    accepts: (entry) => entry === 'ipv4' || entry === 'ipv6',
    expectation: 'must be ipv4 or ipv6',
    fault: notEmpty,
    maxEntries: 2,
    description: 'Families of the address.',
    schema: { type: 'array', items: { type: 'string', enum: ['ipv4', 'ipv6'] }, minItems: 1, maxItems: 2 },
    bytes: (operand) => ENTRY_BYTES * operand.length,
  }),
} as const satisfies`;

/** Runs in the copy and prints what its modules make of the condition. */
const PROBE = `
import { compileConditions, conditionInputs, conditionsHold } from './src/decision/conditions.ts';
import { parseConditions } from './src/decision/validate.ts';
import { BuiltinRoles } from './src/decision/builtin-roles.ts';
import { compilePolicies, compileTenant } from './src/decision/compile.ts';
import { explainDecision } from './src/decision/explain.ts';
import { buildRouteTable, matchRoute } from './src/decision/routes.ts';
import { describeApi } from './src/http/openapi/document.ts';
import { describedEndpoints } from './src/iam/api-routes.ts';

const conditions = { address_family: { in: ['ipv6'] } };
const holds = (address) => conditionsHold(compileConditions(conditions), 'deny', conditionInputs(0, address, undefined));
const { table } = buildRouteTable([]);
const policy = { name: 'no-v6', effect: 'deny', actions: ['*'], resources: ['*'], conditions, appliesTo: 'everyone', attachedRoles: [], enabled: true };
const own = compileTenant({ id: 'acme', status: 'active', settings: {}, quotas: {}, roles: [], policies: [policy] });
const snapshot = { own, effective: own, global: compilePolicies([]), builtinRoles: new BuiltinRoles(table.routes) };
const input = { method: 'GET', path: '/v1/models', clientAddress: '2001:db8::1' };
const principal = { kind: 'user', id: 'usr_1', tenantId: 'acme', roles: ['developer'], platformAdmin: false, sessionId: undefined };
const { code, policies } = explainDecision(matchRoute(table, input), input, { kind: 'proved', principal }, snapshot, 0);
const api = describeApi(describedEndpoints());
const newPolicy = api.paths['/v1/iam/policies'].post.requestBody.content['application/json'].schema;
const { conditions: requested } = (api.components.schemas[newPolicy.$ref?.split('/').at(-1)] ?? newPolicy).properties;
console.log(JSON.stringify({
  decides: [holds('2001:db8::1'), holds('10.0.0.1')],
  parses: parseConditions(conditions),
  rejects: parseConditions({ address_family: { in: ['ipv5'] } }).errors,
  explained: { code, conditions: policies[0].conditions },
  requested: requested.properties.address_family,
  shown: api.components.schemas.PolicyConditions.properties.address_family,
}));
`;

describe('a further condition, added to a copy of the sources', () => {
  const TABLE = 'src/decision/condition-table.ts';
  let copy: ChangedCopy;

  beforeAll(async () => {
    copy = await copyProject('tsconfig.json');
    await copy.edit(TABLE, ['\n} as const satisfies', ENTRY]);
    await writeFile(copy.file('probe.ts'), PROBE);
  }, 60_000);

  afterAll(() => copy.remove());

  test('is decided, parsed, described and explained after a change of one file', () => {
    expect(copy.changed()).toEqual([TABLE]);
    expect(JSON.parse(copy.run(['probe.ts']))).toEqual({
      decides: [true, false],
      parses: { kind: 'ok', value: { address_family: { in: ['ipv6'] } } },
      rejects: [{ path: '/conditions/address_family/in/0', message: 'must be ipv4 or ipv6' }],
      explained: {
        code: 'denied_by_policy',
        conditions: [
          {
            kind: 'address_family',
            operator: 'in',
            operand: ['ipv6'],
            value: 'ipv6',
            timezone: null,
            matched: true,
            missing: false,
          },
        ],
      },
      requested: expect.objectContaining({
        description: 'Families of the address.',
        properties: expect.objectContaining({
          in: expect.objectContaining({ items: { type: 'string', enum: ['ipv4', 'ipv6'] }, maxItems: 2 }),
        }),
      }),
      shown: expect.objectContaining({
        description: 'Families of the address.',
        properties: expect.objectContaining({
          not_in: expect.objectContaining({ items: expect.objectContaining({ enum: ['ipv4', 'ipv6'] }) }),
        }),
      }),
    });
  }, 120_000);

  test('does not compile without one of its parts, and the compiler names the part', async () => {
    const whole = await readFile(copy.file(TABLE), 'utf8');
    const tried = copy.file(TABLE.replace('.ts', '-tried.ts'));
    const check = (text: string) =>
      writeFile(tried, text).then(() => copy.compile(['--ignoreConfig', ...FLAGS, tried]));
    expect(await check(whole)).toBe('');
    const added = whole.slice(whole.indexOf('address_family:'));
    for (const part of ['description', 'schema', 'accepts', 'inputText', 'borders', 'bytes']) {
      const line = new RegExp(`\\n {4}${part}: .*`).exec(added)?.[0] ?? '';
      expect(await check(whole.replace(added, added.replace(line, '')))).toContain(`'${part}'`);
    }
  }, 180_000);
});

const FLAGS = [
  '--strict',
  '--target',
  'esnext',
  '--module',
  'nodenext',
  '--allowImportingTsExtensions',
  '--skipLibCheck',
];
