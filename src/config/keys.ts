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

export const KEYS = {
  httpListen: setting('http.listen', tcpAddress, '127.0.0.1:8080', 'Where logins and management are served.'),
  httpTrustedProxies: setting(
    'http.trusted-proxies',
    listOf('a list of addresses and CIDR blocks', network),
    '[]',
    'Proxies before the HTTP listener whose X-Forwarded-For is believed.',
  ),
  httpOrigins: setting(
    'http.origins',
    listOf('a list of origins', origin),
    '[]',
    'Origins that may use the session cookie; none = that of the Host header.',
  ),
  httpMaxHeapMb: setting(
    'http.max-heap-mb',
    integer(64, 65_536),
    '768',
    'JavaScript heap of the API process at most, in MiB; beyond it the process ends and is replaced.',
  ),
  grpcListen: setting('grpc.listen', listenAddress, '127.0.0.1:9191', 'Where Envoy asks: host:port or unix:/path.'),
  grpcTransport: setting(
    'grpc.transport',
    oneOf('built-in', 'http2'),
    'built-in',
    "HTTP/2 of the gRPC listener: built-in, or Node's (http2) as a way back.",
  ),
  grpcTlsCert: optional('grpc.tls.cert-file', FILE_PATH, 'Certificate chain of the gRPC listener, PEM.'),
  grpcTlsKey: optional('grpc.tls.key-file', FILE_PATH, 'Its private key, PEM.'),
  grpcTlsClientCa: optional('grpc.tls.client-ca-file', FILE_PATH, 'CA whose certificates clients must present, PEM.'),
  adminListen: setting('admin.listen', tcpAddress, '127.0.0.1:9090', 'Where health and metrics are served.'),
  databaseUrl: secret(
    'database.url',
    textLike('postgresql://user:password@host:port/database', /^postgres(ql)?:\/\/[^\s\0]+$/),
    'PostgreSQL to use; absent = an embedded one.',
  ),
  databaseNotifications: setting(
    'database.notifications',
    flag,
    'true',
    'false where a pooler cannot LISTEN; changes are polled then.',
  ),
  databasePoolSize: setting('database.pool-size', integer(2, 1000), '10', 'Connections to the database at most.'),
  dataDir: setting('data-dir', textLike('a directory', /^[^\0]+$/), './data', 'Where the embedded PostgreSQL keeps its data.'),
  issuer: optional('issuer', IDENTIFIER, '`iss` of access tokens; absent = made at the first start.'),
  audience: setting('audience', IDENTIFIER, 'platform', '`aud` of access tokens.'),
  tokenAccessTtl: setting('token.access-ttl', wholeSeconds, '3600s', 'Lifetime of an access token.'),
  tokenRefreshIdleTtl: setting('token.refresh-idle-ttl', duration, '7d', 'How long a refresh token may lie unused.'),
  tokenRefreshTtl: setting('token.refresh-ttl', duration, '30d', 'How long a session may last.'),
  secretKey: secret(
    'secret-key',
    textLike('at least 32 characters', /^[^\0]{32,1024}$/su),
    'What stored keys are sealed under; required with database.url.',
  ),
  secretKeyPrevious: secret(
    'secret-key-previous',
    textLike('at least 32 characters', /^[^\0]{32,1024}$/su),
    'The former secret-key, accepted as well while servers change to another.',
  ),
  bootstrapEmail: setting('bootstrap.email', EMAIL, 'admin@localhost', 'The first administrator, made when there is none.'),
  bootstrapPassword: secret('bootstrap.password', PASSWORD, 'Its password; absent = one is made and shown once.'),
  clientIpTrustedHops: setting(
    'client-ip.trusted-hops',
    integer(0, 32),
    '0',
    'Proxies before Envoy that append to X-Forwarded-For.',
  ),
  forwardCredential: setting('forward-credential', flag, 'false', 'Leave the credential headers for the service behind Envoy.'),
  routes: setting('routes', routeLines, '[]', 'Routes beside the built-in ones.'),
  inspectMaxBody: setting(
    'inspect.max-body',
    size('a size from 1 KiB to 16 MiB, such as 1 MiB', MIN_INSPECTED_BYTES, MAX_INSPECTED_BYTES),
    '1 MiB',
    'The largest body that a decision reads; Envoy must send as much (postern envoy config).',
  ),
  workers: setting('workers', integer(1, 64), '1', 'Gate workers: processes that answer checks, beside one API process.'),
  cacheCredentials: setting('cache.credentials', integer(1, 10_000_000), '200000', 'Credentials kept in memory at most.'),
  cacheMaxStaleness: setting(
    'cache.max-staleness',
    duration,
    '300s',
    'How long what is cached is trusted without news of changes.',
  ),
  drainNotice: setting(
    'drain.notice',
    delay,
    '0',
    'How long a stopping server goes on deciding after its health says no, so that proxies can turn to others.',
  ),
  auditRetention: setting('audit.retention', retention, '0', 'How long audit rows are kept; 0 = for ever.'),
  loginFailuresPerAccount: setting(
    'login.failures-per-account',
    integer(1, 1_000_000),
    '10',
    'Failed logins of one account from one address in 15 minutes. From all addresses together: 100.',
  ),
  loginFailuresPerAddress: setting(
    'login.failures-per-address',
    integer(1, 1_000_000),
    '100',
    'Failed logins per address in 15 minutes.',
  ),
  limitsWindow: setting('limits.window', duration, '60s', 'What a minute of rate limits lasts; anything else is for tests.'),
  limitsTokenEstimate: setting(
    'limits.token-estimate',
    integer(1, 1_000_000_000),
    '1024',
    'Tokens reserved for a request that names no maximum, where a quota is in force.',
  ),
  limitsReservationTtl: setting(
    'limits.reservation-ttl',
    duration,
    '30s',
    'How long the tokens or the collection of a request stay reserved without news of it; Envoy renews them while it runs.',
  ),
  usageSource: setting(
    'usage.source',
    oneOf('envoy', 'events'),
    'envoy',
    "Who tells what requests used: Envoy's access log, or events that the platform sends.",
  ),
  usageEventsTenants: setting(
    'usage.events-tenants',
    listOf('a list of tenant ids', TENANT),
    '[]',
    'Tenants whose usage comes by events, whatever usage.source says.',
  ),
  // Secret because it may hold passwords.
  ldapList: { ...optional('ldap', ldapDirectories, 'Several directories: a list of maps of the ldap settings.'), secret: true },
  ...LDAP,
  metricsTenantLabel: setting(
    'metrics.tenant-label',
    flag,
    'false',
    'Whether metrics name tenants: those whose quotas are nearest to their end, 100 at most.',
  ),
  logLevel: setting('log.level', oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'), 'info', 'What is logged.'),
  logDecisionsTo: setting(
    'log.decisions.to',
    oneOf('stdout', 'file', 'otlp', 'off'),
    'stdout',
    'Where the decision log goes: standard output, a file, an OpenTelemetry collector, or nowhere.',
  ),
  logDecisionsFile: optional('log.decisions.file', FILE_PATH, 'The file, for log.decisions.to: file.'),
  logDecisionsAllowOneIn: setting(
    'log.decisions.allow-one-in',
    integer(0, 1_000_000),
    '1000',
    'One allow in this many is logged; 1 = every allow, 0 = none. Every denial is logged.',
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
    'Traces to otlp.endpoint: of requests whose traceparent says so (parent), or of those without a traceparent as well (always).',
  ),
} as const;

export type { Key } from './key.ts';

export type AnyKey = Omit<Key<unknown>, 'parse' | 'fallback'>;

export const ALL_KEYS: readonly AnyKey[] = Object.values(KEYS);

/** `http.trusted-proxies` -> `POSTERN_HTTP_TRUSTED_PROXIES` */
export function envName(path: string): string {
  return `POSTERN_${path.replace(/[.-]/g, '_').toUpperCase()}`;
}
