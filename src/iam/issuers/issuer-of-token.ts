/** The issuer that a token belongs to, as the credential cache chooses it. */

import { byValueSince } from '../../credential-cache/issuer-values.ts';
import type { IssuerRecord } from '../../domain/records.ts';
import { checkIssuerToken, type UnverifiedToken } from '../../identity/issuer-token.ts';
import { loadIssuer } from '../../store/issuer-records.ts';
import type { Queryable } from '../../store/queryable.ts';

/**
 * Returns the issuer of a token; of several enabled ones, the first whose key signed it, otherwise the first. A disabled one
 * only if there is no enabled one.
 */
export async function issuerOfToken(q: Queryable, token: UnverifiedToken): Promise<IssuerRecord | undefined> {
  const found: IssuerRecord[] = [];
  for (const value of token.issuers) {
    const issuer = await loadIssuer(q, value);
    if (issuer !== undefined) found.push(issuer);
  }
  const enabled = found.filter((issuer) => issuer.enabled).sort(byValueSince);
  if (enabled.length > 1) {
    for (const issuer of enabled) {
      const checked = await checkIssuerToken(token, issuer);
      if (checked.kind === 'valid' || checked.signed) return issuer;
    }
  }
  return enabled[0] ?? found[0];
}
