/** Tokens of a real Kubernetes API server, as an API key of Postern. */

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbedded } from '../../src/store/embedded/embedded.ts';
import { ADMIN, decider, done, login, SECRET_KEY } from '../../test/server/support/client.ts';
import { freeAddress } from '../../test/support/ports.ts';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { type ApiServer, startApiServer } from '../lib/issuers/api-server.ts';
import { api, textOf } from '../lib/rolling/api.ts';
import { startServer } from '../lib/rolling/server.ts';
import { findKubeApiserver, KUBE_APISERVER_VERSION } from '../lib/tools/kube-apiserver.ts';

const ROOT = join(import.meta.dirname, '../..');
const AUDIENCE = 'postern';
const SUBJECT = 'system:serviceaccount:default:runner';
const CLAIMS = [{ claim: '/kubernetes.io/namespace', in: ['default'] }];
const FETCH_LIMIT_MS = 30_000;
const POLL_MS = 250;

/** Anonymous callers may read the keys of tokens. */
const DISCOVERY_FOR_ALL = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name: 'postern-issuer-discovery' },
  roleRef: {
    apiGroup: 'rbac.authorization.k8s.io',
    kind: 'ClusterRole',
    name: 'system:service-account-issuer-discovery',
  },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:unauthenticated' }],
};

const SERVICE_ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';

async function serviceAccount(kubernetes: ApiServer, name: string): Promise<(audience: string) => Promise<string>> {
  await kubernetes.call('POST', SERVICE_ACCOUNTS, { metadata: { name } });
  return async (audience) => {
    const spec = { audiences: [audience], expirationSeconds: 600 };
    const answer = await kubernetes.call('POST', `${SERVICE_ACCOUNTS}/${name}/token`, { spec });
    const status = typeof answer === 'object' && answer !== null && 'status' in answer ? answer.status : undefined;
    return textOf(status, 'token');
  };
}

async function acceptsServiceAccounts(): Promise<CheckOutcome> {
  const found = await findKubeApiserver();
  if (found.kind === 'missing') return { kind: 'unavailable', says: found.message };
  await using cleanUp = new AsyncDisposableStack();
  const kubernetes = cleanUp.use(await startApiServer(found.path));
  const folder = await mkdtemp(join(tmpdir(), 'postern-issuers-'));
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  // PostgreSQL runs as another user if this is root, and has to get to its data.
  await chmod(folder, 0o711);
  const database = await startEmbedded({ dataDir: join(folder, 'data'), durable: false });
  cleanUp.defer(database.stop);
  const place = { grpc: await freeAddress(), http: await freeAddress(), admin: await freeAddress() };
  const server = await startServer(ROOT, folder, place, {
    POSTERN_DATABASE_URL: database.url,
    POSTERN_SECRET_KEY: SECRET_KEY,
    POSTERN_BOOTSTRAP_PASSWORD: ADMIN.password,
    POSTERN_ISSUERS_ALLOWED_HOSTS: JSON.stringify([kubernetes.host]),
  });
  cleanUp.defer(() => server.kill());
  const gate = decider(place.grpc);
  cleanUp.defer(() => gate.close());
  const [runner, other] = [await serviceAccount(kubernetes, 'runner'), await serviceAccount(kubernetes, 'other')];
  const [token, foreign, unknown] = [await runner(AUDIENCE), await runner('vault'), await other(AUDIENCE)];

  const http = place.http;
  const administrator = await login(http);
  const jwks = await kubernetes.call('GET', '/openid/v1/jwks');
  const issuer = await api(http, 'POST', '/v1/iam/issuers', {
    token: administrator,
    body: { name: 'cluster', issuer: kubernetes.url, audiences: [AUDIENCE], jwks, ca: kubernetes.ca },
  });
  await done(http, 'POST', '/v1/iam/api-keys', {
    token: administrator,
    body: {
      description: 'the pods of a ServiceAccount',
      scopes: ['chat:read'],
      expires_in_days: 1,
      proof: { issuer: 'cluster', subject: SUBJECT, claims: CLAIMS },
    },
  });
  const decisions = async (): Promise<string> =>
    [await gate.decide(token), await gate.decide(foreign), await gate.decide(unknown)].join(', ');
  const expected = 'allow, invalid_credential, invalid_credential';
  const pasted = await decisions();
  if (pasted !== expected) return { kind: 'failed', says: `with pasted keys: ${pasted}\n${server.output()}` };

  await kubernetes.call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', DISCOVERY_FOR_ALL);
  await kubernetes.call('GET', '/openid/v1/jwks', undefined, 'anonymous');
  const path = `/v1/iam/issuers/${textOf(issuer, 'id')}`;
  await api(http, 'PUT', path, { token: administrator, body: { jwks: null } });
  await untilFetched(http, path, administrator);
  // The older token satisfies both versions of the issuer, because the keys are the same.
  const fetched = `${await decisions()}, ${await gate.decide(await runner(AUDIENCE))}`;
  return fetched === `${expected}, allow`
    ? { kind: 'ok', says: 'with pasted keys, and with keys that it fetches from the API server' }
    : { kind: 'failed', says: `with fetched keys: ${fetched}\n${server.output()}` };
}

/** Resolves when the keys were fetched. */
async function untilFetched(http: string, path: string, token: string): Promise<void> {
  let seen: unknown;
  for (const deadline = performance.now() + FETCH_LIMIT_MS; performance.now() < deadline; await sleep(POLL_MS)) {
    const { body } = await done(http, 'GET', path, { token });
    seen = body['keys'];
    if (typeof seen === 'object' && seen !== null && 'fetched_at' in seen && seen.fetched_at !== null) return;
  }
  throw new Error(`the keys were not fetched within ${FETCH_LIMIT_MS} ms: ${JSON.stringify(seen)}`);
}

export const checks: readonly Check[] = [
  {
    name: 'the gate accepts the token of a ServiceAccount as an API key without a secret',
    tool: { name: 'kube-apiserver', version: KUBE_APISERVER_VERSION },
    // No package brings the API server, and its build takes longer than a run of continuous integration may.
    optional: true,
    run: acceptsServiceAccounts,
  },
];
