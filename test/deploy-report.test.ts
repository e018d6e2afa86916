/** `npm run test:deploy`: what its runner makes of the outcomes. */

import { expect, it } from 'vitest';
import type { Check, CheckOutcome } from '../scripts/lib/deploy-check.ts';
import { runChecks } from '../scripts/lib/deploy-report.ts';

function check(name: string, run: () => Promise<CheckOutcome>, more: Partial<Check> = {}): Check {
  return { name, run, ...more };
}

async function ran(checks: readonly Check[], mustBeThere = false): Promise<{ holds: boolean; text: string }> {
  const lines: string[] = [];
  const holds = await runChecks([{ name: 'part', checks }], mustBeThere, (line) => lines.push(line));
  return { holds, text: lines.join('\n') };
}

const ok = async (): Promise<CheckOutcome> => ({ kind: 'ok', says: 'seen' });
const gone = async (): Promise<CheckOutcome> => ({ kind: 'unavailable', says: 'pip brings it' });

it('the runner prints each check with its tool and version, and holds when all hold', async () => {
  const { holds, text } = await ran([check('the chart lints', ok, { tool: { name: 'helm', version: '4.3.1' } })]);
  expect(holds).toBe(true);
  expect(text).toContain('ok      the chart lints [helm 4.3.1]: seen');
  expect(text).toContain('1 hold, 0 failed, 0 could not be checked here.');
});

it('the runner continues after a check that throws, and fails', async () => {
  const { holds, text } = await ran([check('first', () => Promise.reject(new Error('broken'))), check('second', ok)]);
  expect(holds).toBe(false);
  expect(text).toContain('FAILED  first: broken');
  expect(text).toContain('ok      second');
});

it('a missing tool fails continuous integration only, and an optional check never', async () => {
  expect((await ran([check('a', ok), check('b', gone)])).holds).toBe(true);
  expect((await ran([check('a', ok), check('b', gone)], true)).holds).toBe(false);
  expect((await ran([check('a', ok), check('b', gone, { optional: true })], true)).holds).toBe(true);
});

it('a run without any check fails', async () => {
  expect((await ran([])).holds).toBe(false);
});
