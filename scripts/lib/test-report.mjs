/** The end of `npm test`. Runs on Node 20, as all scripts do that install Node 26. */

import { cpus } from 'node:os';

const SHOWN = 20;

export function summaryOf(results) {
  if (results === undefined) return '0 passed, 1 failed';
  const tests = results.files.flatMap((file) => file.tests);
  const count = (state) => tests.filter((test) => test.state === state).length;
  const broken = results.files.filter(
    ({ isBroken, tests }) => isBroken && tests.every(({ state }) => state !== 'failed'),
  );
  const skipped = count('skipped');
  const counts = `${count('passed')} passed, ${count('failed') + broken.length + results.unhandledErrors} failed`;
  return skipped > 0 ? `${counts}, ${skipped} skipped` : counts;
}

export function reportOf({ files }) {
  const parts = [...new Set(files.map((file) => file.part))].map((part) => {
    const own = files.filter((file) => file.part === part);
    return [
      part,
      `${own.length}`,
      `${own.reduce((sum, file) => sum + file.tests.length, 0)}`,
      seconds(own, (file) => file.importMs),
      seconds(own, (file) => file.testsMs),
      seconds(own, (file) => file.processorMs ?? 0),
    ];
  });
  const slowFiles = files
    .toSorted((one, other) => costOf(other) - costOf(one))
    .slice(0, SHOWN)
    .map((file) => [
      file.file,
      seconds([file], (each) => each.importMs),
      seconds([file], (each) => each.testsMs),
      seconds([file], (each) => each.processorMs ?? 0),
    ]);
  const slowTests = files
    .flatMap((file) => file.tests.map((test) => ({ ...test, file: file.file })))
    .toSorted((one, other) => other.ms - one.ms)
    .slice(0, SHOWN)
    .map((test) => [`${test.file}: ${test.name}`, seconds([test], (each) => each.ms)]);
  return [
    table(['part', 'files', 'tests', 'import s', 'tests s', 'processor s'], parts),
    table([`the ${SHOWN} slowest files`, 'import s', 'tests s', 'processor s'], slowFiles),
    table([`the ${SHOWN} slowest tests`, 's'], slowTests),
  ].join('\n\n');
}

/** Processor time tells more than the clock: files run at the same time and wait for each other. */
function costOf(file) {
  return Math.max(file.processorMs ?? 0, file.testsMs);
}

function seconds(items, msOf) {
  return (items.reduce((sum, item) => sum + msOf(item), 0) / 1000).toFixed(1);
}

/** The first column is aligned to the left, the others to the right. */
function table(head, rows) {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const pad = (text, column) => (column === 0 ? text.padEnd(widths[column]) : text.padStart(widths[column]));
  return lines.map((line) => line.map(pad).join('  ')).join('\n');
}

export function processorSeconds() {
  const spent = cpus().flatMap(({ times }) => [times.user, times.nice, times.sys]);
  return spent.reduce((sum, ms) => sum + ms, 0) / 1000;
}
