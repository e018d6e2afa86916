/**
 * `npm run bench` runs every benchmark; `npm run bench -- gate` runs one. Text to the terminal, JSON to bench/results/.
 * BENCH_ROUNDS and BENCH_CALLS make the rounds of a run fewer or more, and shorter or longer.
 */

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { bodySize } from './body-size.ts';
import { budgetLists } from './budget-lists.ts';
import { conformance } from './conformance/conformance.ts';
import { consoleBenchmark } from './console.ts';
import { decisionLog } from './decision-log.ts';
import { difference } from './difference.ts';
import { directory } from './directory.ts';
import { envoyCost } from './envoy-cost.ts';
import { freshness } from './freshness.ts';
import { gate } from './gate.ts';
import { hostile } from './hostile/hostile.ts';
import { hungGate } from './hostile/hung-gate.ts';
import { longStream } from './hostile/long-stream.ts';
import { processes } from './hostile/process.ts';
import { iam } from './iam.ts';
import { limits } from './limits.ts';
import { login } from './login.ts';
import { population } from './population-flat.ts';
import { worstBody } from './worst-body.ts';
import { worstDecide } from './worst-decide.ts';

const BENCHMARKS: Readonly<Record<string, () => Promise<void>>> = {
  gate,
  'decision-log': decisionLog,
  'body-size': bodySize,
  'envoy-cost': envoyCost,
  limits,
  population,
  freshness,
  login,
  directory,
  iam,
  'budget-lists': budgetLists,
  console: consoleBenchmark,
  'worst-body': worstBody,
  hostile,
  processes,
  'hung-gate': hungGate,
  'long-stream': longStream,
  fuzz,
  conformance,
  'worst-decide': worstDecide,
  difference,
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in BENCHMARKS));
if (unknown.length > 0) {
  console.error(`No benchmark named ${unknown.join(', ')}. There are: ${Object.keys(BENCHMARKS).join(', ')}.`);
  process.exit(2);
}
for (const [name, run] of Object.entries(BENCHMARKS)) {
  if (asked.length === 0 || asked.includes(name)) await run();
}

/** A process of its own, whose memory is watched. */
async function fuzz(): Promise<void> {
  execFileSync(process.execPath, [join(import.meta.dirname, 'fuzz/run.ts')], { stdio: 'inherit' });
}
