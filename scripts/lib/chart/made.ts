/** The files of the chart that are made of others, so that both always agree. */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chartReadme } from './readme.ts';
import { usageReader } from './usage-reader.ts';
import { documentValues } from './values-docs.ts';
import { valuesSchema } from './values-schema.ts';

/** @param root the project's folder; @returns path from it -> text */
export async function madeFiles(root: string): Promise<ReadonlyMap<string, string>> {
  const { values } = documentValues(await readFile(join(root, 'helm/postern/values.yaml'), 'utf8'));
  return new Map([
    ['helm/postern/values.schema.json', `${JSON.stringify(valuesSchema(values), null, 2)}\n`],
    ['helm/postern/README.md', chartReadme(values)],
    ['helm/postern/files/usage.lua', await usageReader(join(root, 'envoy/production.yaml'))],
  ]);
}
