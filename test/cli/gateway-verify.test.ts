/** `postern gateway verify`, through a real Envoy whose routes are checked or not, and with a kubeconfig file. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseArguments } from '../../src/cli/arguments.ts';

import { COMMANDS, optionsOf } from '../../src/cli/commands.ts';
import { gatewayVerifyCommand } from '../../src/cli/gateway-verify.ts';
import { type Harness, startHarness } from '../http/harness.ts';
import { bootstrap, cluster, ROUTER } from '../mesh/support/bootstrap.ts';
import { type CaseStand, startCaseStand } from '../support/case-stand.ts';
import { makeAuthority } from '../support/certificates.ts';
import { type Edge, startConfig } from '../support/envoy.ts';

const EXT_AUTHZ = 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3';
const CHECK = 'envoy.filters.http.ext_authz';
const [COMMAND] = COMMANDS.filter(({ words }) => words.join(' ') === 'gateway verify');

let stand: CaseStand;
let api: Harness;
let edge: Edge;
let folder: string;

/** A route of Envoy: to the platform behind the check, or an answer without it. */
function envoyRoute(match: object, open?: object): object {
  if (open === undefined) return { match, route: { cluster: 'upstream' } };
  const off = { [CHECK]: { '@type': `${EXT_AUTHZ}.ExtAuthzPerRoute`, disabled: true } };
  return { match, direct_response: open, typed_per_filter_config: off };
}

beforeAll(async () => {
  stand = await startCaseStand();
  api = await startHarness();
  folder = await mkdtemp(join(tmpdir(), 'postern-gateway-'));
  const ofTeam = [{ name: 'x-team', string_match: { exact: 'red-and-secret' } }];
  edge = await startConfig(
    bootstrap(
      {
        route_config: {
          virtual_hosts: [
            {
              name: 'chat',
              domains: ['chat.example.com'],
              routes: [
                envoyRoute({ path: '/healthz' }, { status: 200 }),
                envoyRoute({ prefix: '/v1/models', headers: ofTeam }),
                envoyRoute({ prefix: '/mcp' }, { status: 401 }),
                ...['/v1/iam', '/openapi.json'].map((own) => ({ match: { prefix: own }, route: { cluster: 'api' } })),
                envoyRoute({ prefix: '/' }),
              ],
            },
            { name: 'files', domains: ['*.files.example.com'], routes: [envoyRoute({ prefix: '/v1/files' })] },
          ],
        },
        http_filters: [
          {
            name: CHECK,
            typed_config: {
              '@type': `${EXT_AUTHZ}.ExtAuthz`,
              transport_api_version: 'V3',
              grpc_service: { envoy_grpc: { cluster_name: 'postern' }, timeout: '5s' },
              status_on_error: { code: 'ServiceUnavailable' },
            },
          },
          ROUTER,
        ],
      },
      [
        cluster('postern', stand.grpc, true),
        cluster('upstream', stand.upstream),
        cluster('api', new URL(api.url).host),
      ],
    ),
  );
});

afterAll(async () => {
  await edge?.stop();
  await api?.close();
  await stand?.close();
  await rm(folder, { recursive: true, force: true });
});

const GATEWAY_API = 'gateway.networking.k8s.io/v1';
const GATEWAY = {
  apiVersion: GATEWAY_API,
  kind: 'Gateway',
  metadata: { name: 'ai', namespace: 'ai' },
  spec: { listeners: [{ name: 'http', protocol: 'HTTP', port: 80, allowedRoutes: { namespaces: { from: 'All' } } }] },
};

function route(name: string, hostname: string, match: object, kind = 'HTTPRoute'): object {
  return {
    apiVersion: GATEWAY_API,
    kind,
    metadata: { name, namespace: 'ai' },
    spec: { parentRefs: [{ name: 'ai' }], hostnames: [hostname], rules: [{ matches: [match] }] },
  };
}

const prefix = (value: string): object => ({ path: { type: 'PathPrefix', value } });

const GUARDED = [
  route('chat', 'chat.example.com', prefix('/')),
  route('models', 'chat.example.com', {
    ...prefix('/v1/models'),
    headers: [{ name: 'X-Team', value: 'red-and-secret' }],
  }),
  route('files', '*.files.example.com', { ...prefix('/v1/files'), method: 'GET' }),
];
const OPEN = [
  route('health', 'chat.example.com', { path: { type: 'Exact', value: '/healthz' } }),
  route('mcp', 'chat.example.com', prefix('/mcp')),
];

interface Ran {
  readonly code: number;
  readonly lines: readonly string[];
}

async function verify(...argv: readonly string[]): Promise<Ran> {
  const lines: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    lines.push(String(text).trimEnd());
    return true;
  });
  try {
    const args = parseArguments(argv, optionsOf(COMMAND ?? expect.fail('no such command')), true);
    return { code: await gatewayVerifyCommand(args), lines };
  } finally {
    write.mockRestore();
  }
}

async function dump(name: string, items: readonly unknown[]): Promise<string> {
  const file = join(folder, `${name}.json`);
  await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  return file;
}

const address = (): string => `127.0.0.1:${edge.port}`;

describe('with a dump', () => {
  it('lists exactly the two of five routes that let pass a request without a credential, and exits with 1', async () => {
    const file = await dump('five', [GATEWAY, ...GUARDED, ...OPEN]);
    const { code, lines } = await verify('--dump', file, '--address', address());
    expect(lines).toEqual([
      `ai/ai http  HTTPRoute ai/health rule 1 match 1: GET http://chat.example.com/healthz at ${address()}: 200`,
      `ai/ai http  HTTPRoute ai/mcp rule 1 match 1: GET http://chat.example.com/mcp/postern-verify at ${address()}: 401, but not by Postern`,
      '3 of 5 requests were answered 401 by Postern, 0 matches are public.',
    ]);
    expect(code).toBe(1);
  });

  it('exits with 0 if Postern answers every request, and if those that it does not are public', async () => {
    const file = await dump('guarded', [GATEWAY, ...GUARDED, ...OPEN]);
    const all = ['--dump', file, '--address', `ai/ai/http=${address()}`];
    expect(await verify(...all, '--public', '/healthz,ai/mcp', 'ai/ai')).toEqual({
      code: 0,
      lines: ['3 of 3 requests were answered 401 by Postern, 2 matches are public.'],
    });
  });

  it('lists a path that every request may reach, if its route leads to the platform and not to Postern', async () => {
    const own = [
      route('iam', 'chat.example.com', prefix('/v1/iam')),
      route('openapi', 'chat.example.com', { path: { type: 'Exact', value: '/openapi.json' } }),
    ];
    const to = ['--address', address()];
    expect(await verify('--dump', await dump('own', [GATEWAY, ...GUARDED, ...own]), ...to)).toEqual({
      code: 0,
      lines: [
        '3 of 3 requests were answered 401 by Postern, 2 of 2 for its own paths were answered by its API, 0 matches are public.',
      ],
    });
    // As the guide's HTTPRoute beside that of the chart: one of the two gets no request.
    const twice = [...own, route('iam-too', 'chat.example.com', prefix('/v1/iam'))];
    expect(await verify('--dump', await dump('twice', [GATEWAY, ...GUARDED, ...twice]), ...to)).toEqual({
      code: 0,
      lines: [
        '3 of 3 requests were answered 401 by Postern, 3 of 3 for its own paths were answered by its API, 0 matches are public.',
      ],
    });
    const wrong = route('console', 'chat.example.com', prefix('/console'));
    const file = await dump('own-wrong', [GATEWAY, ...GUARDED, ...own, wrong]);
    expect(await verify('--dump', file, ...to)).toEqual({
      code: 1,
      lines: [
        expect.stringMatching(
          /^ai\/ai http {2}HTTPRoute ai\/console rule 1 match 1: GET \S+\/console\/postern-verify at \S+: 200, but not by Postern's API$/,
        ),
        '3 of 3 requests were answered 401 by Postern, 2 of 3 for its own paths were answered by its API, 0 matches are public.',
      ],
    });
    expect((await verify('--dump', file, ...to, '--public', '/console*')).lines).toEqual([
      '3 of 3 requests were answered 401 by Postern, 2 of 2 for its own paths were answered by its API, 1 matches are public.',
    ]);
  });

  it('shows no value of a header, and no character that a terminal obeys', async () => {
    const wrong = route('gone\u001b[2J', 'chat.example.com', {
      path: { type: 'Exact', value: '/healthz' },
      headers: [{ name: 'x-team', value: 'red-and-secret' }],
    });
    const { lines } = await verify('--dump', await dump('secret', [GATEWAY, wrong]), '--address', address());
    expect(lines.join()).not.toContain('secret');
    expect(lines[0]).toContain('ai/gone\\u{1b}[2J rule 1 match 1: GET http://chat.example.com/healthz with x-team at');
  });

  it('lists a Gateway that cannot be reached, one without an address, and an expression that it cannot satisfy', async () => {
    const hard = route('hard', 'chat.example.com', { path: { type: 'RegularExpression', value: '/v1/(a|b){3}' } });
    const file = await dump('hard', [GATEWAY, GUARDED[0], hard]);
    const refused = await verify('--dump', file, '--address', '127.0.0.1:1', '--timeout', '5s');
    expect(refused.code).toBe(1);
    expect(refused.lines.join()).toContain('no answer (ECONNREFUSED)');
    expect(refused.lines.join()).toContain('HTTPRoute ai/hard rule 1 match 1: no request follows');
    expect((await verify('--dump', file)).lines[0]).toContain('the Gateway has no address');
  });

  it('lists policies that remove the check, and routes of connections, also if no request is open', async () => {
    const target = { group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', name: 'chat' };
    const policy = (name: string, spec: object): object => ({
      apiVersion: 'gateway.envoyproxy.io/v1alpha1',
      kind: 'SecurityPolicy',
      metadata: { name, namespace: 'ai' },
      spec,
    });
    const extAuth = { grpc: { backendRefs: [{ name: 'postern-grpc' }] } };
    const file = await dump('policies', [
      GATEWAY,
      GUARDED[0],
      route('raw', 'chat.example.com', {}, 'TCPRoute'),
      policy('postern', { targetRefs: [{ ...target, kind: 'Gateway', name: 'ai' }], extAuth }),
      policy('cors', { targetRefs: [target], cors: {} }),
      policy('merged', { targetRefs: [target], mergeType: 'StrategicMerge' }),
      policy('selected', { targetSelectors: [{ kind: 'HTTPRoute', matchLabels: {} }] }),
      policy('weak', { targetRef: target, extAuth: { ...extAuth, failOpen: true } }),
      policy('elsewhere', { targetRefs: [{ ...target, name: 'another' }] }),
    ]);
    const { code, lines } = await verify('--dump', file, '--address', address());
    const removes = 'it has neither extAuth nor mergeType, so it removes the check';
    expect(lines).toEqual([
      'ai/ai  TCPRoute ai/raw: no check applies to its connections',
      `SecurityPolicy ai/cors, of HTTPRoute chat: ${removes}`,
      `SecurityPolicy ai/selected, of each HTTPRoute that it selects: ${removes}`,
      'SecurityPolicy ai/weak, of HTTPRoute chat: failOpen allows requests while Postern does not answer',
      '1 of 1 requests were answered 401 by Postern, 0 matches are public, 4 policies or routes have no check.',
    ]);
    expect(code).toBe(1);
  });

  it('reaches an HTTPS listener by the name of the host, and only with its CA or without verification', async () => {
    const authority = makeAuthority();
    const { certPem, keyPem } = authority.issue('chat.example.com');
    const names: unknown[] = [];
    const challenge = { 'www-authenticate': 'Bearer realm="postern"' };
    const gateway = createTlsServer({ cert: certPem, key: keyPem }, ({ headers, socket }, response) => {
      names.push([headers.host, Reflect.get(socket, 'servername'), headers.authorization]);
      response.writeHead(401, challenge).end();
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void gateway.close());
    const bound = gateway.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    const listeners = [{ name: 'https', protocol: 'HTTPS', port: 443, hostname: '*.example.com' }];
    const file = await dump('https', [{ ...GATEWAY, spec: { listeners } }, GUARDED[0]]);
    await writeFile(join(folder, 'ca.crt'), authority.certPem);
    const all = ['--dump', file, '--address', `127.0.0.1:${port}`];
    const { code, lines } = await verify(...all);
    expect([code, lines[0]]).toEqual([1, expect.stringContaining('no answer (UNABLE_TO_VERIFY_LEAF_SIGNATURE)')]);
    expect((await verify(...all, '--ca', join(folder, 'ca.crt'))).code).toBe(0);
    expect((await verify(...all, '--insecure')).code).toBe(0);
    expect(names).toEqual(Array.from({ length: 2 }, () => ['chat.example.com', 'chat.example.com', undefined]));
  });

  it('refuses a dump that proves nothing or cannot be read, without showing it', async () => {
    await expect(verify('--dump', await dump('empty', [GATEWAY]))).rejects.toThrow('There is no request to send');
    const broken = join(folder, 'broken.yaml');
    await writeFile(broken, 'token: [hidden');
    await expect(verify('--dump', broken)).rejects.toThrow(/not JSON or YAML(?!.*hidden)/);
    await expect(verify('--dump', join(folder, 'absent'))).rejects.toThrow('the file does not exist');
    const odd = { ...GATEWAY, spec: { listeners: 'hidden' } };
    await expect(verify('--dump', await dump('odd', [odd]))).rejects.toThrow(
      'Gateway ai/ai is not one that this version can read: /spec/listeners.',
    );
    const file = await dump('words', [GATEWAY]);
    await expect(verify('--dump', file, 'ai/other')).rejects.toThrow('There is no Gateway ai/other.');
    await expect(verify('--dump', file, '--address', 'nowhere')).rejects.toThrow('--address: expected HOST:PORT');
    await expect(verify('--dump', file, '--context', 'a')).rejects.toThrow('--dump excludes');
  });

  it('reads YAML with several documents', async () => {
    const file = join(folder, 'documents.yaml');
    await writeFile(file, [GATEWAY, ...GUARDED].map((one) => JSON.stringify(one)).join('\n---\n'));
    const text = `# kubectl get -o yaml\n---\n${[GATEWAY, ...GUARDED].map((one) => JSON.stringify(one)).join('\n---\n')}`;
    await writeFile(file, text);
    expect((await verify('--dump', file, '--address', address())).code).toBe(0);
  });
});

describe('with a kubeconfig file', () => {
  /** Lists one object a page, only over TLS and only to a client that proves itself. */
  async function startApi(tls: 'tls' | 'clear'): Promise<{ readonly config: (user: object) => Promise<string> }> {
    const authority = makeAuthority();
    const server = authority.issue('localhost');
    const client = authority.issue('reader');
    const listener: RequestListener = (request, response) => {
      const url = new URL(request.url ?? '', 'http://api');
      const kinds = { gateways: [GATEWAY], httproutes: GUARDED };
      const [name] = Object.keys(kinds).filter((plural) => url.pathname.endsWith(`/v1/${plural}`));
      if (tls === 'clear' && request.headers.authorization !== 'Bearer reader') response.writeHead(403).end();
      else if (name !== 'gateways' && name !== 'httproutes') response.writeHead(404).end();
      else {
        const from = Number(url.searchParams.get('continue') ?? 0);
        const next = from + 1 < kinds[name].length ? { continue: String(from + 1) } : {};
        response.end(JSON.stringify({ metadata: next, items: kinds[name].slice(from, from + 1) }));
      }
    };
    const options = { cert: server.certPem, key: server.keyPem, ca: authority.certPem, requestCert: true };
    const api = tls === 'clear' ? createServer(listener) : createTlsServer(options, listener);
    await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void api.close());
    const bound = api.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    const cluster =
      tls === 'clear'
        ? { server: `http://127.0.0.1:${port}` }
        : {
            server: `https://127.0.0.1:${port}`,
            'tls-server-name': 'localhost',
            'certificate-authority-data': Buffer.from(authority.certPem).toString('base64'),
          };
    await writeFile(join(folder, 'client.crt'), client.certPem);
    return {
      config: async (user) => {
        const file = join(folder, 'kubeconfig');
        const key = { 'client-key-data': Buffer.from(client.keyPem).toString('base64') };
        const content = {
          'current-context': 'ai',
          contexts: [{ name: 'ai', context: { cluster: 'ai', user: 'reader' } }],
          clusters: [{ name: 'ai', cluster }],
          users: [{ name: 'reader', user: tls === 'tls' ? { ...user, ...key } : user }],
        };
        await writeFile(file, JSON.stringify(content));
        return file;
      },
    };
  }

  it('reads every page of the cluster’s routes with a token', async () => {
    const api = await startApi('clear');
    await writeFile(join(folder, 'token'), 'reader\n');
    const file = await api.config({ tokenFile: 'token' });
    expect(await verify('--kubeconfig', file, '--address', address())).toMatchObject({
      code: 0,
      lines: ['3 of 3 requests were answered 401 by Postern, 0 matches are public.'],
    });
    expect((await verify('--kubeconfig', await api.config({ token: 'reader' }), '--address', address())).code).toBe(0);
    const other = await api.config({ token: 'other' });
    await expect(verify('--kubeconfig', other)).rejects.toThrow('answers 403 to the list of gateways');
    await expect(verify('--kubeconfig', other, '--context', 'none')).rejects.toThrow('does not have this context');
  });

  it('reads them with a client certificate, over TLS that its CA proves', async () => {
    const api = await startApi('tls');
    const file = await api.config({ 'client-certificate': 'client.crt' });
    expect((await verify('--kubeconfig', file, '--address', address())).code).toBe(0);
  });

  it('advises a dump for a user that a program proves', async () => {
    const api = await startApi('clear');
    const file = await api.config({ exec: { command: 'hidden' } });
    await expect(verify('--kubeconfig', file)).rejects.toThrow(/does not support. Use a dump: kubectl get(?!.*hidden)/);
  });
});
