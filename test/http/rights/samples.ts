/**
 * A request that works, for each endpoint of the API's description that a caller can send with another method than GET.
 */

import { describeApi } from '../../../src/http/openapi/document.ts';
import { describedEndpoints } from '../../../src/iam/api-routes.ts';
import { importedKey, usageEvent } from '../isolation-probes.ts';
import { type Case, PASSWORD } from './cases.ts';

export interface Sample {
  /** Parameters of the path. */
  readonly params?: Readonly<Record<string, string>>;
  readonly body?: object;
}

type SampleOf = (of: Case) => Sample;

const onUser: SampleOf = ({ target }) => ({ params: { id: target.user } });
const onKey: SampleOf = ({ target }) => ({ params: { id: target.key } });
const onIssuer: SampleOf = ({ target }) => ({ params: { id: target.issuer } });
const onWebhook: SampleOf = ({ target }) => ({ params: { id: target.webhook } });
const onBudget: SampleOf = ({ target }) => ({ params: { id: target.budget } });
const onOther: SampleOf = ({ other }) => ({ params: { id: other } });
const onAttachment: SampleOf = ({ target }) => ({ params: { name: target.role, policy: target.policy } });
const withBody =
  (sample: SampleOf, body: object): SampleOf =>
  (of) => ({ ...sample(of), body });
const question: SampleOf = ({ target }) => ({ body: { subject: target.user, method: 'GET', path: '/v1/models' } });

const BUDGET = {
  name: 'new',
  unit: 'tokens',
  limit: 5,
  period: 'day',
  applies_to: { metadata: { new: 'yes' } },
};

const PRICES = { prices: [{ models: 'new-*', input: '1', output: '2', per: 1_000_000 }] };

const SAMPLES: Readonly<Record<string, SampleOf>> = {
  changePassword: () => ({ body: { old_password: PASSWORD, new_password: 'a field of wet trombones' } }),
  endSessions: () => ({}),
  endSession: ({ target }) => ({ params: { id: target.session } }),
  createUser: ({ number }) => ({ body: { email: `new-${number}@example.test`, name: 'New' } }),
  updateUser: withBody(onUser, { name: 'Changed' }),
  patchUser: withBody(onUser, { name: 'Changed' }),
  deleteUser: onUser,
  deactivateUser: onUser,
  changeUsers: ({ target }) => ({ body: { action: 'deactivate', ids: [target.user] } }),
  activateUser: onUser,
  unlockUser: onUser,
  resetUserPassword: onUser,
  endUserSessions: onUser,
  endUserSession: ({ target }) => ({ params: { id: target.user, session: target.userSession } }),
  createRole: () => ({ body: { name: 'new', permissions: ['chat:read'] } }),
  updateRole: ({ target }) => ({ params: { name: target.role }, body: { description: 'changed' } }),
  patchRole: ({ target }) => ({ params: { name: target.role }, body: { description: 'changed' } }),
  deleteRole: ({ target }) => ({ params: { name: target.role } }),
  attachPolicy: onAttachment,
  detachPolicy: onAttachment,
  createPolicy: ({ number }) => ({
    body: { name: `new-${number}`, effect: 'deny', actions: ['rag:*'], resources: ['*'], applies_to: 'roles' },
  }),
  updatePolicy: ({ target }) => ({ params: { name: target.policy }, body: { description: 'changed' } }),
  patchPolicy: ({ target }) => ({ params: { name: target.policy }, body: { description: 'changed' } }),
  deletePolicy: ({ target }) => ({ params: { name: target.policy } }),
  createTenant: ({ fresh }) => ({ body: { id: fresh, name: 'Fresh' } }),
  updateTenant: withBody(onOther, { name: 'Changed' }),
  patchTenant: withBody(onOther, { name: 'Changed' }),
  deleteTenant: onOther,
  suspendTenant: onOther,
  activateTenant: onOther,
  correctUsage: withBody(onOther, { collections: 3 }),
  patchUsage: withBody(onOther, { collections: 3 }),
  createApiKey: () => ({ body: { description: 'new', scopes: ['chat:read'], expires_in_days: 1 } }),
  updateApiKey: withBody(onKey, { description: 'changed' }),
  patchApiKey: withBody(onKey, { description: 'changed' }),
  revokeApiKey: onKey,
  rotateApiKey: withBody(onKey, { grace_seconds: 60 }),
  disableApiKey: onKey,
  enableApiKey: onKey,
  importApiKeys: () => ({ body: { keys: [importedKey()] } }),
  revokeApiKeys: ({ target }) => ({ body: { ids: [target.key] } }),
  createIssuer: ({ number }) => ({
    body: { name: 'new', issuer: `https://127.0.0.1:1/new-${number}`, audiences: ['postern'] },
  }),
  updateIssuer: withBody(onIssuer, { leeway_seconds: 9 }),
  patchIssuer: withBody(onIssuer, { leeway_seconds: 9 }),
  deleteIssuer: onIssuer,
  revokeTokensBefore: onIssuer,
  refreshIssuerKeys: onIssuer,
  testIssuer: withBody(onIssuer, { token: 'hello' }),
  createWebhook: () => ({ body: { url: 'https://hooks.example/new', events: ['key.*'] } }),
  updateWebhook: withBody(onWebhook, { description: 'changed' }),
  patchWebhook: withBody(onWebhook, { description: 'changed' }),
  deleteWebhook: onWebhook,
  rotateWebhook: onWebhook,
  testWebhook: onWebhook,
  replayWebhookDelivery: ({ target }) => ({ params: { id: target.webhook, delivery: target.delivery } }),
  createBudget: () => ({ body: BUDGET }),
  updateBudget: withBody(onBudget, { limit: 7 }),
  patchBudget: withBody(onBudget, { limit: 7 }),
  deleteBudget: onBudget,
  resetBudget: withBody(onBudget, { reason: 'a test' }),
  previewBudget: () => ({ body: BUDGET }),
  setPrices: () => ({ body: PRICES }),
  patchPrices: () => ({ body: PRICES }),
  recordUsage: () => ({ body: { events: [usageEvent()] } }),
  explain: question,
  simulate: question,
  difference: () => ({ body: { policies: [] } }),
  whoCan: () => ({ body: { permission: 'chat:read' } }),
  testDirectory: () => ({ body: { username: 'alice' } }),
};

export interface Operation {
  readonly id: string;
  readonly method: string;
  /** With `{name}` for its parameters. */
  readonly path: string;
  /** The permission in the description; empty if a credential is enough. */
  readonly needs: string;
  readonly onlyReads: boolean;
}

/** Operations that write nothing, though their method is POST. */
const ONLY_READ: ReadonlySet<string> = new Set([
  'explain',
  'simulate',
  'difference',
  'whoCan',
  'testIssuer',
  'previewBudget',
]);

/** Every operation with another method than GET that a credential has to be sent with. */
export const OPERATIONS: readonly Operation[] = operationsOf(describeApi(describedEndpoints()));

function operationsOf(document: object): readonly Operation[] {
  return entries(member(document, 'paths')).flatMap(([path, item]) =>
    entries(item)
      .filter(
        ([method, operation]) =>
          method !== 'get' && JSON.stringify(member(operation, 'security')) === '[{"bearer":[]},{"apiKey":[]}]',
      )
      .map(([method, operation]) => {
        const id = String(member(operation, 'operationId'));
        const description = String(member(operation, 'description') ?? '');
        const needs = description.endsWith('no permission.') ? '' : description;
        return { id, method: method.toUpperCase(), path, needs, onlyReads: ONLY_READ.has(id) };
      }),
  );
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}

function entries(value: unknown): readonly [string, unknown][] {
  return typeof value === 'object' && value !== null ? Object.entries(value) : [];
}

export interface SampleRequest {
  readonly method: string;
  readonly path: string;
  readonly body: string;
}

/** Throws for an operation that has no sample: then add one. An endpoint without a body is sent an empty object. */
export function sampleRequest(operation: Operation, of: Case): SampleRequest {
  const sample = SAMPLES[operation.id]?.(of);
  if (sample === undefined)
    throw new Error(`${operation.id} has no sample: say in SAMPLES what a request to it may be`);
  const path = operation.path.replace(/\{(\w+)\}/g, (_braces, name: string) => {
    const value = sample.params?.[name];
    if (value === undefined) throw new Error(`the sample of ${operation.id} does not say ${name}`);
    return encodeURIComponent(value);
  });
  return { method: operation.method, path, body: JSON.stringify(sample.body ?? {}) };
}
