/**
 * The long fuzz run of the gRPC listener. `node bench/fuzz/http2/run.ts [frames] [connections] [seed]`: 10,000,000
 * mutated frames and 1,000,000 mutated connections by default. Exits 1 if a rule is broken.
 */

import { writeResult } from '../../stack.ts';
import { createRandom } from '../random.ts';
import { type Plan, runPlan, type Tally } from './campaign.ts';
import { startTarget } from './target.ts';

const MB = 1024 * 1024;
/** The maximum growth of the process after its warm-up, including garbage. */
const MAX_RESIDENT_GROWTH_MB = 160;

const frames = Number(process.argv[2] ?? 10_000_000);
const connections = Number(process.argv[3] ?? 1_000_000);
const seed = Number(process.argv[4] ?? Date.now() % 2 ** 31);
const residentMb = (): number => process.memoryUsage.rss() / MB;

console.log(`${frames} frames, ${connections} connections, seed ${seed}`);
await using target = await startTarget();
const random = createRandom(seed);
// Warm-up: the runtime has its room before growth counts.
await runPlan('frames', random, target, Math.min(100_000, frames));
await runPlan('connections', random, target, Math.min(5000, connections));
const warmMb = residentMb();
let mostMb = warmMb;

async function run(plan: Plan, until: number): Promise<Tally> {
  const began = performance.now();
  let reported = 0;
  const tally = await runPlan(plan, random, target, until, (now) => {
    if (now.connections % 100 === 0) mostMb = Math.max(mostMb, residentMb());
    if (now[plan] < reported + until / 10) return;
    reported = now[plan];
    console.log(`${now.frames} frames on ${now.connections} connections, ${residentMb().toFixed()} MB resident`);
  });
  const seconds = (performance.now() - began) / 1000;
  console.log(
    `${plan}: ${tally.frames} frames, ${tally.connections} connections, ${tally.allows} allows in ${seconds.toFixed()} s\n`,
  );
  return tally;
}

const tallies = [await run('frames', frames), await run('connections', connections)];
const wrong = tallies.flatMap(({ complaints }) => complaints.map(({ complaint, bytes }) => `${complaint}\n  ${bytes}`));
const { stats } = target.calls;
if (stats.unfinishedBytes !== 0 || stats.open !== 0) wrong.push(`calls are left: ${JSON.stringify(stats)}`);
if (mostMb - warmMb > MAX_RESIDENT_GROWTH_MB) wrong.push(`resident memory grew by ${(mostMb - warmMb).toFixed()} MB`);
console.log(`resident: ${warmMb.toFixed()} MB warm, ${mostMb.toFixed()} MB at most`);
for (const line of wrong) console.error(`WRONG: ${line}`);
if (wrong.length === 0)
  console.log('No crash, no exception, no answer on the wrong stream, no code 0 but of an allow.');
writeResult('fuzz-http2', { seed, tallies, warmMb, mostMb, wrong });
process.exitCode = wrong.length > 0 ? 1 : 0;
