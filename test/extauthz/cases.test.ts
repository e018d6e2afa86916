import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CredentialForm } from '../../src/domain/credential.ts';
import { createCheckHandler } from '../../src/extauthz/check-handler.ts';
import { type ExtAuthzServer, startExtAuthz } from '../../src/extauthz/server.ts';
import { makeApiKey } from '../../src/identity/api-keys.ts';
import {
  bodyOf,
  type CaseFile,
  compileWorld,
  type DecisionCase,
  identityOf,
  loadCases,
  snapshotOf,
} from '../support/world.ts';
import { connectTo, type TestClient } from './support/client.ts';
import { readAnswer } from './support/definition.ts';
import { checkRequest } from './support/requests.ts';
import { TRANSPORTS, type Transport } from './support/transports.ts';

/** The transport of the running tests. */
let transport: Transport['transport'] = 'built-in';

const { defaults, world, cases }: CaseFile = loadCases();
const compiled = compileWorld(world);

const keys = new Map(world.api_keys.map((key) => [key.id, makeApiKey()]));
const labels = new Map([...keys].map(([label, key]): [string, string] => [key.digest, label]));

/** Access tokens of these tests begin so, like JWTs. */
const TOKEN = 'eyJ.user.';

/** Returns the label that the cases have for the principal of a credential of these tests. */
function labelOf(credential: CredentialForm): string | null {
  switch (credential.kind) {
    case 'missing':
      return null;
    case 'api_key':
      return labels.get(credential.digest) ?? 'raw:unknown';
    case 'token':
      return credential.token.startsWith(TOKEN)
        ? credential.token.slice(TOKEN.length).replace('expired.', 'expired:')
        : 'raw:unknown';
    default:
      return 'header:malformed';
  }
}

function authorizationOf(as: string): string {
  if (as.startsWith('header:')) return as.slice(7);
  if (as.startsWith('raw:')) return `Bearer ${as.slice(4)}`;
  return `Bearer ${keys.get(as)?.text ?? `${TOKEN}${as.replace(':', '.')}`}`;
}

let nowMs = 0;
const gate = createCheckHandler({
  routes: compiled.routes,
  resolver: {
    resolve: (credential, tenant) => {
      const identity = identityOf(world, labelOf(credential), nowMs);
      return { identity, snapshot: snapshotOf(compiled, identity, tenant) };
    },
  },
  observer: { observe: () => undefined },
  trustedHops: 0,
  forwardCredential: false,
  now: () => nowMs,
});

let server: ExtAuthzServer;
let envoy: TestClient;
describe.each(TRANSPORTS)('on the transport $transport', (on) => {
  beforeAll(async () => {
    transport = on.transport;
    server = await startExtAuthz(gate, { listen: '127.0.0.1:0', transport });
    envoy = connectTo(server.address);
  });
  afterAll(async () => {
    envoy.close();
    await server.drain(100);
  });

  function requestOf(one: DecisionCase, form: 'map' | 'raw'): Buffer {
    const body = bodyOf(one);
    const headers: [string, string][] = [
      ...(one.as === null ? [] : [['authorization', authorizationOf(one.as)] satisfies [string, string]]),
      ...(one.tenant === undefined ? [] : [['x-tenant-id', one.tenant] satisfies [string, string]]),
      ...(body === undefined
        ? []
        : [['content-type', one.content_type ?? 'application/json'] satisfies [string, string]]),
      ...Object.entries(one.headers ?? {}),
    ];
    return checkRequest({
      method: one.method,
      path: one.path,
      headers,
      body: body ?? '',
      ip: one.ip ?? defaults.ip,
      form,
    });
  }

  describe('the decisions that the case file demands, for checks in the form of Envoy', () => {
    test.each(cases.flatMap((one) => (['map', 'raw'] as const).map((form) => [one.name, form, one] as const)))(
      '%s (%s)',
      async (_, form, one) => {
        nowMs = Date.parse(one.time ?? defaults.time);
        const answer = readAnswer(await envoy.check(requestOf(one, form)));
        expect(answer.code === 0).toBe(one.expect.code === 'allow');
        expect([answer.status ?? 200, answer.body['code'] ?? 'allow']).toEqual([one.expect.status, one.expect.code]);
      },
    );
  });
});
