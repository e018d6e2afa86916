import type { IssuersParts } from '../../src/credential-cache/maps.ts';
import { issuerTokenReader } from '../../src/identity/issuer-token-reader.ts';

/** Parts of a credential cache whose issuers have no users of their own. */
export const issuersParts: IssuersParts = {
  reader: issuerTokenReader,
  admission: { admit: async () => ({ kind: 'refused', reason: 'no_principal' }) },
  refresh: { request: () => undefined },
  maxKeyAgeMs: 86_400_000,
};
