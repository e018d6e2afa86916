/** File and environment -> one frozen Config and the secrets, or the list of everything that is wrong. The environment wins. */

import type { Config, ListenAddress, Secrets } from './config.ts';
import { loadDirectories } from './directories.ts';
import { type Environment, readEnvironment } from './environment.ts';
import { readConfigFile } from './file.ts';
import { deepFreeze } from './freeze.ts';
import { KEYS, type Key } from './keys.ts';
import { takeLdap } from './ldap-values.ts';
import type { Flaw, Raw } from './parsers.ts';
import { joinPath, type Problem, type Steps } from './problems.ts';
import type { Setting } from './render.ts';
import { readTlsFiles } from './tls-files.ts';

export type LoadResult =
  | {
      readonly kind: 'config';
      readonly config: Config;
      readonly secrets: Secrets;
      readonly settings: readonly Setting[];
    }
  | { readonly kind: 'invalid'; readonly problems: readonly Problem[] };

interface Found {
  readonly raw: Raw;
  /** Where a flaw in the value is. */
  readonly locate: (flaw: Flaw) => Problem['where'];
}

/** Reads the setting, or reports what is wrong with it and gives its default. */
type Take = <T>(key: Key<T>) => T;

/** @param options.file absent = environment and defaults alone */
export function loadConfig(options: { readonly file?: string | undefined; readonly env: Environment }): LoadResult {
  const { file } = options;
  const fromFile = file === undefined ? undefined : readConfigFile(file);
  const fromEnv = readEnvironment(options.env);
  const problems: Problem[] = [...(fromFile?.problems ?? []), ...fromEnv.problems];
  const settings: Setting[] = [];

  const find = (path: string): Found | undefined => {
    const env = fromEnv.entries.get(path);
    if (env !== undefined) {
      return { raw: env.raw, locate: () => ({ kind: 'env', name: env.name }) };
    }
    const entry = fromFile?.entries.get(path);
    return (
      entry && { raw: entry.raw, locate: ({ at }) => ({ kind: 'file', file: file ?? '', at: entry.positionOf(at) }) }
    );
  };
  const take: Take = (key) => {
    const found = find(key.path);
    const parsed = found && key.parse(found.raw);
    settings.push({ key, raw: found?.raw, where: found?.locate({ at: [], expected: '' }) });
    if (found !== undefined && parsed?.kind === 'flaws') {
      problems.push(...parsed.flaws.map((flaw) => problemOf(key.path, key.secret, flaw, found.locate(flaw))));
    }
    return parsed?.kind === 'value' ? parsed.value : key.fallback;
  };
  const report = (path: string, message: string, at: Steps = []): void => {
    // A file that cannot be read may have what seems to be missing.
    if (fromFile?.isWhole === false) return;
    problems.push({ where: find(path)?.locate({ at, expected: '' }), path: joinPath(path, at), message });
  };
  const isGiven = (path: string): boolean => find(path) !== undefined;

  const { directories, directoryPasswords } = loadDirectories(
    { single: takeLdap(take), list: take(KEYS.ldapList), isGiven },
    report,
  );
  const secrets = { ...takeSecrets(take), directoryPasswords };
  const config = { ...takeConfig(take, secrets.databaseUrl === undefined ? 'embedded' : 'remote'), directories };
  checkTogether(config, secrets, isGiven, report);
  const grpcTls = readTlsFiles(config.grpc.tls, report);
  if (problems.length > 0) {
    return { kind: 'invalid', problems };
  }
  return { kind: 'config', config: deepFreeze(config), secrets: deepFreeze({ ...secrets, grpcTls }), settings };
}

function problemOf(path: string, secret: boolean, { at, expected, got }: Flaw, where: Problem['where']): Problem {
  const message = got === undefined ? expected : secret ? `expected ${expected}` : `expected ${expected}, got ${got}`;
  return { where, path: joinPath(path, at), message };
}

function takeSecrets(take: Take): Omit<Secrets, 'grpcTls' | 'directoryPasswords'> {
  return {
    databaseUrl: take(KEYS.databaseUrl),
    secretKey: take(KEYS.secretKey),
    secretKeyPrevious: take(KEYS.secretKeyPrevious),
    bootstrapPassword: take(KEYS.bootstrapPassword),
    otlpHeaders: take(KEYS.otlpHeaders),
  };
}

function takeConfig(take: Take, database: 'embedded' | 'remote'): Omit<Config, 'directories'> {
  return {
    http: {
      listen: take(KEYS.httpListen),
      trustedProxies: take(KEYS.httpTrustedProxies),
      origins: take(KEYS.httpOrigins),
      maxHeapMb: take(KEYS.httpMaxHeapMb),
    },
    grpc: { listen: take(KEYS.grpcListen), transport: take(KEYS.grpcTransport), tls: takeTls(take) },
    admin: { listen: take(KEYS.adminListen) },
    database: {
      kind: database,
      migrate: take(KEYS.databaseMigrate),
      notifications: take(KEYS.databaseNotifications),
      poolSize: take(KEYS.databasePoolSize),
    },
    dataDir: take(KEYS.dataDir),
    issuer: take(KEYS.issuer),
    audience: take(KEYS.audience),
    token: {
      accessTtlMs: take(KEYS.tokenAccessTtl),
      refreshIdleTtlMs: take(KEYS.tokenRefreshIdleTtl),
      refreshTtlMs: take(KEYS.tokenRefreshTtl),
    },
    bootstrap: { email: take(KEYS.bootstrapEmail).toLowerCase() },
    clientIp: { trustedHops: take(KEYS.clientIpTrustedHops) },
    forwardCredential: take(KEYS.forwardCredential),
    routes: take(KEYS.routes),
    inspect: {
      maxBodyBytes: take(KEYS.inspectMaxBody),
      callerRate: take(KEYS.inspectCallerRate),
      tenantRate: take(KEYS.inspectTenantRate),
    },
    workers: take(KEYS.workers),
    cache: { credentials: take(KEYS.cacheCredentials), maxStalenessMs: take(KEYS.cacheMaxStaleness) },
    drain: { noticeMs: take(KEYS.drainNotice) },
    apiKeys: { retentionMs: take(KEYS.apiKeysRetention) },
    audit: { retentionMs: take(KEYS.auditRetention) },
    login: {
      failuresPerAccount: take(KEYS.loginFailuresPerAccount),
      totalAccountFailures: take(KEYS.loginTotalAccountFailures),
      failuresPerAddress: take(KEYS.loginFailuresPerAddress),
    },
    limits: {
      windowMs: take(KEYS.limitsWindow),
      tokenEstimate: take(KEYS.limitsTokenEstimate),
      fileEstimate: take(KEYS.limitsFileEstimate),
      reservationTtlMs: take(KEYS.limitsReservationTtl),
    },
    usage: { source: take(KEYS.usageSource), eventsTenants: take(KEYS.usageEventsTenants) },
    metrics: { tenantLabel: take(KEYS.metricsTenantLabel) },
    log: {
      level: take(KEYS.logLevel),
      decisions: {
        to: take(KEYS.logDecisionsTo),
        file: take(KEYS.logDecisionsFile),
        allowOneIn: take(KEYS.logDecisionsAllowOneIn),
      },
    },
    otlp: { endpoint: take(KEYS.otlpEndpoint) },
    traces: { sample: take(KEYS.tracesSample) },
  };
}

function takeTls(take: Take): Config['grpc']['tls'] {
  const [certFile, keyFile, clientCaFile] = [take(KEYS.grpcTlsCert), take(KEYS.grpcTlsKey), take(KEYS.grpcTlsClientCa)];
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile, clientCaFile };
}

/** Rules about more than one setting. */
function checkTogether(
  config: Config,
  secrets: Omit<Secrets, 'grpcTls'>,
  isGiven: (path: string) => boolean,
  report: (path: string, message: string) => void,
): void {
  if (secrets.databaseUrl !== undefined && !isGiven(KEYS.secretKey.path)) {
    report(
      KEYS.secretKey.path,
      'required with database.url: at least 32 characters, and the same value on every server of this database',
    );
  }
  if (!config.database.migrate && secrets.databaseUrl === undefined) {
    report(
      KEYS.databaseMigrate.path,
      'false requires database.url: only the server itself can migrate its embedded database',
    );
  }
  if (secrets.secretKeyPrevious !== undefined && !isGiven(KEYS.secretKey.path)) {
    report(KEYS.secretKeyPrevious.path, 'requires secret-key, the key that the installation changes to');
  }
  if (config.log.decisions.to === 'file' && !isGiven(KEYS.logDecisionsFile.path)) {
    report(KEYS.logDecisionsFile.path, 'required with log.decisions.to: file');
  }
  if (!isGiven(KEYS.otlpEndpoint.path)) {
    if (config.log.decisions.to === 'otlp') report(KEYS.otlpEndpoint.path, 'required with log.decisions.to: otlp');
    if (config.traces.sample !== 'off') {
      report(KEYS.otlpEndpoint.path, `required with traces.sample: ${config.traces.sample}`);
    }
  }
  const tlsPaths = [KEYS.grpcTlsCert.path, KEYS.grpcTlsKey.path];
  const missing = tlsPaths.filter((path) => !isGiven(path));
  if (missing.length > 0 && [...tlsPaths, KEYS.grpcTlsClientCa.path].some(isGiven)) {
    for (const path of missing) {
      report(path, 'required with the other grpc.tls settings');
    }
  }
  const listeners: readonly (readonly [string, ListenAddress])[] = [
    [KEYS.httpListen.path, config.http.listen],
    [KEYS.grpcListen.path, config.grpc.listen],
    [KEYS.adminListen.path, config.admin.listen],
  ];
  for (const [index, [path, address]] of listeners.entries()) {
    const same = listeners.slice(0, index).find(([, other]) => isSameAddress(address, other));
    if (same !== undefined) {
      report(path, `expected an address that no other listener uses, got the address of ${same[0]}`);
    }
  }
}

function isSameAddress(a: ListenAddress, b: ListenAddress): boolean {
  return a.kind === 'tcp' && b.kind === 'tcp' && a.port !== 0 && a.port === b.port && a.host === b.host;
}
