/** What a process keeps of the discovery documents of providers. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { makeId } from '../../src/domain/ids.ts';
import { SsoProviders } from '../../src/iam/sso/provider.ts';
import type { SsoIssuer } from '../../src/iam/sso/queries.ts';
import { newState } from '../../src/iam/sso/state.ts';
import { tenantId } from '../store/seed.ts';
import { sendJson, startIssuer } from '../support/issuer.ts';

const PROVIDERS = 40;
const MIB = 1024 * 1024;

function heapBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  return process.memoryUsage().heapUsed;
}

test('a process keeps little of a large discovery document, so that a tenant with many issuers does not fill its heap', async () => {
  await using server = await startIssuer();
  server.answer = ({ url = '' }, response) => {
    const issuer = `${server.url}${url.replace('/.well-known/openid-configuration', '')}`;
    const endpoint = `${server.url}/authorize`;
    sendJson(response, { issuer, authorization_endpoint: endpoint, op_policy_uri: url + 'x'.repeat(MIB / 2 - 1_000) });
    return true;
  };
  const issuers = Array.from({ length: PROVIDERS }, (_, i): SsoIssuer => {
    const id = makeId('iss', i, new Uint8Array(10));
    return {
      ...{ id, tenantId: tenantId('acme'), name: id as never, issuer: `${server.url}/${i}`, version: '1' },
      ...{ sso: { client_id: 'console', scopes: ['openid'], label: 'Company', client_secret_set: false } },
      ...{ secretSealed: null, ca: null, users: null, requiredClaims: [], algorithms: ['ES256'], leewaySeconds: 5 },
      ...{ revokedBefore: null, usersSince: null, pastedKeys: null, keys: [], keysTriedMs: null },
    };
  });
  const providers = new SsoProviders({ allowedHosts: [server.host] });
  const before = heapBytes();
  for (const issuer of issuers) {
    const redirectUri = 'https://ai.example.com/callback';
    const state = newState({ issuerId: issuer.id, redirectUri, startedMs: 0, next: undefined });
    expect(await providers.authorizationUrl(issuer, state)).toContain(`${server.url}/authorize?`);
  }
  expect(heapBytes() - before).toBeLessThan(5 * MIB);
  expect(server.requests).toHaveLength(PROVIDERS);
});
