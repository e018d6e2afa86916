/** Options of a command, read strictly: an unknown one is refused, not ignored. */

import { parseArgs } from 'node:util';

export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** An option's name without its dashes, and whether it takes a value. */
export type OptionNames = Readonly<Record<string, 'value' | 'flag'>>;

export interface Arguments {
  readonly value: (name: string) => string | undefined;
  readonly flag: (name: string) => boolean;
  readonly words: readonly string[];
}

/** @param readsWords whether there may be words beside the options */
export function parseArguments(argv: readonly string[], names: OptionNames, readsWords = false): Arguments {
  const options = Object.fromEntries(
    Object.entries(names).map(([name, kind]) => [
      name,
      { type: kind === 'value' ? ('string' as const) : ('boolean' as const) },
    ]),
  );
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({ args: [...argv], options, allowPositionals: true, strict: true });
  } catch (error) {
    throw new UsageError(`${firstSentence(error instanceof Error ? error.message : String(error))}.`);
  }
  const { values, positionals } = parsed;
  // They are not repeated: one of them may be a password.
  if (positionals.length > 0 && !readsWords)
    throw new UsageError('This command accepts only options. Remove the other arguments.');
  return {
    value: (name) => {
      const value = values[name];
      return typeof value === 'string' ? value : undefined;
    },
    flag: (name) => values[name] === true,
    words: positionals,
  };
}

/** Node goes on with advice that fits no option of ours. */
function firstSentence(text: string): string {
  return text.replace(/\.?(?:\s*\n|\.\s|$)[\s\S]*$/, '');
}
