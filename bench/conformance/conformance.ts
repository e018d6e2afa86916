/**
 * Conformance of the gRPC listener on both of its transports: h2spec, gRPC clients, and grpc-go's interoperability
 * cases. BENCH_CONFORMANCE runs only one part: `h2spec`, `clients` or `interop`. Ends with 1 when the built-in
 * transport fails a case without permission.
 */

import { printTable, scratch, writeResult } from '../stack.ts';
import { type ClientRun, runClients } from './clients/clients.ts';
import { buildH2spec, PERMITTED, runH2spec } from './h2spec.ts';
import { type InteropResult, NOT_RUN, runInterop } from './interop/interop.ts';

/** Each returns whether the built-in transport passes. */
const PARTS: Readonly<Record<string, (directory: string) => Promise<boolean>>> = { h2spec, clients, interop };

export async function conformance(): Promise<void> {
  const directory = scratch();
  const only = process.env['BENCH_CONFORMANCE'];
  const failed: string[] = [];
  for (const [name, run] of Object.entries(PARTS)) {
    if ((only === undefined || only === name) && !(await run(directory))) failed.push(name);
  }
  if (failed.length === 0) return;
  console.log(`\nFAILED: the built-in transport does not pass a case of ${failed.join(', ')}.`);
  process.exitCode = 1;
}

async function h2spec(directory: string): Promise<boolean> {
  const binary = buildH2spec(directory);
  const results = [await runH2spec(binary, directory, 'built-in'), await runH2spec(binary, directory, 'grpc-js')];
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
  for (const { case: name, outcome, permitted } of others)
    console.log(`- ${name} (${outcome}): ${permitted ?? 'NOT PERMITTED'}`);
  writeResult('conformance', { results, others });
  return own !== undefined && own.total > 0 && others.every(({ permitted }) => permitted !== undefined);
}

async function clients(directory: string): Promise<boolean> {
  const runs = await runClients(directory);
  const [first] = runs;
  const columnOf = ({ client, security }: ClientRun): string => `${client}, ${security}`;
  for (const transport of ['built-in', 'grpc-js'] as const) {
    const own = runs.filter((run) => run.transport === transport);
    printTable(
      `gRPC clients on the transport ${transport}`,
      (first?.verdicts ?? []).map(({ name }, i) => ({
        case: name,
        ...Object.fromEntries(
          own.map((run) => [columnOf(run), run.verdicts[i]?.passed === true ? 'passed' : 'FAILED']),
        ),
      })),
    );
    for (const run of own) {
      for (const { name, passed, saw } of run.verdicts) if (!passed) console.log(`- ${columnOf(run)}: ${name}: ${saw}`);
    }
  }
  writeResult('conformance-clients', runs);
  return runs
    .filter(({ transport }) => transport === 'built-in')
    .every(({ verdicts }) => verdicts.every(({ passed }) => passed));
}

async function interop(directory: string): Promise<boolean> {
  const results = await runInterop(directory);
  const of = (name: string, transport: InteropResult['transport'], security: InteropResult['security']): string =>
    results.find((each) => each.name === name && each.transport === transport && each.security === security)?.passed ===
    true
      ? 'passed'
      : 'FAILED';
  printTable(
    "grpc-go's interoperability client",
    [...new Set(results.map(({ name }) => name))].map((name) => ({
      case: name,
      'built-in': of(name, 'built-in', 'plaintext'),
      'built-in, TLS': of(name, 'built-in', 'TLS'),
      'grpc-js': of(name, 'grpc-js', 'plaintext'),
      'grpc-js, TLS': of(name, 'grpc-js', 'TLS'),
    })),
  );
  for (const { name, transport, security, passed, said } of results) {
    if (!passed) console.log(`- ${name} on ${transport}, ${security}: ${said}`);
  }
  console.log('\nNot run:');
  for (const [names, why] of Object.entries(NOT_RUN)) console.log(`- ${names}: ${why}`);
  writeResult('conformance-interop', results);
  return results.filter(({ transport }) => transport === 'built-in').every(({ passed }) => passed);
}
