/** Reads the file and the environment into one frozen Config and the secrets, or into the list of all errors. */

import type { Config, Secrets } from './config.ts';
import type { ConfigError } from './config-error.ts';
import { loadDirectories } from './directories.ts';
import { belongTogether, readPem } from './files.ts';
import { GivenSettings, type Sources } from './given.ts';
import { LDAP_SETTINGS } from './ldap-settings.ts';
import type { ListenAddress } from './parsers.ts';
import type { LoadedSetting } from './render.ts';
import { type ValuesOf, valuesOf } from './setting.ts';
import { ALL_SETTINGS, CONFIG_SETTINGS, LDAP_LIST, SECRET_SETTINGS } from './settings.ts';

export type LoadResult =
  | {
      readonly kind: 'config';
      readonly config: Config;
      readonly secrets: Secrets;
      readonly settings: readonly LoadedSetting[];
    }
  | { readonly kind: 'invalid'; readonly errors: readonly ConfigError[] };

export function loadConfig(sources: Sources): LoadResult {
  const given = new GivenSettings(ALL_SETTINGS, sources);
  const { take, isGiven, report, errors } = given;
  const { directories, directoryPasswords } = loadDirectories(
    { single: valuesOf(LDAP_SETTINGS, take), list: take(LDAP_LIST), isGiven },
    report,
  );
  const secrets = { ...valuesOf(SECRET_SETTINGS, take), directoryPasswords };
  const values = valuesOf(CONFIG_SETTINGS, take);
  const config = { ...values, grpc: { ...values.grpc, tls: tlsOf(values.grpc.tls) }, directories };
  checkTogether(config, secrets, given);
  checkTlsFiles(config.grpc.tls, report);
  if (errors.length > 0) {
    return { kind: 'invalid', errors };
  }
  return {
    kind: 'config',
    config: deepFreeze(config),
    secrets: deepFreeze(secrets),
    settings: given.taken,
  };
}

function tlsOf({ certFile, keyFile, clientCaFile }: ValuesOf<typeof GRPC_TLS>): Config['grpc']['tls'] {
  return certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile, clientCaFile };
}

const { listen: GRPC_LISTEN, tls: GRPC_TLS } = CONFIG_SETTINGS.grpc;

/** Reports the files that the listener could not start with. It reads them itself, and again when they change. */
function checkTlsFiles(tls: Config['grpc']['tls'], report: GivenSettings['report']): void {
  if (tls === undefined) return;
  const read = (file: string, kind: 'certificate' | 'key', { path }: { readonly path: string }): string | undefined =>
    readPem(file, kind, (message) => report(path, message));
  const cert = read(tls.certFile, 'certificate', GRPC_TLS.certFile);
  const key = read(tls.keyFile, 'key', GRPC_TLS.keyFile);
  if (tls.clientCaFile !== undefined) read(tls.clientCaFile, 'certificate', GRPC_TLS.clientCaFile);
  if (cert !== undefined && key !== undefined && !belongTogether(cert, key)) {
    report(GRPC_TLS.keyFile.path, 'expected the private key of the certificate in grpc.tls.cert-file');
  }
}

function checkTogether(
  config: Config,
  secrets: Secrets,
  { isGiven, report }: Pick<GivenSettings, 'isGiven' | 'report'>,
): void {
  if (secrets.databaseUrl !== undefined && !isGiven(SECRET_SETTINGS.secretKey.path)) {
    report(
      SECRET_SETTINGS.secretKey.path,
      'required with database.url: at least 32 characters, and the same value on every server of this database',
    );
  }
  if (!config.database.migrate && secrets.databaseUrl === undefined) {
    report(
      CONFIG_SETTINGS.database.migrate.path,
      'false requires database.url: only the server itself can migrate its embedded database',
    );
  }
  if (secrets.secretKeyPrevious !== undefined && !isGiven(SECRET_SETTINGS.secretKey.path)) {
    report(SECRET_SETTINGS.secretKeyPrevious.path, 'requires secret-key, the key that the installation changes to');
  }
  const { file } = CONFIG_SETTINGS.log.decisions;
  if (config.log.decisions.to === 'file' && !isGiven(file.path)) {
    report(file.path, 'required with log.decisions.to: file');
  }
  const { endpoint } = CONFIG_SETTINGS.otlp;
  if (!isGiven(endpoint.path)) {
    if (config.log.decisions.to === 'otlp') report(endpoint.path, 'required with log.decisions.to: otlp');
    if (config.traces.sample !== 'off') {
      report(endpoint.path, `required with traces.sample: ${config.traces.sample}`);
    }
  }
  if (Object.values(GRPC_TLS).some(({ path }) => isGiven(path))) {
    for (const { path } of [GRPC_TLS.certFile, GRPC_TLS.keyFile]) {
      if (!isGiven(path)) report(path, 'required with the other grpc.tls settings');
    }
  }
  const { audience, ...others } = CONFIG_SETTINGS.upstreamToken;
  if (!isGiven(audience.path)) {
    for (const { path } of Object.values(others))
      if (isGiven(path)) report(path, `requires ${audience.path}, the name of the platform that verifies the token`);
  } else if (config.upstreamToken.audience === config.audience) {
    report(audience.path, 'expected another value than audience: a platform must not accept access tokens');
  }
  const listeners: readonly (readonly [string, ListenAddress])[] = [
    [CONFIG_SETTINGS.http.listen.path, config.http.listen],
    [GRPC_LISTEN.path, config.grpc.listen],
    [CONFIG_SETTINGS.admin.listen.path, config.admin.listen],
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

/** Freezes a value of lists, maps and scalars, and all values in it. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
