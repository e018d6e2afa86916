/** Runs checks one after another and words their outcomes. */

import type { Check, CheckOutcome } from './deploy-check.ts';

export interface Group {
  readonly name: string;
  readonly checks: readonly Check[];
}

const MARK = { ok: 'ok      ', failed: 'FAILED  ', unavailable: 'missing ' } as const;

/**
 * Runs every check, also after a failure, and passes one line for each to `say`.
 * @param mustBeThere true under continuous integration: a missing tool is a failure, unless its check is optional
 * @returns whether all of them hold
 */
export async function runChecks(
  groups: readonly Group[],
  mustBeThere: boolean,
  say: (line: string) => void,
): Promise<boolean> {
  const counts = { ok: 0, failed: 0, unavailable: 0 };
  let holds = groups.some(({ checks }) => checks.length > 0);
  if (!holds) say('FAILED  there is nothing to check: scripts/deploy has no checks');
  for (const { name, checks } of groups) {
    say(`\n── ${name}`);
    for (const check of checks) {
      const outcome = await outcomeOf(check);
      counts[outcome.kind]++;
      if (outcome.kind === 'failed' || (outcome.kind === 'unavailable' && mustBeThere && check.optional !== true))
        holds = false;
      say(lineOf(check, outcome));
    }
  }
  say(`\n${counts.ok} hold, ${counts.failed} failed, ${counts.unavailable} could not be checked here.`);
  return holds;
}

async function outcomeOf(check: Check): Promise<CheckOutcome> {
  try {
    return await check.run();
  } catch (error) {
    return { kind: 'failed', says: error instanceof Error ? error.message : String(error) };
  }
}

function lineOf({ name, tool }: Check, { kind, says }: CheckOutcome): string {
  const by = tool === undefined ? '' : ` [${tool.name} ${tool.version}]`;
  const detail = says === '' ? '' : `: ${says.trim().replaceAll('\n', '\n            ')}`;
  return `${MARK[kind]}${name}${by}${detail}`;
}
