/**
 * What the demo needs to show something: a tenant, a developer in it, a policy, and a key; another tenant with tight limits, and a key.
 * What is there already stays as it is; only the keys are made new at every start, because nobody can show them a second time.
 */

import type { AdminParts } from '../admin/caller.ts';
import { type Actor, type AuditEntry, changeAsSystem } from '../admin/change.ts';
import { Refusal } from '../domain/errors.ts';
import { makeId, parsePolicyName, parseRoleName, parseTenantId, type TenantId } from '../domain/ids.ts';
import { makeApiKey } from '../identity/api-keys.ts';
import { brokenConstraint } from '../store/faults.ts';
import { insertKey, listKeys, type NewKey, rotateKey, updateKey } from '../store/queries/api-keys.ts';
import { findPolicy, insertPolicy, reservePolicyName } from '../store/queries/policies.ts';
import { findTenant, insertTenant } from '../store/queries/tenants.ts';
import { listUsers } from '../store/queries/user-pages.ts';
import { insertUser, type StoredUser, setManualRoles } from '../store/queries/users.ts';
import type { Transaction } from '../store/transaction.ts';

export interface DemoAccess {
  /** The whole key, to be shown once. */
  readonly key: string;
  /** The e-mail address of its owner. */
  readonly owner: string;
  /** The whole key of the tenant with tight limits. */
  readonly trialKey: string;
}

type DemoTenant = Parameters<typeof insertTenant>[1];

const TENANT = known(parseTenantId('demo'));
const DEMO: DemoTenant = {
  id: TENANT,
  name: 'Demo',
  settings: { default_model: 'llama-3', max_tokens_per_request: 4096 },
  quotas: {},
};
/** Small enough to be met by a loop of a dozen requests, and by a few hundred in a month. */
export const TRIAL_LIMITS = { requestsPerMinute: 5, monthlyTokens: 5000 };
const TRIAL: DemoTenant = {
  id: known(parseTenantId('trial')),
  name: 'Trial',
  settings: { default_model: 'llama-3', max_tokens_per_request: 256, rate_limit_rpm: TRIAL_LIMITS.requestsPerMinute },
  quotas: { monthly_tokens: TRIAL_LIMITS.monthlyTokens },
};
const POLICY = known(parsePolicyName('no-secret-models'));
const DEVELOPER = known(parseRoleName('developer'));
const EMAIL = 'developer@demo.localhost';
const KEY_DESCRIPTION = 'Demo key, renewed at every start of the demo';
/** Among them one that its owner's role does not cover: a key never can more than its owner. */
const KEY_SCOPES = ['chat:*', 'embeddings:*', 'rag:*', 'agents:*', 'models:read'];
const KEY_LIFE_MS = 30 * 86_400_000;
/** Nobody makes more keys for the demo than this looks through. */
const KEYS_LOOKED_THROUGH = 200;

const ACTOR: Actor = { type: 'system', id: undefined, tenant: TENANT, address: undefined, requestId: undefined };

/** Safe to run at every start. Rejects with a Refusal whose message says what stands in the way, or a Fault. */
export async function seedDemo(parts: AdminParts): Promise<DemoAccess> {
  await ensureTenant(parts, DEMO);
  await ensurePolicy(parts);
  const owner = await ensureDeveloper(parts);
  await ensureTenant(parts, TRIAL);
  return {
    key: await renewKey(parts, TENANT, owner, KEY_SCOPES),
    owner: EMAIL,
    trialKey: await renewKey(parts, TRIAL.id, undefined, ['chat:*', 'embeddings:*']),
  };
}

function write<T>(parts: AdminParts, entry: AuditEntry, work: (trx: Transaction) => Promise<T>): Promise<T> {
  return changeAsSystem(parts, ACTOR, entry, async (trx) => work(trx));
}

async function ensureTenant(parts: AdminParts, tenant: DemoTenant): Promise<void> {
  const { id } = tenant;
  if ((await findTenant(parts.db.knex, id)) !== undefined) return;
  try {
    await write(parts, { action: 'tenant.create', target: { type: 'tenant', id } }, (trx) => insertTenant(trx, tenant));
  } catch (error) {
    if (brokenConstraint(error) !== 'tenants_pkey') throw error;
    throw new Refusal(
      'already_exists',
      `The tenant ${id} was deleted, and a tenant id is never used again: start the demo on another data-dir.`,
    );
  }
}

async function ensurePolicy(parts: AdminParts): Promise<void> {
  if ((await findPolicy(parts.db.knex, TENANT, POLICY)) !== undefined) return;
  await write(parts, { action: 'policy.create', target: { type: 'policy', id: POLICY } }, async (trx) => {
    await reservePolicyName(trx, POLICY);
    await insertPolicy(trx, {
      tenantId: TENANT,
      name: POLICY,
      description: 'Nobody uses a model with "secret" in its name.',
      effect: 'deny',
      actions: ['*'],
      resources: ['models/*secret*'],
      conditions: {},
      appliesTo: 'everyone',
      attachedRoles: [],
      enabled: true,
    });
  });
}

async function ensureDeveloper(parts: AdminParts): Promise<StoredUser['id']> {
  const [present] = await listUsers(
    parts.db.knex,
    { kind: 'one', tenant: TENANT },
    { email: EMAIL },
    { after: undefined, take: 1 },
  );
  if (present !== undefined) return present.id;
  const id = makeId('usr', parts.now(), parts.random(10));
  await write(parts, { action: 'user.create', target: { type: 'user', id } }, async (trx) => {
    await insertUser(trx, { id, tenantId: TENANT, email: EMAIL, name: 'Dana Developer', department: null, passwordHash: null });
    await setManualRoles(trx, id, [DEVELOPER]);
  });
  return id;
}

/** The demo's one key of a tenant keeps its id and gets a new secret; the one before stops at once. @param owner undefined: the tenant */
async function renewKey(
  parts: AdminParts,
  tenant: TenantId,
  owner: StoredUser['id'] | undefined,
  scopes: readonly string[],
): Promise<string> {
  const now = new Date(parts.now());
  const secret = makeApiKey(parts.random);
  const page = { after: undefined, take: KEYS_LOOKED_THROUGH };
  const filter = { status: 'active', ...(owner === undefined ? {} : { userId: owner }) } as const;
  const { rows: keys } = await listKeys(parts.db.knex, scope(tenant), filter, page, now);
  const present = keys.find(({ description }) => description === KEY_DESCRIPTION);
  const id = present?.id ?? makeId('key', parts.now(), parts.random(10));
  const key: NewKey = {
    id,
    tenantId: tenant,
    userId: owner,
    name: present?.name ?? null,
    description: KEY_DESCRIPTION,
    metadata: present?.metadata ?? {},
    imported: false,
    scopes,
    constraints: {},
    rateLimitRpm: null,
    expiresAt: new Date(parts.now() + KEY_LIFE_MS),
  };
  const action = present === undefined ? 'api_key.create' : 'api_key.rotate';
  await write(parts, { action, target: { type: 'api_key', id } }, async (trx) => {
    if (present === undefined) {
      await insertKey(trx, key, secret, 'system');
      return;
    }
    await updateKey(trx, key);
    await rotateKey(trx, tenant, id, secret, null);
  });
  return secret.text;
}

function scope(tenant: TenantId) {
  return { kind: 'one', tenant } as const;
}

/** A name written in this file; a wrong one shows at the first start. */
function known<T>(parsed: T | undefined): T {
  if (parsed === undefined) throw new Error('a name of the demo is malformed');
  return parsed;
}
