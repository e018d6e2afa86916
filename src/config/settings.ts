/**
 * Every setting, one entry each, in the shape of `Config` and `Secrets`. Loading, error messages, `check-config`, the
 * documentation and the schema of the chart's values follow from these tables. A setting that is not here does not
 * exist.
 */

import { passwordProblems } from '../identity/password-rules.ts';
import { OPTIONAL_CLAIMS } from '../identity/upstream-token.ts';
import { ldapDirectories } from './ldap-list.ts';
import { TENANT_ID } from './ldap-parsers.ts';
import { LDAP_SETTINGS } from './ldap-settings.ts';
import {
  choice,
  delay,
  duration,
  FILE_PATH,
  flag,
  integer,
  keyStaleness,
  listenAddress,
  network,
  origin,
  retention,
  scalar,
  scalarList,
  size,
  tcpAddress,
  textLike,
  upstreamTokenTtl,
  urlHost,
  wholeSeconds,
  withoutRemoved,
} from './parsers.ts';
import { routeList } from './routes.ts';
import { optional, type Setting, secret, setting, settingsOf } from './setting.ts';

const IDENTIFIER = textLike('a text of 1 to 255 visible characters', /^[\x21-\x7e]{1,255}$/);
const EMAIL = scalar('an e-mail address', (text) =>
  /^[!-?A-~]{1,64}@[!-?A-~]{1,189}$/.test(text) ? text.toLowerCase() : undefined,
);
const PASSWORD = scalar('a password of 15 to 256 characters that is not a common one', (text) =>
  passwordProblems(text).length === 0 ? text : undefined,
);
const SECRET_KEY = textLike('at least 32 characters', /^[^\0]{32,1024}$/su);
const OTLP_HEADERS = textLike(
  'name=value, separated by commas',
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,\r\n\0]*(?:,[!#$%&'*+.^_`|~0-9A-Za-z-]+=[^,\r\n\0]*)*$/,
);
const MIB = 1024 * 1024;
const INSPECTED_BODY = size('a size from 1 KiB to 16 MiB, such as 1 MiB', 1024, 16 * MIB);
const INSPECTED_RATE = size('a size from 1 MiB to 1000 MiB, such as 64 MiB', MIB, 1000 * MIB);

export const CONFIG_SETTINGS = {
  http: {
    listen: setting(
      'http.listen',
      tcpAddress,
      '127.0.0.1:8080',
      'Address of the HTTP listener, which serves logins and management.',
      { setByChart: true },
    ),
    trustedProxies: setting(
      'http.trusted-proxies',
      scalarList('a list of addresses and CIDR blocks', network),
      '[]',
      'Proxies in front of the HTTP listener whose X-Forwarded-For is trusted.',
      { example: '["10.0.3.0/24"]' },
    ),
    origins: setting(
      'http.origins',
      scalarList('a list of origins', origin),
      '[]',
      'Origins that may use the session cookie; none = only the origin of the Host header.',
      { example: '["https://ai.example.com"]' },
    ),
    maxHeapMb: setting(
      'http.max-heap-mb',
      integer(64, 65_536),
      '768',
      'Maximum JavaScript heap of the API process, in MiB. A process that exceeds it is replaced.',
    ),
  },
  grpc: {
    listen: setting(
      'grpc.listen',
      listenAddress,
      '127.0.0.1:9191',
      'Address of the gRPC listener for Envoy: host:port or unix:/path.',
      { setByChart: true },
    ),
    transport: setting(
      'grpc.transport',
      withoutRemoved(choice('built-in', 'grpc-js'), { http2: 'grpc-js' }),
      'built-in',
      'Implementation of the gRPC listener: built-in, or grpc-js for the package @grpc/grpc-js as a fallback.',
    ),
    tls: {
      certFile: optional(
        'grpc.tls.cert-file',
        FILE_PATH,
        '/etc/postern/tls/tls.crt',
        'Certificate chain of the gRPC listener, PEM.',
        { setByChart: true },
      ),
      keyFile: optional(
        'grpc.tls.key-file',
        FILE_PATH,
        '/etc/postern/tls/tls.key',
        'Private key of that certificate, PEM.',
        { setByChart: true },
      ),
      clientCaFile: optional(
        'grpc.tls.client-ca-file',
        FILE_PATH,
        '/etc/postern/tls/ca.crt',
        "CA that must have issued the clients' certificates, PEM.",
        { setByChart: true },
      ),
    },
  },
  admin: {
    listen: setting(
      'admin.listen',
      tcpAddress,
      '127.0.0.1:9090',
      'Address of the admin listener, which serves health and metrics.',
      { setByChart: true },
    ),
  },
  database: {
    migrate: setting(
      'database.migrate',
      flag,
      'true',
      'false if only `postern migrate` may migrate; the server then waits until the schema is that of its version.',
    ),
    notifications: setting(
      'database.notifications',
      flag,
      'true',
      'false if a connection pooler cannot LISTEN; the server then polls for changes.',
    ),
    poolSize: setting(
      'database.pool-size',
      integer(2, 1000),
      '10',
      'Maximum number of database connections. Each process has up to eight more: for notifications, the change feed, the audit log and limits.',
    ),
  },
  dataDir: setting(
    'data-dir',
    textLike('a directory', /^[^\0]+$/),
    './data',
    'Directory in which the embedded PostgreSQL keeps its data. If the user that PostgreSQL runs as cannot reach this folder, the data is in `/var/lib/postern`, and `cluster-location` in the folder says where.',
    { setByChart: true },
  ),
  issuer: optional(
    'issuer',
    IDENTIFIER,
    'https://postern.example.com',
    '`iss` of access tokens; absent = generated at the first start.',
  ),
  audience: setting('audience', IDENTIFIER, 'platform', '`aud` of access tokens.'),
  token: {
    accessTtlMs: setting('token.access-ttl', wholeSeconds, '3600s', 'Lifetime of an access token.'),
    refreshIdleTtlMs: setting('token.refresh-idle-ttl', duration, '7d', 'Lifetime of an unused refresh token.'),
    refreshTtlMs: setting('token.refresh-ttl', duration, '30d', 'Maximum lifetime of a session.'),
  },
  upstreamToken: {
    audience: optional(
      'upstream-token.audience',
      IDENTIFIER,
      'https://models.example.com',
      '`aud` of the token for the upstream: the name of the platform, and another value than `audience`. Absent: no request gets such a token.',
    ),
    header: setting(
      'upstream-token.header',
      choice('x-postern-token', 'authorization'),
      'x-postern-token',
      'Header of the token for the upstream. authorization: the token replaces the credential of the client, as Bearer.',
    ),
    ttlMs: setting(
      'upstream-token.ttl',
      upstreamTokenTtl,
      '300s',
      'Lifetime of the token for the upstream. The gate uses a token again until half of its lifetime is over.',
    ),
    claims: setting(
      'upstream-token.claims',
      scalarList(`a list of ${OPTIONAL_CLAIMS.join(', ')}`, choice(...OPTIONAL_CLAIMS)),
      JSON.stringify(OPTIONAL_CLAIMS),
      'Claims of the token for the upstream beside `iss`, `aud`, `sub`, `iat`, `exp`, `jti` and `tenant_id`.',
    ),
  },
  bootstrap: {
    email: setting(
      'bootstrap.email',
      EMAIL,
      'admin@localhost',
      'Email address of the first administrator, who is created if there is none.',
    ),
  },
  clientIp: {
    trustedHops: setting(
      'client-ip.trusted-hops',
      integer(0, 32),
      '0',
      'Number of proxies in front of Envoy that append to X-Forwarded-For.',
    ),
  },
  forwardCredential: setting(
    'forward-credential',
    flag,
    'false',
    'Whether the credential headers are forwarded to the service behind Envoy.',
  ),
  routes: setting('routes', routeList, '[]', 'Routes in addition to the built-in ones.', {
    example:
      '[{"method":"POST","path":"/v1/translations","permission":"translations:write","model":"body","tokens":true}]',
  }),
  inspect: {
    maxBodyBytes: setting(
      'inspect.max-body',
      INSPECTED_BODY,
      '1 MiB',
      'Maximum size of a body that a decision reads. Envoy must send as much (see postern envoy config).',
    ),
    callerRate: setting(
      'inspect.caller-rate',
      INSPECTED_RATE,
      '32 MiB',
      'Bytes of bodies that each gate worker reads in a second for one API key, or for one user with an access token; beyond it, 429. Bodies up to 4 KiB do not count.',
    ),
    tenantRate: setting(
      'inspect.tenant-rate',
      INSPECTED_RATE,
      '64 MiB',
      'The same for all keys and users of one tenant together. The default takes at most about half of a worker.',
    ),
  },
  workers: setting(
    'workers',
    integer(1, 64),
    '1',
    'Number of gate workers: processes that answer checks, in addition to the API process.',
  ),
  cache: {
    credentials: setting(
      'cache.credentials',
      integer(1, 10_000_000),
      '200000',
      'Maximum number of credentials kept in memory. It also bounds the memory of roles and policies: 1,280 bytes for each, at least 64 MiB.',
    ),
    maxStalenessMs: setting(
      'cache.max-staleness',
      duration,
      '300s',
      'How long cached data is used while the server cannot read changes from the database.',
    ),
  },
  drain: {
    noticeMs: setting(
      'drain.notice',
      delay,
      '0',
      'How long a stopping server keeps answering checks after it reports that it is unhealthy, so that proxies can switch to other servers.',
    ),
  },
  apiKeys: {
    retentionMs: setting(
      'api-keys.retention',
      retention,
      '90d',
      'How long an API key is kept after it was revoked or has expired; 0 = forever. At least 1d, and the same on every server.',
    ),
  },
  audit: {
    retentionMs: setting(
      'audit.retention',
      retention,
      '0',
      'How long audit rows are kept; 0 = forever. At least 1d, and the same on every server.',
    ),
  },
  login: {
    failuresPerAccount: setting(
      'login.failures-per-account',
      integer(1, 1_000_000),
      '10',
      'Maximum failed logins of one account from one address in 15 minutes.',
    ),
    totalAccountFailures: setting(
      'login.total-account-failures',
      integer(1, 1_000_000),
      '100',
      'Maximum failed logins of one account from all addresses together in 15 minutes. If login.failures-per-account is larger, its number applies. Addresses from which the account logged in during the last 30 days are exempt.',
    ),
    failuresPerAddress: setting(
      'login.failures-per-address',
      integer(1, 1_000_000),
      '100',
      'Maximum failed logins per address in 15 minutes.',
    ),
  },
  limits: {
    windowMs: setting(
      'limits.window',
      duration,
      '60s',
      'Length of the rate limit window. Other values than 60s are for tests, and must be the same on every server.',
    ),
    tokenEstimate: setting(
      'limits.token-estimate',
      integer(1, 1_000_000_000),
      '1024',
      'Tokens reserved for a request that names no maximum, if a token quota applies.',
    ),
    fileEstimate: setting(
      'limits.file-estimate',
      integer(1, 1_000_000),
      '1000',
      'Tokens that the estimate of a prompt counts for each inline file: an image, audio or document in base64.',
    ),
    budgetHeader: setting(
      'limits.budget-header',
      flag,
      'false',
      'Whether answers to requests that a budget counts have the header `x-postern-budget-remaining`.',
    ),
    reservationTtlMs: setting(
      'limits.reservation-ttl',
      duration,
      '30s',
      "How long the tokens or the collection of a request stay reserved without a report of Envoy. Envoy renews them while the request runs. Set it to at least three times Envoy's `access_log_flush_interval`: Envoy's periodic entries renew the reservation.",
    ),
  },
  usage: {
    source: setting(
      'usage.source',
      choice('envoy', 'events'),
      'envoy',
      "Source of the usage of requests: Envoy's access log, or events that the platform sends. The same on every server.",
    ),
    eventsTenants: setting(
      'usage.events-tenants',
      scalarList('a list of tenant ids', TENANT_ID),
      '[]',
      'Tenants whose usage always comes from events, regardless of usage.source.',
      { example: '["acme"]' },
    ),
  },
  trial: {
    enabled: setting(
      'trial.enabled',
      flag,
      'true',
      'Whether the server decides checks in shadow mode. `false`: it denies them, so an author of routes cannot turn the limits and the headers of a route off by marking it.',
    ),
  },
  prices: {
    currency: setting(
      'prices.currency',
      textLike('a currency code of three capital letters, such as USD', /^[A-Z]{3}$/),
      'USD',
      'Currency of prices, costs and budgets, a code of ISO 4217. Amounts are not converted when it changes. The same on every server.',
      { example: 'EUR' },
    ),
  },
  issuers: {
    maxStalenessMs: setting(
      'issuers.max-staleness',
      keyStaleness,
      '24h',
      'How long the fetched keys of an issuer are used while they cannot be fetched again. After that, its tokens are answered 503. The same on every server.',
    ),
    allowedHosts: setting(
      'issuers.allowed-hosts',
      scalarList('a list of hosts', urlHost),
      '[]',
      'Hosts of issuers that may have a private or loopback address, each with or without a port. Requests to other hosts reach public addresses only.',
      { example: '["keycloak.internal.example", "kubernetes.default.svc:443"]' },
    ),
  },
  webhooks: {
    allowedHosts: setting(
      'webhooks.allowed-hosts',
      scalarList('a list of hosts', urlHost),
      '[]',
      'Hosts of webhooks that may have a private or loopback address, each with or without a port. Requests to other hosts reach public addresses only.',
      { example: '["alerts.internal.example:8443"]' },
    ),
  },
  console: {
    sso: {
      only: setting(
        'console.sso.only',
        flag,
        'false',
        'Whether the sign-in page of the console shows only the logins by issuers. The form for passwords is then at `/console/sign-in?by=password`, for local administrators.',
      ),
    },
  },
  metrics: {
    tenantLabel: setting(
      'metrics.tenant-label',
      flag,
      'false',
      'Whether metrics name tenants: at most 100, those with the least quota left.',
    ),
  },
  log: {
    level: setting(
      'log.level',
      choice('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
      'info',
      'Minimum level of log lines.',
    ),
    decisions: {
      to: setting(
        'log.decisions.to',
        choice('stdout', 'file', 'otlp', 'off'),
        'stdout',
        'Target of the decision log: standard output, a file, an OpenTelemetry collector, or none.',
      ),
      file: optional(
        'log.decisions.file',
        FILE_PATH,
        '/var/log/postern/decisions.ndjson',
        'File of the decision log. Required with log.decisions.to: file.',
      ),
      allowOneIn: setting(
        'log.decisions.allow-one-in',
        integer(0, 1_000_000),
        '1000',
        'The decision log has one allow in this many; 1 = every allow, 0 = none. It has every denial.',
      ),
    },
  },
  otlp: {
    endpoint: optional(
      'otlp.endpoint',
      textLike('an http or https URL, such as http://127.0.0.1:4318', /^https?:\/\/[^\s@?#\0]{1,1000}$/),
      'http://otel-collector:4318',
      'Base URL of an OpenTelemetry collector (OTLP/HTTP), for traces and for log.decisions.to: otlp.',
    ),
  },
  traces: {
    sample: setting(
      'traces.sample',
      choice('off', 'parent', 'always'),
      'off',
      'Traces to otlp.endpoint: off, requests with a sampled traceparent (parent), or also requests without a traceparent (always).',
    ),
  },
} as const;

export const SECRET_SETTINGS = {
  databaseUrl: secret(
    'database.url',
    scalar('postgresql://user:password@host:port/database', (text) =>
      // The client reads it as a URL as well. A database at a Unix socket may have no host.
      /^postgres(ql)?:\/\/[^\s\0]+$/.test(text) && URL.canParse(text.replace('@/', '@host/')) ? text : undefined,
    ),
    'postgresql://postern@db.example.com:5432/postern?sslmode=verify-full',
    'URL of the PostgreSQL database; absent = an embedded PostgreSQL. It requires secret-key.',
  ),
  secretKey: secret(
    'secret-key',
    SECRET_KEY,
    'a-random-text-of-at-least-32-characters',
    'Key that encrypts the stored signing keys. Required with database.url, and the same on every server of an installation.',
  ),
  secretKeyPrevious: secret(
    'secret-key-previous',
    SECRET_KEY,
    'the-random-text-that-was-the-secret-key',
    'The former secret-key, also accepted while servers change to the new one.',
  ),
  bootstrapPassword: secret(
    'bootstrap.password',
    PASSWORD,
    'four words that are hard to guess',
    'Password of the first administrator; absent = generated and shown once. It has no effect if there is an administrator.',
  ),
  otlpHeaders: secret(
    'otlp.headers',
    OTLP_HEADERS,
    'authorization=Bearer%20TOKEN',
    'Headers of each request to the collector, such as authorization=Bearer%20TOKEN; values are percent-encoded.',
  ),
} as const;

/** `ldap` as a list. It is secret because it may hold passwords. */
export const LDAP_LIST = secret(
  'ldap',
  ldapDirectories,
  '[]',
  'Several directories: a list of maps of the ldap settings.',
);

export const ALL_SETTINGS: readonly Setting<unknown>[] = [
  ...settingsOf(CONFIG_SETTINGS),
  ...settingsOf(SECRET_SETTINGS),
  LDAP_LIST,
  ...settingsOf(LDAP_SETTINGS),
];
