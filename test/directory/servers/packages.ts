/**
 * The real directory servers, the browser and the shell commands of the tests come from Debian's packages: what is
 * missing is installed by root, and named otherwise.
 */

import { execFile } from 'node:child_process';
import { access, chmod, rm, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const INSTALL_TIMEOUT_MS = 300_000;
const POLICY = '/usr/sbin/policy-rc.d';

interface Part {
  readonly what: string;
  /** All of them have to be there. */
  readonly programs: readonly string[];
  readonly packages: readonly string[];
  /** Why the tests of it need root; undefined = they do not. */
  readonly root?: string;
}

const PARTS = {
  openldap: {
    what: 'OpenLDAP (slapd)',
    programs: ['/usr/sbin/slapd', '/usr/sbin/slapadd', '/usr/bin/openssl'],
    packages: ['slapd', 'openssl'],
  },
  '389ds': {
    what: '389 Directory Server (ns-slapd)',
    programs: ['/usr/sbin/ns-slapd', '/usr/bin/certutil', '/usr/bin/pk12util', '/usr/bin/openssl'],
    packages: ['389-ds-base', 'libnss3-tools', 'openssl'],
    root: 'it runs as the user dirsrv of its package',
  },
  samba: {
    what: "Samba's Active Directory domain controller (samba)",
    programs: ['/usr/sbin/samba', '/usr/bin/samba-tool', '/usr/bin/openssl'],
    packages: [
      'samba-ad-dc',
      'samba',
      'samba-ad-provision',
      'samba-dsdb-modules',
      'samba-vfs-modules',
      'winbind',
      'python3-samba',
      'openssl',
    ],
    root: 'its ports are below 1024 and cannot be chosen',
  },
  chromium: {
    what: 'Chromium',
    programs: ['/usr/bin/chromium-headless-shell'],
    packages: ['chromium-headless-shell'],
  },
  shell: {
    what: 'The commands of the guides (curl, jq)',
    programs: ['/usr/bin/curl', '/usr/bin/jq'],
    packages: ['curl', 'jq'],
  },
} satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof PARTS;
export const PART_NAMES: readonly PartName[] = ['openldap', '389ds', 'samba', 'chromium', 'shell'];

/** One sentence for each part that is missing: what it is and how to get it. Installs what it can. */
export async function findParts(names: readonly PartName[] = PART_NAMES): Promise<ReadonlyMap<PartName, string>> {
  const wanted: PartName[] = [];
  for (const name of names) if (!(await isThere(PARTS[name]))) wanted.push(name);
  const why = wanted.length === 0 ? undefined : await install(wanted.flatMap((name) => PARTS[name].packages));
  const missing = new Map<PartName, string>();
  for (const name of names) {
    const part: Part = PARTS[name];
    const how = `"apt-get install --no-install-recommends ${part.packages.join(' ')}" as root on Debian`;
    if (!(await isThere(part)))
      missing.set(name, `Not found: ${part.what}${why === undefined ? '' : ` (${why})`}. Run ${how}.`);
    else if (part.root !== undefined && !isRoot())
      missing.set(name, `${part.what} needs root in tests, as ${part.root}: run them as root.`);
  }
  return missing;
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

async function isThere(part: Part): Promise<boolean> {
  const found = await Promise.all(part.programs.map((path) => exists(path)));
  return found.every(Boolean);
}

/** Undefined when it worked, else why it did not. */
async function install(packages: readonly string[]): Promise<string | undefined> {
  if (!isRoot() || !(await exists('/usr/bin/apt-get')) || !(await exists('/etc/debian_version')))
    return 'not root on Debian';
  await using _quiet = await noDaemonStarts();
  const options = {
    timeout: INSTALL_TIMEOUT_MS,
    maxBuffer: 1 << 24,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  };
  // Two test files may find out at once that something is missing.
  const apt = (...args: string[]) => run('apt-get', ['-q', '-o', 'DPkg::Lock::Timeout=240', ...args], options);
  const wanted = ['install', '-y', '--no-install-recommends', ...packages];
  try {
    await apt(...wanted).catch(async () => {
      await apt('update');
      await apt(...wanted);
    });
    return undefined;
  } catch (error) {
    return (error instanceof Error ? error.message : String(error)).trim().split('\n').at(-1);
  }
}

/** Installs the program that keeps Debian from starting installed daemons (invoke-rc.d(8)). An existing one stays. */
async function noDaemonStarts(): Promise<AsyncDisposable> {
  const ours = !(await exists(POLICY));
  if (ours) {
    await writeFile(POLICY, '#!/bin/sh\nexit 101\n');
    await chmod(POLICY, 0o755);
  }
  return {
    async [Symbol.asyncDispose]() {
      if (ours) await rm(POLICY, { force: true });
    },
  };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
