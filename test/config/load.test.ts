import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { renderConfig } from '../../src/config/render.ts';
import { envName } from '../../src/config/setting.ts';
import { ALL_SETTINGS } from '../../src/config/settings.ts';
import { load, loaded, problemsOf, withDirectory } from './support/load.ts';

const SECRET = 'a secret key of more than 32 characters';
const FULL = `
http:
  listen: 0.0.0.0:8443
  trusted-proxies: [10.0.0.0/8, "2001:db8::1"]
  origins:
    - https://console.example.com
grpc.listen: unix:/run/postern.sock
admin: {listen: "[::1]:9999"}
database: {url: "postgresql://postern:hunter22@db/postern", notifications: false, pool-size: 20}
secret-key: ${SECRET}
issuer: https://postern.example.com
token: {access-ttl: 15m, refresh-idle-ttl: 1d, refresh-ttl: 2d}
bootstrap: {email: Root@Example.com, password: a winter morning in Uppsala}
client-ip: {trusted-hops: 2}
forward-credential: true
workers: 2
cache: {credentials: 1000, max-staleness: 60s}
audit: {retention: 400d}
login: {failures-per-account: 5, total-account-failures: 20, failures-per-address: 50}
log: {level: debug}
routes:
  - {method: GET, path: "/v1/things/{thing}", permission: things:read}
`;

describe('the configuration', () => {
  it('has its documented defaults when nothing is given', () => {
    const { config, secrets } = loaded(loadConfig({ env: {} }));
    expect(config).toEqual({
      http: { listen: { kind: 'tcp', host: '127.0.0.1', port: 8080 }, trustedProxies: [], origins: [], maxHeapMb: 768 },
      grpc: { listen: { kind: 'tcp', host: '127.0.0.1', port: 9191 }, transport: 'built-in', tls: undefined },
      admin: { listen: { kind: 'tcp', host: '127.0.0.1', port: 9090 } },
      database: { migrate: true, notifications: true, poolSize: 10 },
      dataDir: './data',
      issuer: undefined,
      audience: 'platform',
      token: { accessTtlMs: 3_600_000, refreshIdleTtlMs: 604_800_000, refreshTtlMs: 2_592_000_000 },
      upstreamToken: {
        audience: undefined,
        header: 'x-postern-token',
        ttlMs: 300_000,
        claims: ['roles', 'scope', 'client_id', 'act'],
      },
      bootstrap: { email: 'admin@localhost' },
      clientIp: { trustedHops: 0 },
      forwardCredential: false,
      routes: [],
      inspect: { maxBodyBytes: 1_048_576, callerRate: 33_554_432, tenantRate: 67_108_864 },
      workers: 1,
      cache: { credentials: 200_000, maxStalenessMs: 300_000 },
      drain: { noticeMs: 0 },
      apiKeys: { retentionMs: 7_776_000_000 },
      audit: { retentionMs: undefined },
      login: { failuresPerAccount: 10, totalAccountFailures: 100, failuresPerAddress: 100 },
      issuers: { maxStalenessMs: 86_400_000, allowedHosts: [] },
      console: { sso: { only: false } },
      metrics: { tenantLabel: false },
      limits: {
        windowMs: 60_000,
        tokenEstimate: 1024,
        fileEstimate: 1000,
        budgetHeader: false,
        reservationTtlMs: 30_000,
      },
      trial: { enabled: true },
      prices: { currency: 'USD' },
      webhooks: { allowedHosts: [] },
      usage: { source: 'envoy', eventsTenants: [] },
      directories: [],
      log: { level: 'info', decisions: { to: 'stdout', file: undefined, allowOneIn: 1000 } },
      otlp: { endpoint: undefined },
      traces: { sample: 'off' },
    });
    expect(secrets).toEqual({
      databaseUrl: undefined,
      secretKey: undefined,
      bootstrapPassword: undefined,
      otlpHeaders: undefined,
      directoryPasswords: {},
    });
  });

  it('is read from one YAML file, nested or with dots in the keys', () => {
    const { config, secrets } = loaded(load(FULL));
    expect(config).toMatchObject({
      http: {
        listen: { host: '0.0.0.0', port: 8443 },
        trustedProxies: ['10.0.0.0/8', '2001:db8::1'],
        origins: ['https://console.example.com'],
      },
      grpc: { listen: { kind: 'unix', path: '/run/postern.sock' } },
      admin: { listen: { kind: 'tcp', host: '::1', port: 9999 } },
      database: { migrate: true, notifications: false, poolSize: 20 },
      issuer: 'https://postern.example.com',
      token: { accessTtlMs: 900_000, refreshIdleTtlMs: 86_400_000, refreshTtlMs: 172_800_000 },
      bootstrap: { email: 'root@example.com' },
      clientIp: { trustedHops: 2 },
      forwardCredential: true,
      workers: 2,
      cache: { credentials: 1000, maxStalenessMs: 60_000 },
      apiKeys: { retentionMs: 7_776_000_000 },
      audit: { retentionMs: 34_560_000_000 },
      login: { failuresPerAccount: 5, totalAccountFailures: 20, failuresPerAddress: 50 },
      log: { level: 'debug' },
      routes: [{ method: 'GET', template: '/v1/things/{thing}' }],
    });
    expect(secrets).toMatchObject({ secretKey: SECRET, bootstrapPassword: 'a winter morning in Uppsala' });
    expect(secrets.databaseUrl).toBe('postgresql://postern:hunter22@db/postern');
  });

  it('takes every value from the environment instead, lists as JSON, and the environment wins', () => {
    const { config } = loaded(
      load(FULL, {
        POSTERN_HTTP_LISTEN: 'localhost:1',
        POSTERN_HTTP_TRUSTED_PROXIES: '["192.0.2.1"]',
        POSTERN_CLIENT_IP_TRUSTED_HOPS: '0',
        POSTERN_ROUTES: '[{"method":"POST","path":"/v1/others","permission":"others:write"}]',
        POSTERN_ISSUER: '',
      }),
    );
    expect(config).toMatchObject({
      http: { listen: { host: 'localhost', port: 1 }, trustedProxies: ['192.0.2.1'] },
      clientIp: { trustedHops: 0 },
      routes: [{ method: 'POST', template: '/v1/others' }],
      issuer: 'https://postern.example.com',
    });
  });

  it('has the hosts of issuers as the parser of URLs writes them, with their port', () => {
    const hosts = [
      'Keycloak.Internal',
      'kubernetes.default.svc:443',
      'key_cloak:8080',
      '127.1',
      '[FD00:0::1]',
      '[::1]:8443',
    ];
    const { config } = loaded(load(`issuers.allowed-hosts: ${JSON.stringify(hosts)}`));
    expect(config.issuers.allowedHosts).toEqual([
      ...['keycloak.internal', 'kubernetes.default.svc:443', 'key_cloak:8080', '127.0.0.1', '[fd00::1]', '[::1]:8443'],
    ]);
  });

  it('cannot be changed once loaded', () => {
    const { config, secrets } = loaded(load(FULL));
    expect([config, config.http, config.http.trustedProxies, config.routes, secrets].every(Object.isFrozen)).toBe(true);
  });

  it('gives every setting a variable of its own', () => {
    const names = ALL_SETTINGS.flatMap((key) =>
      key.secret ? [envName(key.path), `${envName(key.path)}_FILE`] : [envName(key.path)],
    );
    expect(new Set(names).size).toBe(names.length);
    expect(envName('http.trusted-proxies')).toBe('POSTERN_HTTP_TRUSTED_PROXIES');
  });

  it('ignores an empty file, empty sections and what belongs to the command line or to Kubernetes', () => {
    const env = {
      POSTERN_CONFIG: 'x',
      POSTERN_DEMO_ISSUER_LISTEN: 'x',
      POSTERN_DEMO_LISTEN: 'x',
      POSTERN_ENVOY: 'x',
      POSTERN_SERVICE_HOST: '10.0.0.1',
      POSTERN_GRPC_SERVICE_PORT_HTTP: '9191',
      POSTERN_PORT: 'tcp://10.0.0.1:8080',
      POSTERN_PORT_8080_TCP_ADDR: '10.0.0.1',
      PATH: '/bin',
    };
    expect(problemsOf(load('', env))).toEqual([]);
    expect(problemsOf(load('http:\ngrpc: {}\nissuer: ~\n'))).toEqual([]);
  });

  it('takes secrets from files, without the line end', () => {
    withDirectory((directory) => {
      const file = join(directory, 'key');
      writeFileSync(file, `${SECRET}\n`);
      expect(loaded(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: file } })).secrets.secretKey).toBe(SECRET);
      expect(problemsOf(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: file, POSTERN_SECRET_KEY: SECRET } }))).toEqual([
        'POSTERN_SECRET_KEY_FILE: set this or POSTERN_SECRET_KEY, not both',
      ]);
      expect(problemsOf(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: join(directory, 'none') } }))).toEqual([
        'POSTERN_SECRET_KEY_FILE: expected a readable file of at most 64 KiB in UTF-8',
      ]);
    });
  });

  it('takes no secret from a file that is not UTF-8, whose wrong bytes would all become the same character', () => {
    withDirectory((directory) => {
      const file = join(directory, 'key');
      writeFileSync(file, Buffer.alloc(64, 0xe9));
      expect(problemsOf(loadConfig({ env: { POSTERN_SECRET_KEY_FILE: file } }))).toEqual([
        'POSTERN_SECRET_KEY_FILE: expected a readable file of at most 64 KiB in UTF-8',
      ]);
    });
  });

  it('keeps the digits of a secret that looks like a number', () => {
    const digits = '31415926535897932384626433832795028841';
    expect(loaded(load(`secret-key: ${digits}`)).secrets.secretKey).toBe(digits);
  });

  it('takes texts that look like numbers as they are written, also in lists and maps', () => {
    expect(loaded(load('usage: {events-tenants: [007, 1e5, 0x10]}')).config.usage.eventsTenants).toEqual([
      '007',
      '1e5',
      '0x10',
    ]);
    const ldap = `ldap: [{enabled: true, url: ldap://a, base-dn: dc=x, bind-dn: cn=x, bind-password: 00112233, tenant-id: 1e2,
      group-tenant-mapping: {"cn=a,dc=x": 0123}}]`;
    const { config, secrets } = loaded(load(ldap));
    expect(Object.values(secrets.directoryPasswords)).toEqual(['00112233']);
    expect(config.directories[0]).toMatchObject({ tenantId: '1e2', groupTenants: new Map([['cn=a,dc=x', '0123']]) });
  });

  it('takes a secret from the environment also if the file names a file for it that cannot be read', () => {
    const env = { POSTERN_SECRET_KEY: SECRET };
    expect(loaded(load('secret-key-file: /no/such/file', env)).secrets.secretKey).toBe(SECRET);
  });

  it('reads the files of TLS at the start, and checks that key and certificate belong together', () => {
    withDirectory((directory) => {
      const [key, cert, other] = ['key.pem', 'cert.pem', 'other.pem'].map((name) => join(directory, name));
      const openssl = (...args: readonly string[]) => execFileSync('openssl', args, { stdio: 'ignore' });
      const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
      openssl('req', '-x509', ...newKey, '-subj', '/CN=postern', '-keyout', `${key}`, '-out', `${cert}`);
      openssl('ecparam', '-genkey', '-name', 'prime256v1', '-noout', '-out', `${other}`);
      const env = { POSTERN_GRPC_TLS_CERT_FILE: `${cert}`, POSTERN_GRPC_TLS_KEY_FILE: `${key}` };
      const { config } = loaded(loadConfig({ env }));
      expect(config.grpc.tls).toEqual({ certFile: cert, keyFile: key, clientCaFile: undefined });
      expect(problemsOf(loadConfig({ env: { ...env, POSTERN_GRPC_TLS_KEY_FILE: `${other}` } }))).toEqual([
        'POSTERN_GRPC_TLS_KEY_FILE: expected the private key of the certificate in grpc.tls.cert-file',
      ]);
      expect(problemsOf(loadConfig({ env: { ...env, POSTERN_GRPC_TLS_CLIENT_CA_FILE: `${key}` } }))).toEqual([
        `POSTERN_GRPC_TLS_CLIENT_CA_FILE: expected a PEM certificate in ${key}`,
      ]);
      expect(problemsOf(loadConfig({ env: { POSTERN_GRPC_TLS_CERT_FILE: `${cert}` } }))).toEqual([
        'grpc.tls.key-file: required with the other grpc.tls settings',
      ]);
    });
  });

  it('with the removed transport http2 names the transport to use instead', () => {
    expect(problemsOf(load('', { POSTERN_GRPC_TRANSPORT: 'http2' }))).toEqual([
      'POSTERN_GRPC_TRANSPORT: http2 is no longer a value; use grpc-js instead',
    ]);
    expect(loaded(load('grpc.transport: grpc-js\n')).config.grpc.transport).toBe('grpc-js');
  });

  it('is shown with the origin of every value, and without a secret', () => {
    const result = load(FULL, { POSTERN_WORKERS: '4' });
    const text = result.kind === 'config' ? renderConfig(result.settings) : '';
    expect(text).toMatch(/^workers: 4 +# POSTERN_WORKERS$/m);
    expect(text).toMatch(/^grpc\.listen: unix:\/run\/postern\.sock +# .*postern\.yaml:7$/m);
    expect(text).toMatch(/^audience: platform +# default$/m);
    expect(text).toMatch(/^secret-key: \*{8} +# /m);
    expect(text.split('\n')).toHaveLength(ALL_SETTINGS.length + 1);
    for (const secret of [SECRET, 'hunter22', 'Uppsala']) {
      expect(text).not.toContain(secret);
    }
  });
});
