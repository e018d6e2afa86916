import { commandsPage } from './commands.ts';
import { configurationPage } from './configuration.ts';
import { errorsPage } from './errors.ts';

/** Returns the pages of docs that are written from the code, by path. */
export function referencePages(): ReadonlyMap<string, string> {
  return new Map([
    ['docs/configuration.md', configurationPage()],
    ['docs/cli.md', commandsPage()],
    ['docs/errors.md', errorsPage()],
  ]);
}
