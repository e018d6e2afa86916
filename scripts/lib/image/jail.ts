/**
 * Runs a command in an image's layout as a container engine would: its own root, read-only, as the image's user,
 * without capabilities that the user lacks. As root on Linux by `unshare` and `chroot`; anywhere else in the plain
 * folder, which shows missing files less surely.
 */

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Image } from './dockerfile.ts';

const run = promisify(execFile);

/** A program that was started, perhaps by way of others. */
export interface Started {
  /** Ends with the program's exit code, and carries its output. */
  readonly child: ChildProcess;
  /** Sends SIGTERM to the program itself. */
  terminate(): Promise<void>;
}

export interface Jail {
  /** For people: how the command is confined. */
  readonly says: string;
  start(command: readonly string[], env: Readonly<Record<string, string>>): Started;
}

/** A program that is the child itself. */
export function startedAs(child: ChildProcess): Started {
  return { child, terminate: async () => void child.kill('SIGTERM') };
}

/**
 * Mounts what the base image stands for (C library, Node, /proc, /dev), the layout read-only, then becomes the user.
 * $1 root, $2 node, $3 workdir, $4 uid, $5 gid; then the command.
 */
const SCRIPT = `set -e
root=$1 node=$2 workdir=$3 uid=$4 gid=$5; shift 5
mount --make-rprivate /
mount --bind "$root" "$root"
for folder in lib lib64 usr/lib; do
  [ -d /$folder ] || continue
  mount --bind /$folder "$root/$folder"; mount -o remount,bind,ro "$root/$folder"
done
mount --bind "$node" "$root/usr/local/bin/node"
mount -t proc proc "$root/proc"
for device in null zero urandom; do mount --bind /dev/$device "$root/dev/$device"; done
mount -o remount,bind,ro "$root"
exec unshare --root "$root" --wd "$workdir" --setgid "$gid" --setuid "$uid" -- "$@"
`;

export interface JailParts {
  readonly image: Image;
  /** The folder that holds the layout. */
  readonly root: string;
  /** The real file of Node. */
  readonly node: string;
}

export async function openJail(parts: JailParts): Promise<Jail> {
  return (await canUnshare()) ? rootJail(parts) : plainFolder(parts);
}

async function canUnshare(): Promise<boolean> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  return run('unshare', ['--mount', '--pid', '--fork', 'true']).then(
    () => true,
    () => false,
  );
}

async function rootJail({ image, root, node }: JailParts): Promise<Jail> {
  for (const folder of ['lib', 'lib64', 'usr/lib', 'usr/local/bin', 'proc', 'dev']) {
    await mkdir(join(root, folder), { recursive: true });
  }
  const files = ['usr/local/bin/node', 'dev/null', 'dev/zero', 'dev/urandom'].map((file) => join(root, file));
  await run('touch', files);
  await run('chmod', ['-R', 'u=rwX,go=rX', root]);
  const { uid, gid } = image.user;
  return {
    says: `chroot, read-only, as ${uid}:${gid}, without a shell`,
    start: (command, env) => {
      const args = [root, node, image.workdir, String(uid), String(gid), ...command];
      const child = spawn(
        'unshare',
        ['--mount', '--pid', '--fork', '--kill-child', '--', '/bin/sh', '-c', SCRIPT, 'jail', ...args],
        {
          env: { PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...image.env, ...env },
          stdio: ['ignore', 'pipe', 'pipe'],
        },
      );
      return { child, terminate: () => terminateInner(child) };
    },
  };
}

/**
 * `unshare --fork` blocks SIGTERM and does not pass it on, so its only child gets the signal, as process 1 of a
 * container would.
 */
async function terminateInner({ pid }: ChildProcess): Promise<void> {
  const inner = Number(await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  if (!Number.isInteger(inner) || inner < 1) throw new Error('the jail runs no program');
  process.kill(inner, 'SIGTERM');
}

async function plainFolder({ image, root, node }: JailParts): Promise<Jail> {
  await run('chmod', ['-R', 'a-w', join(root, image.workdir)]);
  return {
    says: 'plain folder with read-only files, as this user (run it as root on Linux for a root of its own)',
    start: ([, ...args], env) =>
      startedAs(
        spawn(node, args, {
          cwd: join(root, image.workdir),
          env: { PATH: '/usr/bin:/bin', ...image.env, ...env },
          stdio: ['ignore', 'pipe', 'pipe'],
        }),
      ),
  };
}
