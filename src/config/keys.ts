/**
 * Every setting there is, one row each. Loading, errors, `check-config` and the documentation derive from this table; a setting that
 * is not here does not exist.
 */

import { passwordProblems } from '../identity/password-rules.ts';
import { FILE_PATH, type Key, optional, secret, setting } from './key.ts';
import { LDAP } from './ldap-keys.ts';
import { ldapDirectories } from './ldap-list.ts';
import {
  delay,
  duration,
  flag,
  integer,
  listenAddress,
  listOf,
  network,
  oneOf,
  origin,
  retention,
  scalar,
  size,
  tcpAddress,
  textLike,
  wholeSeconds,
} from './parsers.ts';
import { routeLines } from './routes.ts';

const IDENTIFIER = textLike('a text of 1 to 255 visible characters', /^[\x21-\x7e]{1,255}$/);
const EMAIL = textLike('an e-mail address', /^[^\s@]{1,64}@[^\s@]{1,189}$/);
const TENANT = textLike('the id of a tenant', /^[a-z0-9][a-z0-9-]{0,62}$/);
const PASSWORD = scalar('a password of 15 to 256 characters that is not a common one', (text) =>
  passwordProblems(text).length === 0 ? text : undefined,
);

const MIN_INSPECTED_BYTES = 1024;
const MAX_INSPECTED_BYTES = 16 * 1024 * 1024;
const INSPECTED_RATE = size('a size from 1 MiB to 1000 MiB, such as 64 MiB', 1024 * 1024, 1000 * 1024 * 1024);

export const KEYS = {
  httpListen: setting(
    'http.listen',
    tcpAddress,
    '127.0.0.1:8080',
    'Address of the HTTP listener, which serves logins and management.',
  ),
  httpTrustedProxies: setting(
    'http.trusted-proxies',
    listOf('a list of addresses and CIDR blocks', network),
    '[]',
    'Proxies in front of the HTTP listener whose X-Forwarded-For is trusted.',
  ),
  httpOrigins: setting(
    'http.origins',
    listOf('a list of origins', origin),
    '[]',
    'Origins that may use the session cookie; none = only the origin of the Host header.',
  ),
  httpMaxHeapMb: setting(
    'http.max-heap-mb',
    integer(64, 65_536),
    '768',
    'Maximum JavaScript heap of the API process, in MiB. A process that exceeds it is replaced.',
  ),
  grpcListen: setting(
    'grpc.listen',
    listenAddress,
    '127.0.0.1:9191',
    'Address of the gRPC listener for Envoy: host:port or unix:/path.',
  ),
  grpcTransport: setting(
    'grpc.transport',
    oneOf('built-in', 'http2'),
    'built-in',
    'HTTP/2 implementation of the gRPC listener: built-in, or http2 for the one of Node.js as a fallback.',
  ),
  grpcTlsCert: optional('grpc.tls.cert-file', FILE_PATH, 'Certificate chain of the gRPC listener, PEM.'),
  grpcTlsKey: optional('grpc.tls.key-file', FILE_PATH, 'Private key of that certificate, PEM.'),
  grpcTlsClientCa: optional(
    'grpc.tls.client-ca-file',
    FILE_PATH,
    "CA that must have issued the clients' certificates, PEM.",
  ),
  adminListen: setting(
    'admin.listen',
    tcpAddress,
    '127.0.0.1:9090',
    'Address of the admin listener, which serves health and metrics.',
  ),
  databaseUrl: secret(
    'database.url',
    textLike('postgresql://user:password@host:port/database', /^postgres(ql)?:\/\/[^\s\0]+$/),
    'URL of the PostgreSQL database; absent = an embedded PostgreSQL.',
  ),
  databaseMigrate: setting(
    'database.migrate',
    flag,
    'true',
    'false if only `postern migrate` may migrate; the server then waits until the schema is that of its version.',
  ),
  databaseNotifications: setting(
    'database.notifications',
    flag,
    'true',
    'false if a connection pooler cannot LISTEN; the server then polls for changes.',
  ),
  databasePoolSize: setting('database.pool-size', integer(2, 1000), '10', 'Maximum number of database connections.'),
  dataDir: setting(
    'data-dir',
    textLike('a directory', /^[^\0]+$/),
    './data',
    'Directory in which the embedded PostgreSQL keeps its data.',
  ),
  issuer: optional('issuer', IDENTIFIER, '`iss` of access tokens; absent = generated at the first start.'),
  audience: setting('audience', IDENTIFIER, 'platform', '`aud` of access tokens.'),
  tokenAccessTtl: setting('token.access-ttl', wholeSeconds, '3600s', 'Lifetime of an access token.'),
  tokenRefreshIdleTtl: setting('token.refresh-idle-ttl', duration, '7d', 'Lifetime of an unused refresh token.'),
  tokenRefreshTtl: setting('token.refresh-ttl', duration, '30d', 'Maximum lifetime of a session.'),
  secretKey: secret(
    'secret-key',
    textLike('at least 32 characters', /^[^\0]{32,1024}$/su),
    'Key that encrypts the stored signing keys; required with database.url.',
  ),
  secretKeyPrevious: secret(
    'secret-key-previous',
    textLike('at least 32 characters', /^[^\0]{32,1024}$/su),
    'The former secret-key, also accepted while servers change to the new one.',
  ),
  bootstrapEmail: setting(
    'bootstrap.email',
    EMAIL,
    'admin@localhost',
    'Email address of the first administrator, who is created if there is none.',
  ),
  bootstrapPassword: secret(
    'bootstrap.password',
    PASSWORD,
    'Password of the first administrator; absent = generated and shown once.',
  ),
  clientIpTrustedHops: setting(
    'client-ip.trusted-hops',
    integer(0, 32),
    '0',
    'Number of proxies in front of Envoy that append to X-Forwarded-For.',
  ),
  forwardCredential: setting(
    'forward-credential',
    flag,
    'false',
    'Whether the credential headers are forwarded to the service behind Envoy.',
  ),
  routes: setting('routes', routeLines, '[]', 'Routes in addition to the built-in ones.'),
  inspectMaxBody: setting(
    'inspect.max-body',
    size('a size from 1 KiB to 16 MiB, such as 1 MiB', MIN_INSPECTED_BYTES, MAX_INSPECTED_BYTES),
    '1 MiB',
    'Maximum size of a body that a decision reads. Envoy must send as much (see postern envoy config).',
  ),
  inspectCallerRate: setting(
    'inspect.caller-rate',
    INSPECTED_RATE,
    '32 MiB',
    'Bytes of bodies that each gate worker reads in a second for one API key, or for one user with an access token; beyond it, 429. Bodies up to 4 KiB do not count.',
  ),
  inspectTenantRate: setting(
    'inspect.tenant-rate',
    INSPECTED_RATE,
    '64 MiB',
    'The same for all keys and users of one tenant together. The default takes at most about half of a worker.',
  ),
  workers: setting(
    'workers',
    integer(1, 64),
    '1',
    'Number of gate workers: processes that answer checks, in addition to the API process.',
  ),
  cacheCredentials: setting(
    'cache.credentials',
    integer(1, 10_000_000),
    '200000',
    'Maximum number of credentials kept in memory.',
  ),
  cacheMaxStaleness: setting(
    'cache.max-staleness',
    duration,
    '300s',
    'How long cached data is used while the server cannot read changes from the database.',
  ),
  drainNotice: setting(
    'drain.notice',
    delay,
    '0',
    'How long a stopping server keeps answering checks after it reports that it is unhealthy, so that proxies can switch to other servers.',
  ),
  apiKeysRetention: setting(
    'api-keys.retention',
    retention,
    '90d',
    'How long an API key is kept after it was revoked or has expired; 0 = forever.',
  ),
  auditRetention: setting('audit.retention', retention, '0', 'How long audit rows are kept; 0 = forever.'),
  loginFailuresPerAccount: setting(
    'login.failures-per-account',
    integer(1, 1_000_000),
    '10',
    'Maximum failed logins of one account from one address in 15 minutes.',
  ),
  loginTotalAccountFailures: setting(
    'login.total-account-failures',
    integer(1, 1_000_000),
    '100',
    'Maximum failed logins of one account from all addresses together in 15 minutes. If login.failures-per-account is larger, its number applies. Addresses from which the account logged in during the last 30 days are exempt.',
  ),
  loginFailuresPerAddress: setting(
    'login.failures-per-address',
    integer(1, 1_000_000),
    '100',
    'Maximum failed logins per address in 15 minutes.',
  ),
  limitsWindow: setting('limits.window', duration, '60s', 'Length of the rate limit window; change it only in tests.'),
  limitsTokenEstimate: setting(
    'limits.token-estimate',
    integer(1, 1_000_000_000),
    '1024',
    'Tokens reserved for a request that names no maximum, if a token quota applies.',
  ),
  limitsFileEstimate: setting(
    'limits.file-estimate',
    integer(1, 1_000_000),
    '1000',
    'Tokens that the estimate of a prompt counts for each inline file: an image, audio or document in base64.',
  ),
  limitsReservationTtl: setting(
    'limits.reservation-ttl',
    duration,
    '30s',
    'How long the tokens or the collection of a request stay reserved without a report of Envoy. Envoy renews them while the request runs.',
  ),
  usageSource: setting(
    'usage.source',
    oneOf('envoy', 'events'),
    'envoy',
    "Source of the usage of requests: Envoy's access log, or events that the platform sends.",
  ),
  usageEventsTenants: setting(
    'usage.events-tenants',
    listOf('a list of tenant ids', TENANT),
    '[]',
    'Tenants whose usage always comes from events, regardless of usage.source.',
  ),
  // Secret because it may hold passwords.
  ldapList: {
    ...optional('ldap', ldapDirectories, 'Several directories: a list of maps of the ldap settings.'),
    secret: true,
  },
  ...LDAP,
  metricsTenantLabel: setting(
    'metrics.tenant-label',
    flag,
    'false',
    'Whether metrics name tenants: at most 100, those with the least quota left.',
  ),
  logLevel: setting(
    'log.level',
    oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    'info',
    'Minimum level of log lines.',
  ),
  logDecisionsTo: setting(
    'log.decisions.to',
    oneOf('stdout', 'file', 'otlp', 'off'),
    'stdout',
    'Target of the decision log: standard output, a file, an OpenTelemetry collector, or none.',
  ),
  logDecisionsFile: optional(
    'log.decisions.file',
    FILE_PATH,
    'File of the decision log. Required with log.decisions.to: file.',
  ),
  logDecisionsAllowOneIn: setting(
    'log.decisions.allow-one-in',
    integer(0, 1_000_000),
    '1000',
    'The decision log has one allow in this many; 1 = every allow, 0 = none. It has every denial.',
  ),
  otlpEndpoint: optional(
    'otlp.endpoint',
    textLike('an http or https URL, such as http://127.0.0.1:4318', /^https?:\/\/[^\s@?#\0]{1,1000}$/),
    'Base URL of an OpenTelemetry collector (OTLP/HTTP), for traces and for log.decisions.to: otlp.',
  ),
  otlpHeaders: secret(
    'otlp.headers',
    textLike(
      'name=value, separated by commas',
      /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,\r\n\0]*(?:,[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,\r\n\0]*)*$/,
    ),
    'Headers of each request to the collector, such as authorization=Bearer%20TOKEN; values are percent-encoded.',
  ),
  tracesSample: setting(
    'traces.sample',
    oneOf('off', 'parent', 'always'),
    'off',
    'Traces to otlp.endpoint: off, requests with a sampled traceparent (parent), or also requests without a traceparent (always).',
  ),
} as const;

export type { Key } from './key.ts';

export type AnyKey = Omit<Key<unknown>, 'parse' | 'fallback'>;

export const ALL_KEYS: readonly AnyKey[] = Object.values(KEYS);

/** `http.trusted-proxies` -> `POSTERN_HTTP_TRUSTED_PROXIES` */
export function envName(path: string): string {
  return `POSTERN_${path.replace(/[.-]/g, '_').toUpperCase()}`;
}
