/** `postern ldap test`: runs a user's login at the directory step by step, and prints advice for a step that fails. */

import { directorySettings } from '../config/directories.ts';
import { openDirectories } from '../directory/directories.ts';
import type { TestStep } from '../directory/model.ts';
import { present } from '../domain/objects.ts';
import { printable } from './apply-plan.ts';
import { type Arguments, wordsOf } from './arguments.ts';
import { loadOrRefuse } from './configuration.ts';
import { readPassword } from './terminal.ts';

/** Needs no database and changes nothing. The exit code is 0 if every step succeeds, otherwise 1. */
export async function ldapTestCommand(args: Arguments): Promise<number> {
  const [username] = wordsOf(args, 'ldap test takes one name: that of the person who would log in.');
  const { config, secrets } = await loadOrRefuse(args);
  if (config.directories.length === 0)
    throw new Error('No directory is configured: set ldap.enabled, ldap.url and ldap.base-dn.');
  const directories = openDirectories(directorySettings(config, secrets));
  const directory = args.value('directory');
  const password = await readPassword(
    process.stdin,
    process.stderr,
    `Password of ${username} (empty = all but the person's bind): `,
  );
  const steps = await directories.test({ username, ...present({ password: password || undefined, directory }) });
  const warnings = directories.problems.map((problem) => `warning  ${printable(problem)}\n`);
  process.stdout.write([...warnings, ...steps.map(shown)].join(''));
  return steps.every(({ ok }) => ok) ? 0 : 1;
}

/** The directory's values may have any character, and its users write some of them. */
function shown({ step, ok, detail, advice, data }: TestStep): string {
  const lines = [
    `${ok ? 'ok' : 'FAILED'}`.padEnd(8) + step.padEnd(14) + detail,
    ...Object.entries(data ?? {}).flatMap(([name, value]) => values(name, value)),
    ...(advice === undefined ? [] : [`        -> ${advice}`]),
  ];
  return lines.map((line) => `${printable(line)}\n`).join('');
}

function values(name: string, value: unknown): readonly string[] {
  if (value === undefined) return [];
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  return all.map((one) => `${' '.repeat(22)}${name}: ${String(one)}`);
}
