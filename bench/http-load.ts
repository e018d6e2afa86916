/** Runs the HTTP load in a process of its own, on the core that the server does not have. */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import type { HttpLoadResult, Job } from './iam-load.ts';
import { LOAD_CORE } from './stack.ts';

/** Bytes; a latency takes some twenty. */
const MAX_OUTPUT = 1 << 26;

export function runHttpLoad(job: Job): HttpLoadResult {
  const script = join(import.meta.dirname, 'iam-load.ts');
  const output = execFileSync('taskset', ['-c', LOAD_CORE, process.execPath, script], {
    input: JSON.stringify(job),
    maxBuffer: MAX_OUTPUT,
    encoding: 'utf8',
  });
  return JSON.parse(output) as HttpLoadResult;
}
