/**
 * `npm run console:size`: the bytes that a browser fetches before the console's first screen is usable, and those that
 * each other screen adds. Fails if a first load is larger than it may be. With --json the figures go to standard output
 * as JSON, with the files.
 */

import { parseArgs } from 'node:util';
import { type Load, MAX_FIRST_LOAD_BYTES, measureConsole } from './lib/console-size.ts';

const { values: options } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const size = await measureConsole();
if (options.json) console.log(JSON.stringify(size));
else {
  print('First load', size.first);
  print('What a screen adds to the frame around it', size.screens);
  print('Fonts, fetched when a character needs them', size.fonts);
}
for (const { name, gzip } of size.first.filter((load) => load.gzip > MAX_FIRST_LOAD_BYTES)) {
  console.error(`The first load (${name}) has ${gzip} bytes with gzip; it may have ${MAX_FIRST_LOAD_BYTES}.`);
  process.exitCode = 1;
}

function print(title: string, loads: readonly Load[]): void {
  const line = (cells: readonly (string | number)[]): string =>
    cells.map((cell, i) => (i === 0 ? String(cell).padEnd(42) : String(cell).padStart(9))).join('');
  console.log(`\n${line([title, 'gzip', 'brotli', 'raw', 'files'])}`);
  for (const { name, gzip, brotli, raw, files } of loads)
    console.log(line([`  ${name}`, gzip, brotli, raw, files.length]));
}
