/** The browser that scripts and benchmarks drive. */

import { access } from 'node:fs/promises';
import { type Browser, chromium } from 'playwright-core';

const DEBIAN = '/usr/bin/chromium';

/** Rejects with how to get Chromium if there is none. `CHROMIUM` names another one than Debian's. */
export async function launchChromium(env: NodeJS.ProcessEnv = process.env): Promise<Browser> {
  const executablePath = env['CHROMIUM'] ?? DEBIAN;
  await access(executablePath).catch(() => {
    throw new Error(
      `Chromium is not at ${executablePath}: "apt-get install --no-install-recommends chromium" as root brings it on Debian; CHROMIUM=/path/to/chromium names another one.`,
    );
  });
  // Root has no sandbox of Chromium's to run in, and a container's /dev/shm is small.
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}
