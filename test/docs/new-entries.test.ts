/**
 * A new endpoint, a new error code and a new metric, each added to a copy of the project as the table "Where does a … go?"
 * of docs/ARCHITECTURE.md says. The reference and the client's types then have them, and the copy serves them.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ChangedCopy, copyProject } from '../support/changed-copy.ts';
import { send } from '../support/http.ts';

const USE_CASE = `
import { Refusal } from '../../domain/errors.ts';
import type { AdminParts, Caller } from '../caller/caller.ts';
import type { CatalogParts } from '../permissions/catalog.ts';
import { getRole } from './read.ts';

/** @throws Refusal \`not_found\`, \`role_is_builtin\` */
export async function measureRole(parts: AdminParts & CatalogParts, caller: Caller, name: string) {
  const { builtin, permissions } = await getRole(parts, caller, name);
  if (builtin) throw new Refusal('role_is_builtin', 'A role of the server has no size of its own.');
  return { permissions: permissions.length };
}
`;

const ENDPOINT = `    callerEndpoint({
      method: 'GET',
      path: \`\${ROLE}/size\`,
      target: { type: 'role', param: 'name' },
      operationId: 'measureRole',
      summary: 'Count the permissions of a role.',
      permission: 'admin:roles',
      answers: shows('The size of the role.', Type.Object({ permissions: Type.Integer() }, closed)),
      refusals: ['not_found', 'role_is_builtin'],
      run: ({ caller, param }) => measureRole(parts, caller, param('name')),
    }),
`;

const ERROR = `
  role_is_builtin: {
    status: 409,
    title: 'Built-in role',
    type: 'invalid_request_error',
    explanation: 'The request applies to custom roles only.',
    advice: 'Name a custom role.',
  },`;

const METRIC = `
  postern_http_conflicts_total: counter([], 'Requests to the HTTP API that were answered 409.'),`;

let copy: ChangedCopy;
let pages: ReadonlyMap<string, string>;
let types: string;

/** The files that each change touches. */
const touched: Record<'error' | 'endpoint' | 'metric', readonly string[]> = { error: [], endpoint: [], metric: [] };

async function make(change: keyof typeof touched, edits: () => Promise<void>): Promise<void> {
  const before = copy.changed();
  await edits();
  touched[change] = copy.changed().slice(before.length);
}

beforeAll(async () => {
  copy = await copyProject('scripts', 'docs', 'test/http/harness.ts', 'test/support');
  await make('error', async () => {
    await copy.edit('src/domain/errors.ts', ['export const ERRORS = {', `export const ERRORS = {${ERROR}`]);
    await copy.edit('scripts/lib/reference/error-requests.ts', [
      'WITHOUT_REQUEST: Partial<Readonly<Record<ErrorCode, string>>> = {',
      "WITHOUT_REQUEST: Partial<Readonly<Record<ErrorCode, string>>> = {\n  role_is_builtin: 'Measure a built-in role.',",
    ]);
  });
  await make('endpoint', async () => {
    await copy.add('src/iam/roles/measure.ts', USE_CASE);
    await copy.edit(
      'src/iam/roles/routes.ts',
      ['import { getRole,', "import { measureRole } from './measure.ts';\nimport { getRole,"],
      ['    ...attachmentEndpoints(parts),\n', `${ENDPOINT}    ...attachmentEndpoints(parts),\n`],
    );
  });
  await make('metric', async () => {
    await copy.edit(
      'src/telemetry/http-metrics.ts',
      ['HTTP_METRICS = {', `HTTP_METRICS = {${METRIC}`],
      [
        '  return ({ method, route,',
        "  let conflicts = 0;\n  metrics.show('postern_http_conflicts_total', () => conflicts);\n  return ({ method, route,",
      ],
      ['    durations.observe(tookMs);', '    if (status === 409) conflicts++;\n    durations.observe(tookMs);'],
    );
  });
  const reference: typeof import('../../scripts/lib/reference/pages.ts') = await import(
    copy.file('scripts/lib/reference/pages.ts')
  );
  pages = reference.referencePages();
  const client: typeof import('../../scripts/client-types.ts') = await import(copy.file('scripts/client-types.ts'));
  types = client.clientTypes();
});

afterAll(() => copy?.remove());

const rowsOf = (page: string, text: string) =>
  (pages.get(page) ?? '').split('\n').filter((line) => line.includes(text));

describe('a new endpoint', () => {
  test('takes two files: the use case and an entry in the routes of its entity', () => {
    expect(touched.endpoint).toEqual(['src/iam/roles/measure.ts', 'src/iam/roles/routes.ts']);
  });

  test('is in the reference and in the types of the client', () => {
    expect(rowsOf('docs/api.md', '/size')).toEqual([
      '| `GET /v1/iam/roles/{name}/size` | `admin:roles` | Count the permissions of a role. |',
    ]);
    expect(types).toContain("'/v1/iam/roles/{name}/size'");
  });
});

describe('a new error code', () => {
  test('takes one file of src, and its request for the documentation', () => {
    expect(touched.error).toEqual(['src/domain/errors.ts', 'scripts/lib/reference/error-requests.ts']);
  });

  test('is in the reference and in the types of the client', () => {
    expect(pages.get('docs/errors.md')).toContain('## role_is_builtin\n\n409, `invalid_request_error`. The request ap');
    expect(rowsOf('docs/api.md', 'role_is_builtin')).toEqual([
      '| 409 | `role_is_builtin` | The request applies to custom roles only. |',
    ]);
    expect(types).toContain("'role_is_builtin'");
  });
});

describe('a new metric', () => {
  test('takes one file, which describes it and counts', () => {
    expect(touched.metric).toEqual(['src/telemetry/http-metrics.ts']);
  });

  test('is in the reference', () => {
    expect(rowsOf('docs/metrics.md', 'conflicts')).toEqual([
      '| `postern_http_conflicts_total` | counter | Requests to the HTTP API that were answered 409. |',
    ]);
  });
});

test('the copy answers at the new endpoint with the new code and its status, and shows the new metric', async () => {
  const { startHarness }: typeof import('../http/harness.ts') = await import(copy.file('test/http/harness.ts'));
  const { startHealthServer }: typeof import('../../src/http/health.ts') = await import(
    copy.file('src/http/health.ts')
  );
  await using stack = new AsyncDisposableStack();
  const { api, metrics, root, close } = await startHarness();
  stack.defer(close);
  const as = root.token;
  await api('POST', '/v1/iam/roles', { as, body: { name: 'writer', permissions: ['chat:read', 'chat:write'] } });
  const measured = await api('GET', '/v1/iam/roles/writer/size', { as });
  expect([measured.status, measured.json]).toEqual([200, { permissions: 2 }]);
  const refused = await api('GET', '/v1/iam/roles/developer/size', { as });
  expect([refused.status, refused.json]).toMatchObject([409, { code: 'role_is_builtin', title: 'Built-in role' }]);
  const health = await startHealthServer({
    listen: { host: '127.0.0.1', port: 0 },
    ready: () => [],
    warnings: () => [],
    metrics,
  });
  stack.defer(health.close);
  const { body } = await send(`http://127.0.0.1:${health.address.port}`, { path: '/metrics' });
  expect(body).toContain(`# TYPE postern_http_conflicts_total counter\npostern_http_conflicts_total 1\n`);
});
