/**
 * The steps of an explanation: the order of evaluation, where the decision ended, and why a credential proves no
 * principal.
 */

import { type DenyCode, ERRORS, Fault } from '../domain/errors.ts';
import type { BudgetRecord } from '../domain/records.ts';
import type { Decision, ISSUER_REASONS } from './model.ts';
import type { RateDimension } from './model-rates.ts';

/** Why a credential proves no principal, as shown to a caller that may manage the key or the user. */
export type UnprovedReason =
  | 'revoked'
  | 'disabled'
  | 'expired'
  | 'rotated'
  | 'checksum'
  | 'unknown'
  | 'owner_deactivated'
  | 'session_ended'
  | 'signature'
  | (typeof ISSUER_REASONS)[number];

export interface Unproved {
  readonly reason: UnprovedReason;
  readonly key_id: string | null;
  /** The user that the credential names: the key's owner, or the token's subject. */
  readonly user_id: string | null;
  /** The time of the event, RFC 3339; null if it is not known. */
  readonly time: string | null;
}

export interface ExplainedStep extends Partial<Unproved> {
  /** The number of the step in the order of evaluation. */
  readonly line: number;
  readonly name: string;
  /** `not_evaluated`: an earlier step ended the decision. */
  readonly outcome: 'passed' | 'denied' | 'allowed' | 'not_evaluated';
  readonly detail: string;
}

/** One limit that applies to a request that passed steps 1 to 14. */
export interface ExplainedLimit {
  readonly name: 'max_tokens_per_request' | 'rate_limit_rpm' | RateDimension | 'monthly_tokens' | 'max_collections';
  /** `user`: the user itself, or the owner of the key. */
  readonly of: 'tenant' | 'user' | 'api_key';
  /** The globs of a limit by model. Absent: the limit is of all requests. */
  readonly models?: readonly string[];
  readonly line: 15 | 16 | 17;
  /** False: this request does not count toward it. */
  readonly applies: boolean;
  /** null = no limit. */
  readonly limit: number | null;
  readonly used: number | null;
  /** The part of `remaining` that is reserved: for running requests, and ahead of need. */
  readonly reserved: number | null;
  readonly remaining: number | null;
  /** RFC 3339; null = the limit does not reset. */
  readonly resets_at: string | null;
  /** The amount that this request takes, or the largest token limit that it names; null if it names none. */
  readonly needed: number | null;
  readonly exceeded: boolean;
}

/** One budget that counts a request that passed steps 1 to 15, for step 17. */
export interface ExplainedBudget extends Pick<BudgetRecord, 'id' | 'name' | 'unit' | 'period' | 'action'> {
  /** The key or the user whose own amount it is; null: the callers share it. */
  readonly caller: string | null;
  /** Amounts of money are decimal texts. Null: the reader may not know. */
  readonly limit: string | number | null;
  readonly spent: string | number | null;
  /** The part of the rest that is reserved: for running requests, and ahead of need. */
  readonly reserved: string | number | null;
  /** The amount that this request takes. */
  readonly needed: string | number;
  /** RFC 3339; null = the budget does not reset. */
  readonly resets_at: string | null;
  readonly exceeded: boolean;
}

type DecisionStep = readonly [name: string, codes: readonly DenyCode[], passed: string];

/** The steps from 1 on: the name, the codes with which it ends a decision, and the sentence if it does not. */
const STEPS: readonly DecisionStep[] = [
  ['request', [], 'The request is well-formed.'],
  ['path', ['malformed_path'], 'The path is in normal form.'],
  ['public', [], 'The path is not public.'],
  ['route', ['no_route'], 'A route matches.'],
  ['credential', ['missing_credential'], 'The request has a credential.'],
  ['credential_form', [], 'The request has exactly one credential, in a known form.'],
  ['token_lifetime', ['token_expired'], 'The credential is not an expired access token.'],
  ['identity', ['invalid_credential'], 'The credential proves a principal.'],
  ['tenant', ['invalid_tenant', 'tenant_mismatch'], 'The principal may act in the tenant.'],
  ['tenant_status', ['tenant_suspended'], 'The tenant is active.'],
  [
    'body',
    ['malformed_body', 'body_too_large'],
    'The body has the form that the route requires, or the route does not read the body.',
  ],
  ['deny_policies', ['denied_by_policy'], 'No deny policy matches.'],
  ['permission', ['insufficient_permission'], 'The principal has the permission.'],
  ['resources', ['resource_not_permitted'], 'The principal may use all resources of the request.'],
  [
    'token_limit',
    ['max_tokens_exceeded', 'usage_required'],
    "The request stays within the tenant's token limit, and reports the usage that the tenant requires.",
  ],
  ['rate_limit', ['rate_limit_exceeded'], 'The request stays within every rate limit that applies.'],
  ['quota', ['insufficient_quota'], 'The request stays within every quota that applies.'],
];
const LAST_STEP = STEPS.length + 1;

/** How a decision ended, limits included. */
export interface Ending {
  readonly line: number;
  readonly outcome: 'denied' | 'allowed';
  readonly code: 'allow' | DenyCode;
  readonly status: number;
  readonly detail: string;
}

const ALLOW = { outcome: 'allowed', code: 'allow', status: 200 } as const;

/** @param limits of an allow of steps 2 to 15: the first that is exceeded denies, and after them the first such budget */
export function endingOf(
  decision: Decision,
  limits: readonly ExplainedLimit[],
  budgets: readonly ExplainedBudget[],
): Ending {
  switch (decision.kind) {
    case 'public':
      return { ...ALLOW, line: 3, detail: 'This path is public: Postern serves it without a credential.' };
    case 'deny': {
      const { code, detail } = decision;
      const line =
        decision.reason === 'malformed' || decision.reason === 'scheme'
          ? 6
          : Math.max(STEPS.findIndex(([, codes]) => codes.includes(code)) + 1, 1);
      return { line, outcome: 'denied', code, status: ERRORS[code].status, detail };
    }
    case 'fault':
      // An explanation always has the body.
      throw new Fault('an explanation needs a body that is not available');
    case 'allow': {
      const exceeded = limits.find((limit) => limit.exceeded);
      if (exceeded !== undefined) return refusedBy(exceeded);
      const blocking = budgets.find((budget) => budget.exceeded && budget.action === 'block');
      return blocking === undefined ? { ...ALLOW, line: LAST_STEP, detail: 'Every step passed.' } : blockedBy(blocking);
    }
    default:
      return decision satisfies never;
  }
}

function refusedBy(limit: ExplainedLimit): Ending {
  const code = limit.line === 16 ? 'rate_limit_exceeded' : 'insufficient_quota';
  return { line: limit.line, outcome: 'denied', code, status: ERRORS[code].status, detail: exceededText(limit) };
}

const HOLDER = { tenant: "tenant's", user: "user's", api_key: "key's" } as const;

function blockedBy({ name, resets_at: resetsAt }: ExplainedBudget): Ending {
  const reset = resetsAt === null ? 'It does not reset by itself.' : `It resets at ${resetsAt}.`;
  const detail = `This request may spend more than the budget "${name}" has left. ${reset}`;
  const code = 'insufficient_quota';
  return { line: 17, outcome: 'denied', code, status: ERRORS[code].status, detail };
}

function exceededText({ name, of, models = [], limit, needed, resets_at: resetsAt }: ExplainedLimit): string {
  const until = resetsAt === null ? '' : ` The limit resets at ${resetsAt}.`;
  const ofModels = `for the models ${models.join(', ')}`;
  switch (name) {
    case 'rate_limit_rpm':
      return `The ${HOLDER[of]} ${limit} requests per minute are used up.${until}`;
    case 'requests_per_minute':
      return `The ${HOLDER[of]} ${limit} requests per minute ${ofModels} are used up.${until}`;
    case 'tokens_per_minute':
      return `This request needs up to ${needed} tokens, but the ${HOLDER[of]} ${limit} tokens per minute ${ofModels} have fewer left.${until}`;
    case 'parallel':
      return `The ${HOLDER[of]} ${limit} places of requests at the same time ${ofModels} are taken.`;
    case 'monthly_tokens':
      return `This request needs up to ${needed} tokens, but the tenant's monthly quota has fewer left.${until}`;
    case 'max_collections':
      return `The tenant already has ${limit} collections, which is its limit. Delete a collection first.`;
    case 'max_tokens_per_request':
      return `The request asks for ${needed} tokens, but the tenant allows at most ${limit} per request. Lower the token limit of the request.`;
    default:
      return name satisfies never;
  }
}

/**
 * Returns all 18 steps.
 * @param unproved why the credential proves no principal; undefined if the reader may not know
 */
export function stepsOf(ending: Ending, unproved: Unproved | undefined): readonly ExplainedStep[] {
  const all: readonly DecisionStep[] = [...STEPS, ['allow', [], '']];
  return all.map(([name, , passed], i): ExplainedStep => {
    const line = i + 1;
    if (line < ending.line) return { line, name, outcome: 'passed', detail: passed };
    if (line > ending.line) {
      return { line, name, outcome: 'not_evaluated', detail: `Step ${ending.line} ended the decision.` };
    }
    const { outcome, detail } = ending;
    if (line !== 8 || unproved === undefined) return { line, name, outcome, detail };
    return { line, name, outcome, detail: `${detail} ${unprovedText(unproved)}`, ...unproved };
  });
}

/** Sentences about tokens of issuers, and about credentials without further facts. */
const UNPROVED = {
  checksum: 'The checksum of the API key is wrong. The key is mistyped, truncated or invented.',
  unknown_issuer: 'The tenant has no issuer with the iss of the token.',
  issuer_disabled: 'The issuer of the token is disabled.',
  algorithm: 'The issuer does not accept the alg of the token, or has no key for it.',
  signature: 'No key of the issuer verifies the signature of the token.',
  audience: 'The aud of the token has no audience of the issuer.',
  claims:
    'The token lacks a claim that the issuer requires, has a type that the issuer does not accept, or is an ID token. The test of the issuer names the claim.',
  not_yet_valid: 'The iat or nbf of the token is in the future.',
  too_old: 'The time since the iat of the token is longer than max_age_seconds of the issuer.',
  revoked_before: 'The tokens of the issuer that are as old as this one were revoked.',
  ambiguous: 'Two keys match the token equally, so it proves neither.',
  no_principal:
    'No key matches the token, and no user is linked to its subject. If the issuer creates users, the first request with the token does.',
  email_in_use: 'Another user has the email address of the token. Link the subject to a user, or change the address.',
  unknown: 'The credential matches no key or session that you may manage.',
} as const satisfies { readonly [Reason in UnprovedReason]?: string };

function unprovedText({ reason, key_id: key, user_id: user, time }: Unproved): string {
  const since = time === null ? '' : ` at ${time}`;
  switch (reason) {
    case 'revoked':
      return `The key ${key} was revoked${since}.`;
    case 'disabled':
      return `The key ${key} was disabled${since}. It works again when it is enabled.`;
    case 'expired':
      return `The key ${key} expired${since}.`;
    case 'rotated':
      return `The credential is an old secret of the key ${key}, which a rotation ended${since}. Use the new secret.`;
    case 'owner_deactivated':
      return `The user ${user} is deactivated, or suspended by its directory${since === '' ? '' : `, since${since.slice(3)}`}.`;
    case 'session_ended':
      return `The session of ${key === null ? `the user ${user}` : `the key ${key}`} ended${since}.`;
    default:
      return UNPROVED[reason];
  }
}
