/** The alert rules and the dashboard, by promtool and beside the metrics that a server shows. */

import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { run } from '../../scripts/lib/tools/cache.ts';
import { manifestsOf } from '../../scripts/lib/tools/manifests.ts';
import { findPromtool } from '../../scripts/lib/tools/promtool.ts';
import { watchQuotas } from '../../src/telemetry/state-metrics.ts';
import { createTelemetry } from '../../src/telemetry/telemetry.ts';
import { at, only } from '../helm/objects.ts';
import { CHART, helm, MINIMAL } from '../helm/support.ts';

const path = (name: string): string => fileURLToPath(new URL(`../../${name}`, import.meta.url));
const RULES = path('helm/postern/files/alerts.yaml');
const TESTS = path('test/alerts/alerts.promtool.yaml');
const GUIDE = readFileSync(path('docs/disasters.md'), 'utf8');
const METRICS = readFileSync(path('docs/metrics.md'), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const { groups }: { groups: readonly { readonly rules: readonly Rule[] }[] } = parse(readFileSync(RULES, 'utf8'));
const rules = groups.flatMap((group) => group.rules);

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
interface Variable {
  readonly name: string;
  readonly query: string | { readonly query: string };
}
const dashboard: { readonly panels: readonly Panel[]; readonly templating: { readonly list: readonly Variable[] } } =
  JSON.parse(readFileSync(path('helm/postern/files/dashboard.json'), 'utf8'));
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

/** As Grafana would write them. */
function filledIn(expr: string): string {
  return expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$(?:namespace|job|instance)/g, '.*');
}

let promtool: string;
beforeAll(async () => {
  const search = await findPromtool();
  if (search.kind === 'missing') throw new Error(search.message);
  promtool = search.path;
});

/**
 * The metrics that the guide explains, which are those of a server, and those of every Node process that are used here.
 */
function known(): ReadonlySet<string> {
  const told = [...METRICS.matchAll(/`(postern_\w+)(?:\{[\w,]+\})?`/g)].map(([, name = '']) => name);
  return new Set([
    ...told.flatMap((name) => [name, `${name}_bucket`, `${name}_sum`, `${name}_count`]),
    'process_resident_memory_bytes',
    'process_cpu_seconds_total',
  ]);
}

function unknownIn(expr: string): readonly string[] {
  const names = [...expr.matchAll(/\b(?:postern|process)_\w+/g)].map(([name]) => name);
  return names.filter((name) => !known().has(name));
}

describe('the alert rules', () => {
  it('are taken by promtool, fire on the series of their faults, and stay silent on a healthy server', async () => {
    const checked = await run(promtool, ['check', 'rules', RULES]);
    expect(checked.output).toContain(`SUCCESS: ${rules.length} rules found`);
    const tested = await run(promtool, ['test', 'rules', TESTS]);
    expect(tested).toMatchObject({ ok: true, output: expect.stringContaining('SUCCESS') });
  });

  it('are each tested with a fault on which they fire, and with a healthy server', () => {
    const { tests }: { tests: readonly { readonly name: string; readonly alert_rule_test: readonly TestOfRule[] }[] } =
      parse(readFileSync(TESTS, 'utf8'));
    const healthy = tests.filter(({ name }) => name === 'healthy').flatMap((test) => test.alert_rule_test);
    const firing = tests
      .flatMap((test) => test.alert_rule_test)
      .filter(({ exp_alerts: fired = [] }) => fired.length > 0);
    const names = new Set(rules.map(({ alert }) => alert));
    expect(new Set(healthy.map(({ alertname }) => alertname))).toEqual(names);
    expect(new Set(firing.map(({ alertname }) => alertname))).toEqual(names);
  });

  it.each(rules)(
    '$alert names metrics that exist, a severity, and a section of the guide that says what to do',
    (rule) => {
      expect(unknownIn(rule.expr)).toEqual([]);
      expect(['critical', 'warning', 'info']).toContain(rule.labels['severity']);
      // The anchor of a heading of one word is the word in small letters.
      expect(rule.annotations.runbook_url).toBe(`https://postern.dev/docs/disasters.md#${rule.alert.toLowerCase()}`);
      const section = GUIDE.split(`\n### ${rule.alert}\n`)[1]?.split('\n#')[0] ?? '';
      for (const part of ['**Means**', '**See**', '**Do**']) expect(section, `${rule.alert} ${part}`).toContain(part);
    },
  );
});

describe('the alert rules of installations that share a Prometheus', () => {
  it("notice, as the chart renders them, that the servers of their own release are gone while another's are there", async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-alerts-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const monitored = ['metrics.prometheusRule.enabled=true', 'metrics.serviceMonitor.enabled=true'];
    const sets = monitored.flatMap((set) => ['--set', set]);
    const { output } = await helm('template', 'gates', CHART, '-n', 'prod', ...MINIMAL, ...sets);
    await writeFile(join(folder, 'rules.yaml'), stringify(at(only(manifestsOf(output), 'PrometheusRule'), 'spec')));
    const server = (namespace: string, job: string): string =>
      `postern_build_info{namespace="${namespace}",job="${job}"}`;
    const gone = { namespace: 'prod', job: 'gates', severity: 'critical' };
    const { summary, runbook_url } = rules.find(({ alert }) => alert === 'PosternAbsent')?.annotations ?? {};
    const test = {
      interval: '1m',
      input_series: [
        { series: server('prod', 'gates'), values: '1x10 stale' },
        { series: server('prod', 'other'), values: '1x60' },
        { series: server('test', 'gates'), values: '1x60' },
      ],
      alert_rule_test: [
        { eval_time: '10m', alertname: 'PosternAbsent' },
        {
          eval_time: '50m',
          alertname: 'PosternAbsent',
          exp_alerts: [{ exp_labels: gone, exp_annotations: { summary, runbook_url } }],
        },
      ],
    };
    const file = join(folder, 'test.yaml');
    await writeFile(file, stringify({ rule_files: ['rules.yaml'], evaluation_interval: '1m', tests: [test] }));
    expect(await run(promtool, ['test', 'rules', file])).toMatchObject({
      ok: true,
      output: expect.stringContaining('SUCCESS'),
    });
  });

  it.each(rules)('$alert aggregates within a namespace and job', ({ expr }) => {
    const aggregations = [...expr.matchAll(/\b(?:sum|min|max|count|avg|absent)\b(?: by \(([^)]*)\))?/g)];
    expect(aggregations.length).toBeGreaterThan(0);
    for (const [text, labels = ''] of aggregations) {
      if (text !== 'absent') expect(labels, text).toMatch(/^namespace, job(?:,|$)/);
    }
  });
});

interface TestOfRule {
  readonly alertname: string;
  readonly exp_alerts?: readonly unknown[];
}

describe('the dashboard', () => {
  it.each(queries)('asks for metrics that exist: $title', ({ expr }) => {
    expect(unknownIn(expr)).toEqual([]);
  });

  it.each(queries)('selects by namespace, job and server: $title', ({ expr }) => {
    const selectors = [...expr.matchAll(/\b(?:postern|process)_\w+\{([^}]*)\}/g)].map(([, selector = '']) => selector);
    expect(selectors.length).toBeGreaterThan(0);
    for (const selector of selectors)
      expect(selector).toContain('namespace=~"$namespace",job=~"$job",instance=~"$instance"');
  });

  it('has a variable for the namespace, the job within it and the server within both', () => {
    const asked = dashboard.templating.list.map(({ name, query }) => [
      name,
      typeof query === 'string' ? query : query.query,
    ]);
    expect(Object.fromEntries(asked)).toMatchObject({
      namespace: 'label_values(postern_build_info, namespace)',
      job: 'label_values(postern_build_info{namespace=~"$namespace"}, job)',
      instance: 'label_values(postern_build_info{namespace=~"$namespace",job=~"$job"}, instance)',
    });
  });

  it('shows every metric of the API, the database and the build that the guide explains', () => {
    const shown = queries.map(({ expr }) => expr).join(' ');
    const explained = [...known()].filter((name) =>
      /^postern_(?:http_re|database|build)\w*(?<!_bucket|_sum|_count)$/.test(name),
    );
    expect(explained.length).toBeGreaterThan(6);
    expect(explained.filter((name) => !shown.includes(name))).toEqual([]);
  });

  it('asks in expressions that Prometheus reads', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'postern-dashboard-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const file = join(folder, 'queries.json');
    const recorded = queries.map(({ expr }, i) => ({ record: `query:${i}`, expr: filledIn(expr) }));
    await writeFile(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));
    const checked = await run(promtool, ['check', 'rules', '--lint=none', file]);
    expect(checked.output).toContain(`SUCCESS: ${queries.length} rules found`);
  });
});

it('tenants are named by metrics only where the configuration says so, and a hundred at most', async () => {
  const quotas = Array.from({ length: 150 }, (_, i) => ({ tenant: `tenant-${i}`, ratio: i / 150 })).reverse();
  const shown = async (namesTenants: boolean): Promise<readonly string[]> => {
    const { metrics } = createTelemetry({ level: 'silent' });
    watchQuotas(metrics, namesTenants, () => quotas);
    return (await metrics.exposition()).split('\n').filter((line) => line.startsWith('postern_quota_used_ratio'));
  };
  expect(await shown(false)).toEqual([`postern_quota_used_ratio ${149 / 150}`]);
  const named = await shown(true);
  expect(named).toHaveLength(100);
  expect(named[0]).toBe(`postern_quota_used_ratio{tenant="tenant-149"} ${149 / 150}`);
});
