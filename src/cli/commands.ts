/** Every command in one table: its words, options and what it is for. */

import type { Arguments, OptionNames } from './arguments.ts';
import { checkConfig } from './check-config.ts';
import { demo } from './demo.ts';
import { explainCommand } from './explain.ts';
import { migrateCommand } from './migrate.ts';
import { disablePolicyCommand } from './policy-disable.ts';
import { resetAdminCommand } from './reset-admin.ts';
import { serve } from './serve.ts';

export interface Command {
  readonly words: readonly string[];
  /** What stands behind the words in the usage text. */
  readonly takes: string;
  readonly summary: string;
  readonly options: OptionNames;
  /** Resolves with the exit code. */
  readonly run: (args: Arguments) => Promise<number>;
}

const CONFIG: OptionNames = { config: 'value' };

export const COMMANDS: readonly Command[] = [
  { words: ['serve'], takes: '', summary: 'The server.', options: CONFIG, run: serve },
  { words: ['demo'], takes: '', summary: 'The server with a real Envoy and a stand-in AI upstream.', options: CONFIG, run: demo },
  { words: ['migrate'], takes: '', summary: 'Brings the database to this version.', options: CONFIG, run: migrateCommand },
  {
    words: ['check-config'],
    takes: '',
    summary: 'Shows the configuration as understood, or everything that is wrong with it.',
    options: CONFIG,
    run: checkConfig,
  },
  {
    words: ['explain'],
    takes: '--subject ID | --credential TEXT, --method M --path P [--tenant T] [--ip A] [--time T] [--body B] [--content-type C]',
    summary: 'Why a request is allowed or denied. Reads the credential from POSTERN_CREDENTIAL too.',
    options: {
      ...CONFIG,
      subject: 'value',
      credential: 'value',
      method: 'value',
      path: 'value',
      tenant: 'value',
      ip: 'value',
      time: 'value',
      body: 'value',
      'content-type': 'value',
    },
    run: explainCommand,
  },
  {
    words: ['policy', 'disable'],
    takes: 'NAME [--tenant T]',
    summary: 'Switches a policy off: the way back in when one locked its author out.',
    options: { ...CONFIG, tenant: 'value' },
    run: disablePolicyCommand,
  },
  {
    words: ['reset-admin'],
    takes: '[--email E]',
    summary: 'A new password for the administrator, printed once; its sessions end.',
    options: { ...CONFIG, email: 'value' },
    run: resetAdminCommand,
  },
];

export function usage(): string {
  const lines = COMMANDS.map(
    ({ words, takes, summary }) => `  postern ${[...words, takes].join(' ').trimEnd()}\n      ${summary}\n`,
  );
  return `Postern: access control for AI platforms.\n\n${lines.join('')}\nAll take --config FILE (or POSTERN_CONFIG).\n`;
}
