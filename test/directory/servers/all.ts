/** One of each kind of directory, with the same people in it. */

import { startDs389 } from './ds389.ts';
import { findParts, type PartName } from './packages.ts';
import { startSamba } from './samba.ts';
import type { DirectoryKind, DirectoryServer } from './server.ts';
import { startSlapd } from './slapd.ts';

export const KINDS: readonly DirectoryKind[] = ['active-directory', 'openldap', 'freeipa', '389ds'];

const PARTS: Readonly<Record<DirectoryKind, PartName>> = {
  'active-directory': 'samba',
  openldap: 'openldap',
  freeipa: '389ds',
  '389ds': '389ds',
};

const STARTS: Readonly<Record<DirectoryKind, () => Promise<DirectoryServer>>> = {
  'active-directory': startSamba,
  openldap: startSlapd,
  freeipa: () => startDs389({ freeIpa: true }),
  '389ds': startDs389,
};

export interface Started {
  readonly servers: ReadonlyMap<DirectoryKind, DirectoryServer>;
  /** One sentence for each kind that cannot be had here: what is missing and how to get it. */
  readonly missing: ReadonlyMap<DirectoryKind, string>;
  stop(): Promise<void>;
}

/**
 * Starts those whose packages are here or could be installed. @throws Error for one that is missing when CI=true, or
 * does not start
 */
export async function startServers(kinds: readonly DirectoryKind[] = KINDS): Promise<Started> {
  const parts = await findParts([...new Set(kinds.map((kind) => PARTS[kind]))]);
  const missing = new Map(
    kinds.flatMap((kind) => toList(parts.get(PARTS[kind])).map((message) => [kind, message] as const)),
  );
  if (process.env['CI'] === 'true' && missing.size > 0) throw new Error([...new Set(missing.values())].join('\n'));
  const starting = kinds
    .filter((kind) => !missing.has(kind))
    .map(async (kind) => [kind, await STARTS[kind]()] as const);
  const outcomes = await Promise.allSettled(starting);
  const servers = new Map(outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : [])));
  const stop = async (): Promise<void> => {
    await Promise.all([...servers.values()].map((server) => server.stop()));
  };
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) {
    await stop();
    throw failed.reason;
  }
  return { servers, missing, stop };
}

function toList<T>(value: T | undefined): readonly T[] {
  return value === undefined ? [] : [value];
}
