/** Endpoints about oneself are for people: they need an access token, so that a key that leaked is no way into its owner's account. */

import { Refusal } from '../../domain/errors.ts';
import type { SessionId, TenantId, UserId } from '../../domain/ids.ts';
import type { Caller } from '../caller/caller.ts';

export interface OwnSession {
  readonly userId: UserId;
  /** The user's own, whichever the caller acts in. */
  readonly tenantId: TenantId;
  /** The session of the access token that the request carries. */
  readonly sessionId: SessionId;
}

/** @throws Refusal `insufficient_permission` for API keys */
export function ownSession({ principal }: Caller): OwnSession {
  if (principal.kind !== 'user' || principal.sessionId === undefined) {
    throw new Refusal(
      'insufficient_permission',
      'This request requires an access token, because an API key has no sessions and no password. Log in and send the access token.',
    );
  }
  return { userId: principal.id, tenantId: principal.tenantId, sessionId: principal.sessionId };
}
