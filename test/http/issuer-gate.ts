/** A gate beside the API of a harness, for the credentials of issuers. */

import type { Principal } from '../../src/decision/model.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import type { CheckOutcome } from '../../src/telemetry/check-outcome.ts';
import { readAnswer } from '../extauthz/support/definition.ts';
import { checkRequest } from '../extauthz/support/requests.ts';
import type { Harness } from './harness.ts';

export interface Decided {
  /** `allow`, or the code of the denial with the logged reason: `invalid_credential audience`. */
  readonly outcome: string;
  readonly principal: Principal | undefined;
  /** The tenant in whose records the decision is; undefined: that of no tenant. */
  readonly tenant: string | undefined;
  /** The answer to the client, without the request's id. */
  readonly answer: string;
}

export type Gate = (
  token: string,
  options?: { readonly header?: string; readonly tenant?: string },
) => Promise<Decided>;

export function gateOf({ platformRoutes, live }: Harness): Gate {
  const seen: CheckOutcome[] = [];
  const handle = createCheckHandler({
    routes: platformRoutes,
    resolver: live,
    observer: { observe: (outcome) => void seen.push(outcome) },
    trustedHops: 0,
    forwardCredential: false,
  });
  return async (token, { header, tenant } = {}) => {
    const bytes = await handle(
      checkRequest({
        headers: [
          [header ?? 'authorization', header === undefined ? `Bearer ${token}` : token],
          ['content-type', 'application/json'],
          ...(tenant === undefined ? [] : [['x-tenant-id', tenant] as const]),
        ],
        body: JSON.stringify({ model: 'llama-3', messages: [] }),
      }),
    );
    const answer = readAnswer(bytes);
    const last = seen.pop();
    const decision = last?.decision;
    const reason = decision?.kind === 'deny' && decision.reason !== undefined ? ` ${decision.reason}` : '';
    return {
      outcome: `${last?.code ?? 'none'}${reason}`,
      principal: decision !== undefined && 'principal' in decision ? decision.principal : undefined,
      tenant: decision?.kind === 'deny' ? decision.tenant : undefined,
      answer: JSON.stringify([
        answer.status,
        { ...answer.body, request_id: undefined },
        answer.headers['www-authenticate'],
      ]),
    };
  };
}
