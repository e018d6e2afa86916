/** Runs the command that the arguments name. Reports its failure in one sentence, with an exit code. */

import manifest from '../../package.json' with { type: 'json' };
import { didYouMean } from '../config/config-error.ts';
import { Fault, Refusal } from '../domain/errors.ts';
import { fieldSentence } from '../domain/problem-details.ts';
import { sqlState } from '../store/faults.ts';
import { DatabaseNotReadyError } from '../store/not-ready.ts';
import { parseArguments, UsageError } from './arguments.ts';
import { COMMANDS, type Command, optionsOf, readsWords, usage } from './commands.ts';
import { InvalidConfigError } from './configuration.ts';
import { printed } from './output.ts';
import { childKind } from './process-messages.ts';

const FAILED = 1;
/** Wrong usage, a wrong configuration, or a database that the command must not use. Nothing was changed. */
const REFUSED = 2;
/** The output of these commands is a log. A full disk must not change how a server ends. */
const SERVERS: ReadonlySet<string | undefined> = new Set(['serve', 'demo']);

export async function main(argv: readonly string[]): Promise<number> {
  try {
    const code = await run(argv);
    return SERVERS.has(argv[0]) ? code : await unlessLost(code);
  } catch (error) {
    process.stderr.write(`${failureText(error)}\n`);
    return FAILED;
  }
}

/**
 * Waits until the readers have all output, which a pipe takes no faster than it is read. A reader may close its end
 * (`| head`). Every other failure loses output that the command was run for.
 */
async function unlessLost(code: number): Promise<number> {
  const failed: StreamError | null = process.stdout.errored;
  const [late] = await Promise.all([written(process.stdout), written(process.stderr)]);
  const lost = failed ?? late;
  if (lost === undefined || lost.code === 'EPIPE') return code;
  process.stderr.write(`Standard output could not be written, so the output is not complete: ${lost.message}.\n`);
  return code === 0 ? FAILED : code;
}

type StreamError = Error & { readonly code?: string };

/** Resolves when the reader has taken what was written before, or to the reason why it never will. */
function written(stream: NodeJS.WriteStream): Promise<StreamError | undefined> {
  return new Promise((resolve) => {
    stream.write('', (error) => resolve(error ?? undefined));
  });
}

async function run(argv: readonly string[]): Promise<number> {
  const child = childKind();
  if (child !== undefined) return (await import('./child.ts')).serveAsChild(child);
  const [first] = argv;
  if (first === undefined || first === 'help' || isHelp(first)) return printed(usage());
  if (first === '--version' || first === 'version') return printed(`${manifest.version}\n`);
  const command = COMMANDS.find(({ words }) => words.every((word, i) => argv[i] === word));
  if (command === undefined) {
    const withFirstWord = COMMANDS.filter(({ words }) => words[0] === first);
    if (withFirstWord.length > 0 && argv.some(isHelp)) return printed(usage(withFirstWord));
    if (withFirstWord.length > 0) return refused(`Unknown command: ${argv.slice(0, 2).join(' ')}.`, withFirstWord);
    const meant = didYouMean(first, new Set(COMMANDS.map(({ words }) => words[0] ?? '')));
    process.stderr.write(
      `Unknown command: ${first}${meant === '' ? '.' : meant}\npostern --help lists the commands.\n`,
    );
    return REFUSED;
  }
  const given = argv.slice(command.words.length);
  if (given.some(isHelp)) return printed(usage([command]));
  try {
    return await command.run(parseArguments(given, optionsOf(command), readsWords(command)));
  } catch (error) {
    const code = command.refused ?? REFUSED;
    if (error instanceof UsageError) return refused(error.message, [command], code);
    if (!(error instanceof InvalidConfigError || error instanceof DatabaseNotReadyError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return code;
  }
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h';
}

function refused(why: string, commands: readonly Command[], code = REFUSED): number {
  process.stderr.write(`${why}\n\n${usage(commands)}`);
  return code;
}

/** One sentence for the operator. */
function failureText(error: unknown): string {
  if (error instanceof Refusal) {
    // The message usually has the first of them already.
    const others = (error.extras.errors ?? []).filter(
      (field) => ![field.message, fieldSentence(field)].some((text) => error.message.includes(text)),
    );
    return [error.message, ...others.map(fieldSentence)].join(' ');
  }
  if (error instanceof Fault) {
    const cause = error.cause instanceof Error ? error.cause.message : '';
    const more = error.message.includes(cause) ? '' : ` (${cause})`;
    return sqlState(error.cause) === undefined
      ? `The database did not answer: ${withoutStatement(error)}${more}. Check database.url and that PostgreSQL runs.`
      : `PostgreSQL answered with an error: ${withoutStatement(error)}. Check database.url.`;
  }
  if (!(error instanceof Error)) return String(error);
  return 'severity' in error
    ? `The database rejected a statement. Check that database.url names the right database and role. PostgreSQL says: ${withoutStatement(error)}`
    : error.message;
}

/** The query builder writes the statement before the message of an error: of a migration, that is a file. */
function withoutStatement(error: Error): string {
  return error.message.split(' - ').at(-1) ?? '';
}
