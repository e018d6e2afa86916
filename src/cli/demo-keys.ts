/**
 * The API keys of the demo. The server never shows a key a second time. Therefore the permanent keys, whose traffic the
 * demo writes, are created once, and the printed keys get a new secret at every start.
 */

import type { TenantId, UserId } from '../domain/ids.ts';
import { createKeyAsSystem, renewKeyAsSystem, revokeKeyAsSystem } from '../iam/api-keys/as-system.ts';
import type { KeyRow } from '../iam/api-keys/entity.ts';
import { listKeys } from '../iam/api-keys/list-queries.ts';
import type { AdminParts } from '../iam/caller/caller.ts';
import { ACME, DEVELOPER, TRIAL, userOf } from './demo-setup.ts';

/** The maximum number of keys of a tenant among which the demo looks for its own. */
const MAX_KEYS = 200;

interface DemoKey {
  readonly tenant: TenantId;
  readonly name: string;
  readonly description: string;
  /** Email address; undefined = the tenant owns the key. */
  readonly owner?: string;
  readonly scopes: readonly string[];
  readonly resource_constraints?: KeyRow['resource_constraints'];
  readonly rate_limit_rpm?: number;
  /** Default: 300. */
  readonly days?: number;
  readonly revoked?: true;
}

/** By name, in the order of their creation. */
const KEYS = {
  'checkout-assistant': {
    tenant: ACME,
    description: 'Answers customers in the shop',
    scopes: ['chat:write'],
    rate_limit_rpm: 120,
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
    resource_constraints: { collections: ['risk-*'] },
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
    revoked: true,
  },
  'trial-bot': { tenant: TRIAL, description: 'First steps', scopes: ['chat:*'], days: 20 },
} as const satisfies Readonly<Record<string, Omit<DemoKey, 'name'>>>;

const ALL = Object.entries<Omit<DemoKey, 'name'>>(KEYS).map(([name, key]): DemoKey => ({ name, ...key }));

/** Creates the permanent keys that are missing. @returns the secrets of the new keys, by name */
export async function ensureKeys(parts: AdminParts): Promise<ReadonlyMap<string, string>> {
  const present = new Set((await demoKeys(parts)).map(({ name }) => name));
  const created = new Map<string, string>();
  for (const key of ALL.filter(({ name }) => !present.has(name))) created.set(key.name, await create(parts, key));
  return created;
}

/** Returns the permanent keys that the database has, including revoked ones. */
export async function demoKeys(parts: AdminParts): Promise<readonly KeyRow[]> {
  const names = new Set<string | null>(ALL.map(({ name }) => name));
  const stored = await Promise.all([ACME, TRIAL].map((tenant) => keysOf(parts, tenant)));
  return stored.flat().filter(({ name }) => names.has(name));
}

async function create(parts: AdminParts, key: DemoKey): Promise<string> {
  const { tenant, owner, days = 300, revoked = false, ...members } = key;
  const { id, text } = await createKeyAsSystem(parts, tenant, {
    ...members,
    user_id: owner === undefined ? null : ((await userOf(parts, tenant, owner)) ?? null),
    expires_in_days: days,
  });
  if (revoked) await revokeKeyAsSystem(parts, tenant, id);
  return text;
}

const PRINTED = 'Demo key, renewed at every start of the demo';
const PRINTED_DAYS = 30;

/**
 * Gives the printed key of a tenant a new secret, or creates it. The former secret stops working at once.
 * @param owner null = the tenant
 */
export async function renewKey(
  parts: AdminParts,
  tenant: TenantId,
  owner: UserId | null,
  scopes: readonly string[],
): Promise<string> {
  const present = (await keysOf(parts, tenant)).find(
    ({ description, revoked_at, user_id }) => description === PRINTED && revoked_at === null && user_id === owner,
  );
  const members = {
    description: PRINTED,
    scopes,
    resource_constraints: {},
    rate_limit_rpm: null,
    expires_in_days: PRINTED_DAYS,
  };
  const { text } =
    present === undefined
      ? await createKeyAsSystem(parts, tenant, { ...members, name: 'demo', user_id: owner })
      : await renewKeyAsSystem(parts, present, members);
  return text;
}

/** Reports whether the tenant has a key with this name that is neither revoked nor expired. */
export async function hasKey(parts: AdminParts, tenant: TenantId, name: string): Promise<boolean> {
  return (await keysOf(parts, tenant)).some(
    ({ name: own, revoked_at, expires_at }) =>
      own === name && revoked_at === null && (expires_at === null || expires_at.getTime() > parts.now()),
  );
}

async function keysOf({ db, now }: AdminParts, tenant: TenantId): Promise<readonly KeyRow[]> {
  return (await listKeys(db.knex, { kind: 'one', tenant }, {}, { after: undefined, take: MAX_KEYS }, new Date(now())))
    .rows;
}
