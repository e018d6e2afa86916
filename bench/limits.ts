/**
 * Do limits hold over many servers, and what do they cost? BENCH_LIMITS=gate, rates, quota, keys, own or budgets runs only that
 * part. Ends with exit code 1 when a bound of docs/limits.md was passed or a goal missed.
 */

import { budgetsOfKeys } from './limits-budgets.ts';
import { gateWithLimits } from './limits-gate.ts';
import { manyKeys } from './limits-many-keys.ts';
import { ownRates } from './limits-own-rates.ts';
import { quotaUnderStreams } from './limits-quota.ts';
import { ratesAcrossServers } from './limits-rate.ts';
import { writeResult } from './stack.ts';

const PARTS = {
  gate: gateWithLimits,
  rates: ratesAcrossServers,
  quota: quotaUnderStreams,
  keys: manyKeys,
  own: ownRates,
  budgets: budgetsOfKeys,
};

export async function limits(): Promise<void> {
  const wanted = process.env['BENCH_LIMITS'];
  const results: Record<string, unknown> = {};
  const broken: string[] = [];
  for (const [name, run] of Object.entries(PARTS)) {
    if (wanted !== undefined && wanted !== name) continue;
    const result = await run();
    results[name] = result.rows;
    broken.push(...result.broken);
  }
  for (const sentence of broken) console.error(`NOT HELD: ${sentence}`);
  if (broken.length > 0) process.exitCode = 1;
  writeResult('limits', { ...results, broken });
}
