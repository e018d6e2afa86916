/** Resolves an explain request: the requester, the subject, and the input of the decision. */

import type { Resolution } from '../../credential-cache/credential-cache.ts';
import { parseAddress } from '../../decision/address.ts';
import { checkInput } from '../../decision/check-input.ts';
import type { Unproved } from '../../decision/explain-steps.ts';
import type { CheckInput, HeaderValue, Identity } from '../../decision/model.ts';
import type { PriceTable } from '../../decision/prices.ts';
import type { RouteTable } from '../../decision/routes.ts';
import { effectiveTenant, isPlatformAdmin } from '../../decision/tenant.ts';
import type { CredentialForm } from '../../domain/credential.ts';
import { Refusal } from '../../domain/errors.ts';
import { type KeyDigest, parseId, type TenantId, type UserId } from '../../domain/ids.ts';
import { readCredential } from '../../identity/credential.ts';
import type { TenantScope } from '../../store/paging.ts';
import { keyDigest, keyIdsNamed } from '../api-keys/queries.ts';
import { authorize } from '../caller/authorize.ts';
import { type AdminParts, type Caller, selfId } from '../caller/caller.ts';
import { invalidField, orNotFound } from '../caller/refusals.ts';
import type { MeteringParts } from '../usage/parts.ts';
import { tenantOfUser, userIdOfEmail } from '../users/queries.ts';
import { issuerSubject } from './issuer-subject.ts';
import type { ExplainRequest } from './schemas.ts';
import { type ExplainSubject, explainSubjectOf, verifiedClaims, whyUnproved } from './unproved.ts';

/** The credential cache, which resolves a subject like a credential. */
interface SubjectResolver {
  examine(credential: CredentialForm, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveUser(id: UserId, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
  resolveKey(digest: KeyDigest, tenant: HeaderValue, nowMs: number): Resolution | Promise<Resolution>;
}

export interface ExplainParts extends Pick<AdminParts, 'db'>, MeteringParts {
  readonly live: SubjectResolver;
  readonly routes: RouteTable;
  /** The prices in force. */
  readonly priceTable: () => PriceTable;
}

/** A caller, or the operator, who needs no permission. */
export type Requester =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'operator'; readonly nowMs: number };

/** The input of the decision, and further parts of its explanation. */
export interface ResolvedRequest extends Resolution {
  readonly input: CheckInput;
  /** The instant of the decision, in milliseconds since the epoch. */
  readonly nowMs: number;
  /** The instant of the explain request. */
  readonly requestedAtMs: number;
  /**
   * The reason why the credential proves no principal; undefined if it proves one or an earlier step ends the decision.
   */
  readonly unproved: Unproved | undefined;
}

/** A resolution with its key or user. */
interface ResolvedSubject {
  readonly resolution: Resolution;
  readonly subject: ExplainSubject;
}

/**
 * @throws Refusal of the decision about the caller; `invalid_field`; `not_found` for a subject that does not exist or
 *   belongs to a tenant that the caller may not act in; `tenant_mismatch` for a platform administrator in such a tenant
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
  const id = await subjectId(parts, requester, subject);
  return orNotFound(
    id === undefined ? undefined : await resolveById(parts, visibleTenant(requester), id, tenant, nowMs),
    'subject',
  );
}

/** An id has no other letters, and a prefix or name that looks like one is none. */
const isId = (text: string): boolean => parseId('usr', text) !== undefined || parseId('key', text) !== undefined;

/**
 * Returns the id of a subject: an id, the email address of a user, or the shown prefix or the name of a key.
 * @returns undefined for none in the tenants that the requester may see
 * @throws Refusal of the decision about the caller; `not_found` if several keys have the prefix or name
 */
async function subjectId(
  { db }: Pick<ExplainParts, 'db'>,
  requester: Requester,
  subject: string,
): Promise<string | undefined> {
  const user = subject.includes('@')
    ? await userIdOfEmail(db.knex, scopeOf(visibleTenant(requester)), subject.toLowerCase())
    : undefined;
  const id = isId(subject) ? subject : user;
  authorizeRequester(requester, (caller) => id !== undefined && id === selfId(caller));
  if (id !== undefined) return id;
  // Prefixes and names are unique at most in one tenant, so the tenant of the request comes first.
  const tenants = new Set([
    requester.kind === 'operator' ? undefined : requester.caller.tenant,
    visibleTenant(requester),
  ]);
  for (const tenant of tenants) {
    const [key, ...others] = await keyIdsNamed(db.knex, scopeOf(tenant), subject, 2);
    if (others.length > 0)
      throw new Refusal('not_found', 'Several keys have this prefix or name. Give the id of the key.', {
        param: 'subject',
      });
    if (key !== undefined) return key;
  }
  return undefined;
}

function scopeOf(tenant: TenantId | undefined): TenantScope {
  return tenant === undefined ? { kind: 'every' } : { kind: 'one', tenant };
}

/**
 * Resolves the user or key of an id.
 * @param visible the only tenant whose subjects are found; undefined: all tenants
 */
export async function resolveById(
  { db, live }: Pick<ExplainParts, 'db' | 'live'>,
  visible: TenantId | undefined,
  id: string,
  tenant: string | undefined,
  nowMs: number,
): Promise<ResolvedSubject | undefined> {
  const scope = scopeOf(visible);
  const userId = parseId('usr', id);
  if (userId !== undefined) {
    const userTenant = await tenantOfUser(db.knex, scope, userId);
    if (userTenant === undefined) return undefined;
    const resolution = await live.resolveUser(userId, tenant, nowMs);
    return { resolution, subject: { kind: 'user', id: userId, tenant: userTenant, session: undefined } };
  }
  const keyId = parseId('key', id);
  const digest = keyId && (await keyDigest(db.knex, scope, keyId));
  if (digest === undefined) return undefined;
  return { resolution: await live.resolveKey(digest, tenant, nowMs), subject: { kind: 'key', digest } };
}

/** A credential of a tenant that the caller may not act in counts as unknown. */
async function resolveCredential(
  parts: ExplainParts,
  requester: Requester,
  credential: string | undefined,
  tenant: string | undefined,
  nowMs: number,
): Promise<ResolvedSubject> {
  const form = readCredential(credential === undefined ? undefined : `Bearer ${credential}`);
  const resolution = await parts.live.examine(form, tenant, nowMs);
  const { identity } = resolution;
  const claims = verifiedClaims(form, identity);
  const bearer =
    identity.kind === 'proved' ? identity.principal : claims && { id: claims.owner.id, tenantId: claims.tenantId };
  authorizeRequester(requester, (caller) => bearer !== undefined && bearer.id === selfId(caller));
  const home = visibleTenant(requester);
  const foreign = bearer !== undefined && home !== undefined && bearer.tenantId !== home;
  // A text with the characters of a token passes step 6, also if it is no token.
  const unreadable = form.kind === 'token' && identity.kind === 'invalid' && identity.reason === 'malformed';
  if (foreign || unreadable)
    return { resolution: { identity: UNKNOWN, snapshot: undefined }, subject: { kind: 'none' } };
  if (form.kind === 'token' && identity.kind === 'invalid' && identity.external === true)
    return { resolution, subject: await issuerSubject(parts.db.knex, form.token, identity.reason, nowMs) };
  return { resolution, subject: explainSubjectOf(form, claims) };
}

function authorizeRequester(requester: Requester, aboutOneself: (caller: Caller) => boolean): void {
  if (requester.kind === 'caller')
    authorize(requester.caller, 'admin:policies', { self: aboutOneself(requester.caller) });
}

/** Returns the only tenant whose subjects are visible; undefined: all tenants. */
export function visibleTenant(requester: Requester): TenantId | undefined {
  return requester.kind === 'operator' || isPlatformAdmin(requester.caller.principal)
    ? undefined
    : requester.caller.principal.tenantId;
}

/**
 * Checks that the subject acts in a tenant that the requester may see. A platform administrator may act in every
 * tenant, and a decision there reveals the tenant's existence and policies.
 * @throws Refusal `tenant_mismatch`
 */
function assertTenantVisible(requester: Requester, identity: Identity, tenant: HeaderValue): void {
  if (!actsOutside(visibleTenant(requester), identity, tenant)) return;
  throw new Refusal('tenant_mismatch', 'The credential does not belong to the tenant that tenant_id names.', {
    param: 'tenant_id',
  });
}

/** Reports whether a proved principal acts in another tenant than the only visible one. */
export function actsOutside(visible: TenantId | undefined, identity: Identity, tenant: HeaderValue): boolean {
  if (visible === undefined || identity.kind !== 'proved') return false;
  const choice = effectiveTenant(identity.principal, tenant);
  return choice.kind === 'tenant' && choice.id !== visible;
}

function requestedAt(requester: Requester): number {
  return requester.kind === 'caller' ? requester.caller.nowMs : requester.nowMs;
}

const UNKNOWN: Identity = { kind: 'invalid', reason: 'unknown' };

/** A text that is no address would count as an unknown address, and the explanation would be that of no request. */
export function clientAddressProblem(text: string | null | undefined): string | undefined {
  return text == null || parseAddress(text) !== undefined ? undefined : 'Give an IPv4 or IPv6 address.';
}

/** @throws Refusal `invalid_field` for a `client_ip` that is no address */
function inputOf(requester: Requester, request: ExplainRequest): CheckInput {
  const { method, path, tenant_id: tenant, client_ip: address, content_type: type } = request;
  const problem = clientAddressProblem(address);
  if (problem !== undefined) throw invalidField('/client_ip', problem);
  const body = request.body ?? undefined;
  return checkInput(
    {
      method,
      path,
      tenant,
      contentType: type ?? (body !== undefined && body !== '' ? 'application/json' : undefined),
      clientAddress: address === undefined ? addressOf(requester) : (address ?? undefined),
    },
    body,
  );
}

function addressOf(requester: Requester): string | undefined {
  return requester.kind === 'caller' ? requester.caller.address : undefined;
}
