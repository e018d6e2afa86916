/**
 * Reads the environment: `POSTERN_` and a setting's path in upper snake case. A secret may also come from a file: the
 * variable then ends with `_FILE` and names it.
 */

import { type ConfigError, didYouMean } from './config-error.ts';
import { readSecret, SECRET_FILE_EXPECTED } from './files.ts';
import type { Raw } from './parsers.ts';
import { envName, type Setting } from './setting.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

interface EnvEntry {
  readonly raw: Raw;
  readonly name: string;
}

interface EnvContent {
  /** By path. */
  readonly entries: ReadonlyMap<string, EnvEntry>;
  readonly errors: readonly ConfigError[];
}

/** Variables of the command line. */
const OTHERS: readonly string[] = [
  'POSTERN_CONFIG',
  'POSTERN_CREDENTIAL',
  'POSTERN_DEMO_ISSUER_LISTEN',
  'POSTERN_DEMO_LISTEN',
  'POSTERN_ENVOY',
];
/** Variables that Kubernetes and Docker set in every container beside a service `postern` or `postern-…`. */
const SERVICE_LINK =
  /^POSTERN_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SERVICE_PORT = /^POSTERN_([A-Z0-9_]+_)?PORT$/;

/** An empty variable counts as not set. */
export function readEnvironment(settings: readonly Setting<unknown>[], env: Environment): EnvContent {
  const entries = new Map<string, EnvEntry>();
  const errors: ConfigError[] = [];
  const known = new Set(OTHERS);
  const report = (name: string, path: string, message: string): void => {
    errors.push({ where: { kind: 'env', name }, path, message });
  };
  for (const { path, secret } of settings) {
    const name = envName(path);
    known.add(name);
    const text = env[name];
    if (text !== undefined && text !== '') {
      entries.set(path, { raw: { kind: 'text', text }, name });
    }
    if (!secret) continue;
    const fileName = `${name}_FILE`;
    known.add(fileName);
    const file = env[fileName];
    if (file === undefined || file === '') continue;
    const content = readSecret(file);
    if (entries.has(path)) {
      report(fileName, path, `set this or ${name}, not both`);
    } else if (content === undefined) {
      report(fileName, path, SECRET_FILE_EXPECTED);
    } else {
      entries.set(path, { raw: { kind: 'text', text: content }, name: fileName });
    }
  }
  for (const [name, text] of Object.entries(env)) {
    if (name.startsWith('POSTERN_') && !known.has(name) && !isServiceLink(name, text ?? '')) {
      report(name, '', `unknown variable${didYouMean(name, known)}`);
    }
  }
  return { entries, errors };
}

function isServiceLink(name: string, text: string): boolean {
  return SERVICE_LINK.test(name) || (SERVICE_PORT.test(name) && /^(tcp|udp|sctp):\/\//.test(text));
}
