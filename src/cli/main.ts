/** Which command runs, and how its failure is told: one clear sentence, and an exit code. */

import manifest from '../../package.json' with { type: 'json' };
import { DatabaseNotReadyError } from '../store/not-ready.ts';
import { parseArguments, UsageError } from './arguments.ts';
import { COMMANDS, type Command, usage } from './commands.ts';
import { InvalidConfigError } from './configuration.ts';
import { failure } from './failure.ts';
import { boundHeapGrowth } from './heap.ts';

const OK = 0;
const FAILED = 1;
/** Wrong usage, wrong configuration, or a database that the command must not use as it is: nothing was started or changed. */
const REFUSED = 2;

export async function main(argv: readonly string[]): Promise<number> {
  boundHeapGrowth();
  // A reader that goes away (`| head`) is no reason to stop deciding.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  try {
    return await run(argv);
  } catch (error) {
    if (error instanceof InvalidConfigError || error instanceof DatabaseNotReadyError) {
      process.stderr.write(`${error.message}\n`);
      return REFUSED;
    }
    process.stderr.write(`${failure(error)}\n`);
    return FAILED;
  }
}

async function run(argv: readonly string[]): Promise<number> {
  const [first] = argv;
  if (first === undefined || first === 'help' || asksForHelp(first)) return shown(usage());
  if (first === '--version' || first === 'version') return shown(`${manifest.version}\n`);
  const command = COMMANDS.find(({ words }) => words.every((word, i) => argv[i] === word));
  if (command === undefined) {
    const begunSo = COMMANDS.filter(({ words }) => words[0] === first);
    if (begunSo.length > 0 && argv.some(asksForHelp)) return shown(usage(begunSo));
    return refused(
      `Unknown command: ${argv.slice(0, begunSo.length > 0 ? 2 : 1).join(' ')}.`,
      begunSo.length > 0 ? begunSo : COMMANDS,
    );
  }
  const given = argv.slice(command.words.length);
  if (given.some(asksForHelp)) return shown(usage([command]));
  try {
    return await command.run(parseArguments(given, command.options, command.readsWords));
  } catch (error) {
    if (error instanceof UsageError) return refused(error.message, [command]);
    throw error;
  }
}

function asksForHelp(word: string): boolean {
  return word === '--help' || word === '-h';
}

function shown(text: string): number {
  process.stdout.write(text);
  return OK;
}

function refused(why: string, commands: readonly Command[]): number {
  process.stderr.write(`${why}\n\n${usage(commands)}`);
  return REFUSED;
}
