/** Wires the tokens for the upstream to the configuration and to the signing keys. */

import type { Config } from '../config/config.ts';
import { createRandomPool } from '../extauthz/random-pool.ts';
import { UpstreamHeaders } from '../extauthz/upstream-headers.ts';
import { UpstreamTokens } from '../identity/upstream-token.ts';
import type { CredentialServices } from './credential-cache.ts';

/** Returns undefined if the configuration has no audience, and therefore no tokens for the upstream. */
export function upstreamHeaders(
  config: Config,
  { keys, tokens }: Pick<CredentialServices, 'keys' | 'tokens'>,
): UpstreamHeaders | undefined {
  const { audience, header, ttlMs, claims } = config.upstreamToken;
  if (audience === undefined) return undefined;
  return new UpstreamHeaders({
    tokens: new UpstreamTokens({
      keys,
      issuer: tokens.issuer,
      audience,
      accessAudience: config.audience,
      ttlSeconds: ttlMs / 1000,
      claims,
    }),
    header,
    isPublished: (kid) => keys.isPublished(kid),
    random: createRandomPool(),
  });
}
