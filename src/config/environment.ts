/** Reads the environment: `POSTERN_` and a setting's path in upper snake case; for secrets also with `_FILE`, naming a file. */

import { ALL_KEYS, envName } from './keys.ts';
import { didYouMean } from './nearest.ts';
import type { Raw } from './parsers.ts';
import type { Problem } from './problems.ts';
import { readSecret, SECRET_FILE_EXPECTED } from './secret-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvEntry {
  readonly raw: Raw;
  readonly name: string;
}

export interface EnvContent {
  /** By path. */
  readonly entries: ReadonlyMap<string, EnvEntry>;
  readonly problems: readonly Problem[];
}

/** Read by the command line, not part of the configuration. The supervisor sets POSTERN_PROCESS for the processes that it starts. */
const OTHERS: ReadonlySet<string> = new Set([
  'POSTERN_CONFIG',
  'POSTERN_CREDENTIAL',
  'POSTERN_DEMO_LISTEN',
  'POSTERN_ENVOY',
  'POSTERN_PROCESS',
]);
/** What Kubernetes and Docker put into every container beside a service named `postern` or `postern-…`. */
const SERVICE_LINK =
  /^POSTERN_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$/;
const SERVICE_PORT = /^POSTERN_([A-Z0-9_]+_)?PORT$/;

/** A variable that is set to nothing counts as not set. */
export function readEnvironment(env: Environment): EnvContent {
  const entries = new Map<string, EnvEntry>();
  const problems: Problem[] = [];
  const known = new Set(OTHERS);
  const report = (name: string, path: string, message: string): void => {
    problems.push({ where: { kind: 'env', name }, path, message });
  };
  for (const { path, secret } of ALL_KEYS) {
    const name = envName(path);
    known.add(name);
    const text = env[name];
    if (text !== undefined && text !== '') {
      entries.set(path, { raw: { kind: 'text', text }, name });
    }
    const fileName = `${name}_FILE`;
    const file = secret ? env[fileName] : undefined;
    if (secret) {
      known.add(fileName);
    }
    if (file === undefined || file === '') {
      continue;
    }
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
  return { entries, problems };
}

function isServiceLink(name: string, text: string): boolean {
  return SERVICE_LINK.test(name) || (SERVICE_PORT.test(name) && /^(tcp|udp|sctp):\/\//.test(text));
}
