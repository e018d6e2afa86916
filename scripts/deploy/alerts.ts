/** The alert rules, by promtool. */

import { join } from 'node:path';
import type { Check, CheckOutcome } from '../lib/deploy-check.ts';
import { run } from '../lib/tools/cache.ts';
import { findPromtool, PROMTOOL_VERSION } from '../lib/tools/promtool.ts';

const ROOT = join(import.meta.dirname, '../..');
const tool = { name: 'promtool', version: PROMTOOL_VERSION };

async function promtool(args: readonly string[]): Promise<CheckOutcome> {
  const search = await findPromtool();
  if (search.kind === 'missing') return { kind: 'unavailable', says: search.message };
  const { ok, output } = await run(search.path, args, { cwd: ROOT });
  return { kind: ok ? 'ok' : 'failed', says: output.trim().split('\n').at(-1)?.trim() ?? '' };
}

export const checks: readonly Check[] = [
  {
    name: 'Prometheus takes the alert rules',
    tool,
    run: () => promtool(['check', 'rules', 'helm/postern/files/alerts.yaml']),
  },
  {
    name: 'each alert fires on the series of its fault, and none on those of a healthy server',
    tool,
    run: () => promtool(['test', 'rules', 'test/alerts/alerts.promtool.yaml']),
  },
];
