/** What an explanation is asked about: who asks, whom they ask about, and the request that is thought of. */

import type { Resolution } from '../../credential-cache/credential-cache.ts';
import type { Unproved } from '../../decision/explain-steps.ts';
import type { CheckInput, HeaderValue, Identity } from '../../decision/model.ts';
import type { RouteTable } from '../../decision/routes.ts';
import { effectiveTenant, isPlatformAdmin } from '../../decision/tenant.ts';
import type { CredentialForm } from '../../domain/credential.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyDigest, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { readCredential } from '../../identity/credential.ts';
import type { TenantScope } from '../../store/paging.ts';
import { keyDigest } from '../api-keys/queries.ts';
import { authorize } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { invalidField, notFound } from '../caller/refusals.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { tenantOfUser } from '../users/queries.ts';
import { type ExplainSubject, subjectOf, verifiedClaims, whyUnproved } from './unproved.ts';

/** The live cache, which resolves a subject as it resolves a credential. */
export interface SubjectResolver {
  resolve(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveUser(id: UserId, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveKey(digest: KeyDigest, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
}

export interface ExplainParts extends Pick<AdminParts, 'db'>, MeteringParts {
  readonly live: SubjectResolver;
  readonly routes: RouteTable;
}

export interface ExplainRequest {
  /** The id of a user or a key. */
  readonly subject?: string;
  /** An API key or an access token, as a request would carry it. */
  readonly credential?: string;
  /** Stands for X-Tenant-ID. */
  readonly tenant_id?: string;
  readonly method: string;
  readonly path: string;
  /** Absent: the caller's; null: missing. */
  readonly client_ip?: string | null;
  /** RFC 3339; absent: now. */
  readonly time?: string;
  readonly body?: string;
  readonly content_type?: string;
}

/** Who asks: a caller with the right to, or whoever runs the server, who needs none. */
export type Requester =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'operator'; readonly nowMs: number };

/** Everything that the decision takes, and what its explanation shows beside it. */
export interface ResolvedRequest extends Resolution {
  readonly input: CheckInput;
  /** The instant that the question is about. */
  readonly nowMs: number;
  /** The instant at which it is asked. */
  readonly requestedAtMs: number;
  /** Why the credential proves no principal; undefined if it proves one, or if an earlier step ends the decision. */
  readonly unproved: Unproved | undefined;
}

/** A resolution with the key or user that it is about. */
interface ResolvedSubject {
  readonly resolution: Resolution;
  readonly subject: ExplainSubject;
}

/**
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that is not there or of a tenant that the
 * caller may not act in; `tenant_mismatch` for a platform administrator in such a tenant
 */
export async function resolveExplainRequest(
  parts: ExplainParts,
  requester: Requester,
  request: ExplainRequest,
): Promise<ResolvedRequest> {
  if (request.subject !== undefined && request.credential !== undefined) {
    throw invalidField('/credential', 'Give a subject or a credential, not both.');
  }
  const nowMs = request.time === undefined ? requestedAt(requester) : Date.parse(request.time);
  if (Number.isNaN(nowMs)) throw invalidField('/time', 'Must be a valid RFC 3339 time, such as 2026-11-30T12:00:00Z.');
  const {
    resolution: { identity, snapshot },
    subject,
  } =
    request.subject === undefined
      ? await resolveCredential(parts, requester, request.credential, request.tenant_id, nowMs)
      : await resolveSubject(parts, requester, request.subject, request.tenant_id, nowMs);
  assertTenantVisible(requester, identity, request.tenant_id);
  const instants = { nowMs, requestedAtMs: requestedAt(requester) };
  const unproved =
    identity.kind === 'invalid' ? await whyUnproved(parts.db.knex, requester, subject, instants) : undefined;
  return { identity, snapshot, input: inputOf(requester, request), ...instants, unproved };
}

async function resolveSubject(
  parts: ExplainParts,
  requester: Requester,
  subject: string,
  tenant: string | undefined,
  nowMs: number,
): Promise<ResolvedSubject> {
  authorizeRequester(requester, (caller) => subject === selfId(caller));
  const home = visibleTenant(requester);
  const scope: TenantScope = home === undefined ? { kind: 'every' } : { kind: 'one', tenant: home };
  const userId = parseId('usr', subject);
  if (userId !== undefined) {
    const userTenant = await tenantOfUser(parts.db.knex, scope, userId);
    if (userTenant === undefined) throw notFound('subject');
    const resolution = await parts.live.resolveUser(userId, tenant, nowMs);
    return { resolution, subject: { kind: 'user', id: userId, tenant: userTenant, session: undefined } };
  }
  const keyId = parseId('key', subject);
  const digest = keyId && (await keyDigest(parts.db.knex, scope, keyId));
  if (digest === undefined) throw notFound('subject');
  return { resolution: await parts.live.resolveKey(digest, tenant, nowMs), subject: { kind: 'key', digest } };
}

/** A credential of a tenant that the caller may not act in is as good as unknown. */
async function resolveCredential(
  parts: ExplainParts,
  requester: Requester,
  credential: string | undefined,
  tenant: string | undefined,
  nowMs: number,
): Promise<ResolvedSubject> {
  const form = readCredential(credential === undefined ? undefined : `Bearer ${credential}`);
  const resolution = await parts.live.resolve(form, tenant, nowMs);
  const { identity } = resolution;
  const claims = verifiedClaims(form, identity);
  const bearer =
    identity.kind === 'proved' ? identity.principal : claims && { id: claims.userId, tenantId: claims.tenantId };
  authorizeRequester(requester, (caller) => bearer !== undefined && bearer.id === selfId(caller));
  const home = visibleTenant(requester);
  const foreign = bearer !== undefined && home !== undefined && bearer.tenantId !== home;
  return {
    resolution: foreign ? { identity: UNKNOWN, snapshot: undefined } : resolution,
    subject: foreign ? { kind: 'none' } : subjectOf(form, claims),
  };
}

function authorizeRequester(requester: Requester, aboutOneself: (caller: Caller) => boolean): void {
  if (requester.kind === 'caller')
    authorize(requester.caller, 'admin:policies', { self: aboutOneself(requester.caller) });
}

/** The tenant whose subjects may be asked about; undefined = every one. */
function visibleTenant(requester: Requester): TenantId | undefined {
  return requester.kind === 'operator' || isPlatformAdmin(requester.caller.principal)
    ? undefined
    : requester.caller.principal.tenantId;
}

/**
 * A platform administrator may act in every tenant, and what is decided about one there tells of that tenant's policies, and whether there
 * is such a tenant: that is told to none but those who may act there too.
 */
function assertTenantVisible(requester: Requester, identity: Identity, tenant: HeaderValue): void {
  const home = visibleTenant(requester);
  if (home === undefined || identity.kind !== 'proved') return;
  const choice = effectiveTenant(identity.principal, tenant);
  if (choice.kind === 'tenant' && choice.id !== home) {
    throw new Refusal('tenant_mismatch', 'The credential does not belong to the tenant that tenant_id names.', {
      param: 'tenant_id',
    });
  }
}

function requestedAt(requester: Requester): number {
  return requester.kind === 'caller' ? requester.caller.nowMs : requester.nowMs;
}

const UNKNOWN: Identity = { kind: 'invalid', reason: 'unknown' };
const encoder = new TextEncoder();

function inputOf(requester: Requester, request: ExplainRequest): CheckInput {
  const hasBody = request.body !== undefined && request.body !== '';
  return {
    method: request.method,
    path: request.path,
    authorization: undefined,
    tenant: request.tenant_id,
    upgrade: undefined,
    contentType: request.content_type ?? (hasBody ? 'application/json' : undefined),
    contentEncoding: undefined,
    body: encoder.encode(request.body ?? ''),
    bodyPartial: false,
    bodyMissing: false,
    clientAddress: request.client_ip === undefined ? addressOf(requester) : (request.client_ip ?? undefined),
  };
}

function addressOf(requester: Requester): string | undefined {
  return requester.kind === 'caller' ? requester.caller.address : undefined;
}
