/**
 * The API keys of the demonstration. The lasting ones are made once: nobody can show them, and their traffic is seeded.
 * Those that the demo prints get a new secret at every start, because nobody can show a key a second time.
 */

import { makeId, type TenantId } from '../domain/ids.ts';
import type { KeyRow } from '../iam/api-keys/entity.ts';
import { listKeys } from '../iam/api-keys/list-queries.ts';
import { insertKey, type KeySecret, markRevoked, replaceColumns, replaceSecret } from '../iam/api-keys/queries.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import type { Actor } from '../iam/change/audit-row.ts';
import { type AuditEntry, changeAsSystem } from '../iam/change/change.ts';
import { listUsers } from '../iam/users/page-queries.ts';
import type { StoredUser } from '../iam/users/queries.ts';
import { makeApiKey } from '../identity/api-keys.ts';
import { databaseTime } from '../store/time.ts';
import type { Transaction } from '../store/transaction.ts';
import { ACME, DEVELOPER, TRIAL } from './demo-setup.ts';

const DAY_MS = 86_400_000;
/** Nobody makes more keys for the demo than this looks through. */
const KEYS_LOOKED_THROUGH = 200;

interface DemoKey {
  readonly tenant: TenantId;
  readonly name: string;
  readonly description: string;
  /** E-mail address; undefined: the key belongs to the tenant. */
  readonly owner?: string;
  readonly scopes: readonly string[];
  readonly constraints?: KeyRow['resource_constraints'];
  readonly rateLimitRpm?: number;
  /** Default: 300. */
  readonly days?: number;
  readonly isRevoked?: true;
}

/** By name, in the order in which they are made. */
const KEYS = {
  'checkout-assistant': {
    tenant: ACME,
    description: 'Answers customers in the shop',
    scopes: ['chat:write'],
    rateLimitRpm: 120,
    days: 6,
  },
  'nightly-embeddings': {
    tenant: ACME,
    description: 'Embeds what changed in the handbook, every night',
    owner: 'mei-lin.zhou@acme.example',
    scopes: ['embeddings:write', 'rag:write'],
    days: 9,
  },
  'pricing-notebook': { tenant: ACME, description: 'Notebook of the pricing team', scopes: ['chat:write'], days: 12 },
  'risk-reports': {
    tenant: ACME,
    description: 'Reads risk reports',
    owner: 'jonas.brandt@acme.example',
    scopes: ['chat:*', 'rag:query', 'rag:read'],
    constraints: { collections: ['risk-*'] },
  },
  'support-desk': {
    tenant: ACME,
    description: 'Drafts answers of the support desk',
    owner: 'aicha.benali@acme.example',
    scopes: ['chat:write', 'rag:query'],
  },
  'code-assistant': {
    tenant: ACME,
    description: 'Completion in editors',
    owner: DEVELOPER,
    scopes: ['chat:*', 'agents:*'],
  },
  'old-chatbot': {
    tenant: ACME,
    description: 'Replaced by checkout-assistant',
    scopes: ['chat:write'],
    isRevoked: true,
  },
  'trial-bot': { tenant: TRIAL, description: 'First steps', scopes: ['chat:*'], days: 20 },
} as const satisfies Readonly<Record<string, Omit<DemoKey, 'name'>>>;

const ALL = Object.entries<Omit<DemoKey, 'name'>>(KEYS).map(([name, key]): DemoKey => ({ name, ...key }));

/** Makes the lasting keys that are missing. @returns the secrets of the new ones by name */
export async function ensureKeys(parts: AdminParts): Promise<ReadonlyMap<string, string>> {
  const present = new Set((await demoKeys(parts)).map(({ name }) => name));
  const made = new Map<string, string>();
  for (const key of ALL.filter(({ name }) => !present.has(name))) made.set(key.name, await make(parts, key));
  return made;
}

/** The lasting keys as they are stored, revoked ones among them. */
export async function demoKeys(parts: AdminParts): Promise<readonly KeyRow[]> {
  const names = new Set<string | null>(ALL.map(({ name }) => name));
  const stored = await Promise.all([ACME, TRIAL].map((tenant) => keysOf(parts, tenant)));
  return stored.flat().filter(({ name }) => names.has(name));
}

async function make(parts: AdminParts, key: DemoKey): Promise<string> {
  const {
    tenant,
    name,
    description,
    scopes,
    constraints = {},
    rateLimitRpm = null,
    days = 300,
    isRevoked = false,
  } = key;
  const secret = makeApiKey(parts.random);
  const id = makeId('key', parts.now(), parts.random(10));
  const owner = key.owner === undefined ? undefined : (await userOf(parts, tenant, key.owner))?.id;
  const target = { type: 'api_key', id } as const;
  await write(parts, tenant, { action: 'api_key.create', target }, async (trx) => {
    await insertKey(trx, {
      id,
      tenant_id: tenant,
      user_id: owner ?? null,
      name,
      description,
      metadata: {},
      scopes,
      resource_constraints: constraints,
      rate_limit_rpm: rateLimitRpm,
      expires_at: new Date(parts.now() + days * DAY_MS),
      ...secretColumns(secret),
      at: await databaseTime(trx),
    });
  });
  if (isRevoked) {
    await write(parts, tenant, { action: 'api_key.revoke', target }, async (trx) => {
      await markRevoked(trx, { id, tenant_id: tenant });
    });
  }
  return secret.text;
}

const PRINTED = 'Demo key, renewed at every start of the demo';
const PRINTED_DAYS = 30;

/**
 * The key of a tenant that the demo prints keeps its id and gets a new secret; the one before stops at once. @param
 * owner undefined: the tenant
 */
export async function renewKey(
  parts: AdminParts,
  tenant: TenantId,
  owner: StoredUser['id'] | undefined,
  scopes: readonly string[],
): Promise<string> {
  const secret = makeApiKey(parts.random);
  const present = (await keysOf(parts, tenant)).find(
    ({ description, revoked_at, user_id }) =>
      description === PRINTED && revoked_at === null && user_id === (owner ?? null),
  );
  const id = present?.id ?? makeId('key', parts.now(), parts.random(10));
  const columns = {
    name: present?.name ?? 'demo',
    description: PRINTED,
    metadata: present?.metadata ?? {},
    scopes,
    resource_constraints: {},
    rate_limit_rpm: null,
    expires_at: new Date(parts.now() + PRINTED_DAYS * DAY_MS),
  };
  const action = present === undefined ? 'api_key.create' : 'api_key.rotate';
  await write(parts, tenant, { action, target: { type: 'api_key', id } }, async (trx) => {
    if (present === undefined) {
      const at = await databaseTime(trx);
      await insertKey(trx, { ...columns, id, tenant_id: tenant, user_id: owner ?? null, ...secretColumns(secret), at });
      return;
    }
    await replaceColumns(trx, present, columns);
    await replaceSecret(trx, present, secret, null);
  });
  return secret.text;
}

function secretColumns({ digest, prefix, lastFour }: KeySecret) {
  return { digest, prefix, last_four: lastFour, imported: false, created_by: 'system' };
}

export async function userOf({ db }: AdminParts, tenant: TenantId, email: string): Promise<StoredUser | undefined> {
  const [user] = await listUsers(db.knex, { kind: 'one', tenant }, { email }, { after: undefined, take: 1 });
  return user;
}

async function keysOf({ db, now }: AdminParts, tenant: TenantId): Promise<readonly KeyRow[]> {
  const page = { after: undefined, take: KEYS_LOOKED_THROUGH };
  return (await listKeys(db.knex, { kind: 'one', tenant }, {}, page, new Date(now()))).rows;
}

function write(
  parts: AdminParts,
  tenant: TenantId,
  entry: AuditEntry,
  work: (trx: Transaction) => Promise<void>,
): Promise<void> {
  const actor: Actor = { type: 'system', id: undefined, tenant, address: undefined, requestId: undefined };
  return changeAsSystem(parts, actor, entry, async (trx) => work(trx));
}
