/** Conformance of the gRPC listener: h2spec on both of its transports. Ends with 1 when the built-in one fails a case without permission. */

import { printTable, scratch, writeResult } from '../stack.ts';
import { buildH2spec, PERMITTED, runH2spec } from './h2spec.ts';

export async function conformance(): Promise<void> {
  const directory = scratch();
  const binary = buildH2spec(directory);
  const results = [await runH2spec(binary, directory, 'built-in'), await runH2spec(binary, directory, 'http2')];
  printTable(
    'h2spec 2.2.1',
    results.map(({ transport, passed, total, others }) => ({
      transport,
      passed: `${passed} of ${total}`,
      failed: others.filter(({ outcome }) => outcome === 'failed').length,
      skipped: others.filter(({ outcome }) => outcome === 'skipped').length,
    })),
  );
  const [own] = results;
  const others = (own?.others ?? []).map((other) => ({ ...other, permitted: PERMITTED[other.case] }));
  console.log('\nNot passed by the built-in transport:');
  for (const { case: name, outcome, permitted } of others) console.log(`- ${name} (${outcome}): ${permitted ?? 'NOT PERMITTED'}`);
  writeResult('conformance', { results, others });
  if (own !== undefined && own.total > 0 && others.every(({ permitted }) => permitted !== undefined)) return;
  console.log('\nFAILED: a case is not passed, and no section permits that.');
  process.exitCode = 1;
}
