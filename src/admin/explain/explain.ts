/** Asks what would be decided about a request, and why: the same decision as the data plane's, with nothing counted. */

import { type Explanation, explain } from '../../decision/explain.ts';
import type { CheckInput, HeaderValue, Identity } from '../../decision/model.ts';
import { matchRoute, type RouteTable } from '../../decision/routes.ts';
import type { CredentialForm } from '../../domain/credential.ts';
import { type KeyDigest, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { readCredential } from '../../identity/credential.ts';
import type { Resolution } from '../../live/live.ts';
import { keyDigest } from '../../store/queries/api-keys.ts';
import type { TenantScope } from '../../store/queries/rows.ts';
import { userExists } from '../../store/queries/users.ts';
import { authorize } from '../authorize.ts';
import { type AdminParts, type Caller, isPlatformAdmin, selfId } from '../caller.ts';
import { invalidField, notFound } from '../refusals.ts';

/** The live cache, which resolves a subject as it resolves a credential. */
export interface SubjectResolver {
  resolve(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveUser(id: UserId, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveKey(digest: KeyDigest, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
}

export interface ExplainParts extends Pick<AdminParts, 'db'> {
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
export type Asker = { readonly kind: 'caller'; readonly caller: Caller } | { readonly kind: 'operator'; readonly nowMs: number };

/**
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that is not there or of a tenant that the
 * caller may not act in
 */
export async function explainRequest(parts: ExplainParts, asker: Asker, request: ExplainRequest): Promise<Explanation> {
  if (request.subject !== undefined && request.credential !== undefined) {
    throw invalidField('/credential', 'Give a subject or a credential, not both.');
  }
  const nowMs = request.time === undefined ? askedAt(asker) : Date.parse(request.time);
  if (Number.isNaN(nowMs)) throw invalidField('/time', 'There is no such instant.');
  const { identity, snapshot } =
    request.subject === undefined
      ? await ofCredential(parts, asker, request.credential, request.tenant_id, nowMs)
      : await ofSubject(parts, asker, request.subject, request.tenant_id, nowMs);
  const input = inputOf(asker, request);
  return explain(matchRoute(parts.routes, input), input, identity, snapshot, nowMs);
}

async function ofSubject(
  parts: ExplainParts,
  asker: Asker,
  subject: string,
  tenant: string | undefined,
  nowMs: number,
): Promise<Resolution> {
  mayAsk(asker, (caller) => subject === selfId(caller));
  const home = onlyTenantOf(asker);
  const scope: TenantScope = home === undefined ? { kind: 'every' } : { kind: 'one', tenant: home };
  const userId = parseId('usr', subject);
  if (userId !== undefined) {
    if (!(await userExists(parts.db.knex, scope, userId))) throw notFound('subject');
    return parts.live.resolveUser(userId, tenant, nowMs);
  }
  const keyId = parseId('key', subject);
  const digest = keyId && (await keyDigest(parts.db.knex, scope, keyId));
  if (digest === undefined) throw notFound('subject');
  return parts.live.resolveKey(digest, tenant, nowMs);
}

/** A credential of a tenant that the caller may not act in is as good as unknown. */
async function ofCredential(
  parts: ExplainParts,
  asker: Asker,
  credential: string | undefined,
  tenant: string | undefined,
  nowMs: number,
): Promise<Resolution> {
  const form = credential === undefined ? undefined : `Bearer ${credential}`;
  const resolution = await parts.live.resolve(readCredential(form), tenant, nowMs);
  const { identity } = resolution;
  mayAsk(asker, (caller) => identity.kind === 'proved' && identity.principal.id === selfId(caller));
  const home = onlyTenantOf(asker);
  const foreign = identity.kind === 'proved' && home !== undefined && identity.principal.tenantId !== home;
  return foreign ? { identity: UNKNOWN, snapshot: undefined } : resolution;
}

function mayAsk(asker: Asker, aboutOneself: (caller: Caller) => boolean): void {
  if (asker.kind === 'caller') authorize(asker.caller, 'admin:policies', { self: aboutOneself(asker.caller) });
}

/** The tenant whose subjects may be asked about; undefined = every one. */
function onlyTenantOf(asker: Asker): TenantId | undefined {
  return asker.kind === 'operator' || isPlatformAdmin(asker.caller) ? undefined : asker.caller.principal.tenantId;
}

function askedAt(asker: Asker): number {
  return asker.kind === 'caller' ? asker.caller.nowMs : asker.nowMs;
}

const UNKNOWN: Identity = { kind: 'invalid', reason: 'unknown' };
const encoder = new TextEncoder();

function inputOf(asker: Asker, request: ExplainRequest): CheckInput {
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
    clientAddress: request.client_ip === undefined ? addressOf(asker) : (request.client_ip ?? undefined),
  };
}

function addressOf(asker: Asker): string | undefined {
  return asker.kind === 'caller' ? asker.caller.address : undefined;
}
