import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { endpointTable, errorTable } from './api.ts';
import { commandsPage } from './commands.ts';
import { configurationPage } from './configuration.ts';
import { errorsPage } from './errors.ts';
import { withTables } from './markdown.ts';
import { metricTable } from './metrics.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Returns the pages of docs that are written from the code, by path. In some pages, only tables are. */
export function referencePages(): ReadonlyMap<string, string> {
  const page = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
  return new Map([
    ['docs/configuration.md', configurationPage()],
    ['docs/cli.md', commandsPage()],
    ['docs/errors.md', errorsPage()],
    [
      'docs/metrics.md',
      withTables(page('docs/metrics.md'), {
        'metrics of directory': metricTable('directory'),
        'metrics of server': metricTable('server'),
        'metrics of limits': metricTable('limits'),
      }),
    ],
    ['docs/api.md', withTables(page('docs/api.md'), { endpoints: endpointTable(), errors: errorTable() })],
  ]);
}
