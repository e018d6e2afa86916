/** Which command runs, and how its failure is told: one clear sentence, and an exit code. */

import { parseArguments, UsageError } from './arguments.ts';
import { COMMANDS, usage } from './commands.ts';
import { ConfigProblems } from './configuration.ts';
import { failure } from './failure.ts';
import { boundHeapGrowth } from './heap.ts';

const OK = 0;
const FAILED = 1;
/** Wrong usage or wrong configuration: nothing was started. */
const REFUSED = 2;

export async function main(argv: readonly string[]): Promise<number> {
  boundHeapGrowth();
  // A reader that goes away (`| head`) is no reason to stop deciding.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    const found = COMMANDS.find(({ words }) => words.every((word, i) => argv[i] === word));
    if (found === undefined) {
      const asked = argv[0];
      const helped = asked === undefined || asked === 'help' || asked === '--help' || asked === '-h';
      (helped ? process.stdout : process.stderr).write(helped ? usage() : `There is no command ${asked}.\n\n${usage()}`);
      return helped ? OK : REFUSED;
    }
    return await found.run(parseArguments(argv.slice(found.words.length), found.options));
  } catch (error) {
    if (error instanceof UsageError) {
      process.stderr.write(`${error.message}\n\n${usage()}`);
      return REFUSED;
    }
    if (error instanceof ConfigProblems) {
      process.stderr.write(`${error.message}\n`);
      return REFUSED;
    }
    process.stderr.write(`${failure(error)}\n`);
    return FAILED;
  }
}
