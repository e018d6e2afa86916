/**
 * A folder for everything that one run of the tests writes, and the end of everything that it started: after the run, and at the next
 * run for one that was killed.
 */

import { chmod, mkdtemp, readdir, readFile, readlink, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PREFIX = 'postern-run-';
/** The whole name, with the process id: a shorter name would also be a part of the names of runs that go on. */
const NAME = /^postern-run-(\d+)-\w{6}$/;
/** A file system in memory, where Linux has one. */
const MEMORY = '/dev/shm';
/** A run takes about 1 GiB. */
const ENOUGH_BYTES = 4 * 2 ** 30;
const END_LIMIT_MS = 5_000;
const POLL_MS = 50;

/** Makes the folder, which is short, as the paths of Unix sockets must be, and removes what earlier runs left behind. */
export async function openRun() {
  const base = await baseFolder();
  await sweep(base);
  const folder = await mkdtemp(join(base, `${PREFIX}${process.pid}-`));
  // When the tests run as root, servers in it run as other users, which must get through.
  await chmod(folder, 0o711);
  return { folder, close: () => remove(folder) };
}

/**
 * TMPDIR where it is set. Otherwise memory, where it suffices and programs may run: a database of a test is a thousand small files, and
 * making them on a disk takes ten times as long.
 */
async function baseFolder() {
  if (process.env.TMPDIR) return tmpdir();
  const mounts = await readFile('/proc/mounts', 'utf8').catch(() => '');
  const options = mounts.split('\n').flatMap((line) => {
    const [, point, , list = ''] = line.split(' ');
    return point === MEMORY ? [list.split(',')] : [];
  });
  const isUsable = options.length > 0 && options.every((each) => each.includes('rw') && !each.includes('noexec'));
  if (!isUsable) return tmpdir();
  const { bavail, bsize } = await statfs(MEMORY);
  return bavail * bsize >= ENOUGH_BYTES ? MEMORY : tmpdir();
}

async function sweep(base) {
  const names = await readdir(base);
  for (const name of names) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && !isRunning(Number(pid))) await remove(join(base, name));
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

async function remove(folder) {
  for (const signal of ['SIGINT', 'SIGKILL']) {
    const end = performance.now() + END_LIMIT_MS;
    let pids = await processesOf(folder);
    for (const pid of pids) kill(pid, signal);
    for (; pids.length > 0 && performance.now() < end; pids = await processesOf(folder)) await sleep(POLL_MS);
  }
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** The processes whose environment, command line or working directory names the folder; none where the system has no /proc. */
async function processesOf(folder) {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const facts = await Promise.all([
        readFile(`/proc/${pid}/environ`, 'latin1').catch(() => ''),
        readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => ''),
        readlink(`/proc/${pid}/cwd`).catch(() => ''),
      ]);
      // A process that has ended, and whose parent has not yet asked for its exit code, has no command line.
      return facts[1] !== '' && facts.some((fact) => fact.includes(folder)) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended by itself.
  }
}
