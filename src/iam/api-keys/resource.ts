/** What the API shows of a key: never the key itself, but for the one answer that hands it out. */

import { parseId } from '../../domain/ids.ts';
import type { Metadata, ResourceConstraints } from '../../domain/records.ts';
import type { KeyStatus, StoredKey } from './queries.ts';

export interface KeyResource {
  readonly id: string;
  readonly tenant_id: string;
  /** null for a key of its tenant. */
  readonly user_id: string | null;
  readonly name: string | null;
  readonly description: string;
  readonly metadata: Metadata;
  readonly scopes: readonly string[];
  readonly resource_constraints: ResourceConstraints;
  readonly rate_limit_rpm: number | null;
  readonly prefix: string;
  readonly last_four: string;
  /** True if the secret is another system's, imported as a digest. A rotation gives the key a secret of Postern's own. */
  readonly imported: boolean;
  readonly status: KeyStatus;
  readonly expires_at: string | null;
  readonly created_by: KeyCreator;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_used_at: string | null;
}

/** The principal that created a key. The id of the system is null. */
export type KeyCreator =
  | { readonly type: 'user' | 'api_key'; readonly id: string }
  | { readonly type: 'system'; readonly id: null };

/** With the key, shown here and never again. */
export interface IssuedKey extends KeyResource {
  readonly key?: string;
  /** In place of the key, in an answer given again. */
  readonly secret_available?: false;
}

export function keyResource(key: StoredKey, nowMs: number): KeyResource {
  return {
    id: key.id,
    tenant_id: key.tenantId,
    user_id: key.userId ?? null,
    name: key.name,
    description: key.description,
    metadata: key.metadata,
    scopes: key.scopes,
    resource_constraints: key.constraints,
    rate_limit_rpm: key.rateLimitRpm,
    prefix: key.prefix,
    last_four: key.lastFour,
    imported: key.imported,
    status: statusOf(key, nowMs),
    expires_at: key.expiresAt?.toISOString() ?? null,
    created_by: creatorOf(key),
    created_at: key.createdAt.toISOString(),
    updated_at: key.updatedAt.toISOString(),
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

function statusOf(key: StoredKey, nowMs: number): KeyStatus {
  if (key.revokedAt !== null) return 'revoked';
  return key.expiresAt !== null && key.expiresAt.getTime() <= nowMs ? 'expired' : 'active';
}

function creatorOf({ createdBy: id }: StoredKey): KeyCreator {
  if (parseId('usr', id) !== undefined) return { type: 'user', id };
  if (parseId('key', id) !== undefined) return { type: 'api_key', id };
  return { type: 'system', id: null };
}
