/**
 * The long fuzz run. `node bench/fuzz/run.ts [requests] [seed]`: default: a million checks. Exits 1 if one answer is
 * wrong.
 */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { runCampaign } from './campaign.ts';

const MB = 1024 * 1024;
/** The maximum growth of live memory after the warm-up. */
const MAX_LIVE_GROWTH_MB = 8;
/** The maximum growth of the process, including garbage. */
const MAX_RESIDENT_GROWTH_MB = 128;
const REPORT_EVERY = 100_000;

setFlagsFromString('--expose-gc');
const collect: unknown = runInNewContext('gc');

/**
 * Returns the megabytes of live objects and buffers. The memory of a buffer is freed one collection after the buffer.
 */
function liveMb(): number {
  if (typeof collect !== 'function') throw new Error('this runtime does not let its garbage be collected');
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / MB;
}

const residentMb = (): number => process.memoryUsage.rss() / MB;

const requests = Number(process.argv[2] ?? 1_000_000);
const seed = Number(process.argv[3] ?? Date.now() % 2 ** 31);
const warm = Math.min(REPORT_EVERY, Math.floor(requests / 2));

console.log(`${requests} CheckRequests, seed ${seed}`);
const started = performance.now();
let warmLive = 0;
let warmResident = 0;
let highest = 0;
const { outcomes, complaints } = runCampaign(seed, requests, (done) => {
  if (done === warm) {
    warmLive = liveMb();
    warmResident = residentMb();
  }
  if (done > warm && done % 10_000 === 0) highest = Math.max(highest, residentMb());
  if (done % REPORT_EVERY === 0) console.log(`${done} done, ${residentMb().toFixed()} MB resident`);
});
const seconds = (performance.now() - started) / 1000;
const live = liveMb();

console.log(`\n${(requests / seconds).toFixed()} a second, judging included`);
console.log(
  `alive: ${warmLive.toFixed(1)} MB warm, ${live.toFixed(1)} MB at the end; resident: ${warmResident.toFixed()} MB warm, ${highest.toFixed()} MB at most`,
);
for (const [code, count] of [...outcomes].sort((a, b) => b[1] - a[1]))
  console.log(`${String(count).padStart(10)}  ${code}`);

const wrong = complaints.map(({ complaint, message }) => `${complaint}\n  ${message}`);
if (live - warmLive > MAX_LIVE_GROWTH_MB)
  wrong.push(`${(live - warmLive).toFixed(1)} MB more are alive than when warm`);
if (highest - warmResident > MAX_RESIDENT_GROWTH_MB)
  wrong.push(`resident memory grew by ${(highest - warmResident).toFixed()} MB`);
for (const line of wrong) console.error(`WRONG: ${line}`);
console.log(
  wrong.length === 0 ? '\nNo crash, no fault, no allow without a valid credential, no code 0 but of an allow.' : '',
);
process.exitCode = wrong.length > 0 ? 1 : 0;
