/** Wires the login to the console by issuers. */

import type { AuthParts } from '../iam/auth/parts.ts';
import { refreshIssuerKeys } from '../iam/issuers/refresh-keys.ts';
import type { SsoSettings } from '../iam/sso/parts.ts';
import { SsoProviders } from '../iam/sso/provider.ts';
import { SourceRate } from '../iam/sso/source-rate.ts';
import { IssuerUserProvisioning } from '../iam/users/admit-issuer-user.ts';
import type { IssuerKeys } from './issuer-keys.ts';
import type { WiringContext } from './wiring-context.ts';

export function ssoSettings(
  { config }: WiringContext,
  keys: IssuerKeys,
  { db, random, now }: Pick<AuthParts, 'db' | 'random' | 'now'>,
): SsoSettings {
  return {
    only: config.console.sso.only,
    providers: new SsoProviders(keys.fetch),
    users: new IssuerUserProvisioning({ db, random, now }),
    starts: new SourceRate(),
    rejectedLogouts: new SourceRate(),
    refreshKeys: async (issuer) => {
      await refreshIssuerKeys(keys, issuer);
    },
  };
}
