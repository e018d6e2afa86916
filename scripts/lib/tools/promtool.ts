/**
 * promtool: from the PATH, else taken out of Debian's package of Prometheus, of which nothing is installed or started.
 */

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cached, must, run, type ToolSearch } from './cache.ts';

const CACHE = 'promtool-debian';
/** Of Debian 12; one on the PATH may be newer. */
export const PROMTOOL_VERSION = '2.42';
const HOW = 'install Prometheus, or put promtool on the PATH';

export async function findPromtool(): Promise<ToolSearch> {
  if ((await run('promtool', ['--version'])).ok) return { kind: 'found', path: 'promtool' };
  const found = await cached(CACHE, 'promtool', HOW, async (folder) => {
    // apt-get downloads as a user of its own, who may not write here unless everybody may.
    await must('apt-get', ['download', '-o', 'APT::Sandbox::User=root', 'prometheus'], { cwd: folder });
    const [archive] = (await readdir(folder)).filter((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error('apt-get brought no package');
    await must('dpkg-deb', ['-x', archive, 'package'], { cwd: folder });
    await rm(join(folder, archive));
  });
  return found.kind === 'found' ? { kind: 'found', path: join(found.path, 'package/usr/bin/promtool') } : found;
}
