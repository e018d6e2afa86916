/** Metrics of directories: logins, refreshes, lookups and tests by directory and outcome. */

import { metricsOf } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

const { counter, gauge } = metricsOf('directory');

export const DIRECTORY_METRICS = {
  postern_directory_down: gauge(['directory'], '1 while a directory does not answer.', {
    together: 'max',
    explanation:
      'From a login, a refresh or a lookup that the directory did not answer until the next one that it answers.',
  }),
  postern_directory_logins_total: counter(
    ['directory', 'outcome'],
    'Logins with a directory, by directory and outcome.',
    {
      explanation:
        "`success`, the directory's reason (`wrong_password`, `unknown_user`, `locked`, `several_names`, `other_domain`, `no_domain`, …), Postern's own (`quota_exceeded`, `tenant_changed`, …), `unavailable` or `too_many_at_once`.",
    },
  ),
  postern_directory_refreshes_total: counter(
    ['directory', 'outcome'],
    'Token refreshes that queried a directory, by directory and outcome.',
    {
      explanation:
        '`success`, `removed`, `disabled`, `expired`, `locked`, `not_readable`, `several_names`, `several_ids`, `ambiguous_user`, `tenant_changed`, `unavailable` or `too_many_at_once`.',
    },
  ),
  postern_directory_lookups_total: counter(
    ['directory', 'outcome'],
    'Daily lookups of key owners in a directory, by directory and outcome.',
    {
      explanation:
        '`success`, `removed`, `disabled`, `expired`, `locked`, `not_readable`, `several_names`, `several_ids`, `ambiguous_user`, `tenant_changed`, `too_many_removed` (the server did not act on the removal) or `unavailable`.',
    },
  ),
  postern_directory_tests_total: counter(
    ['directory', 'outcome'],
    'Attempts to reach a directory, by directory and outcome.',
    { explanation: '`success`, or the step that failed.' },
  ),
} as const;

export interface DirectoryReport {
  readonly operation: 'login' | 'refresh' | 'lookup' | 'test';
  /** Undefined if no directory was queried, or no directory knows the username. */
  readonly directory: string | undefined;
  /** One of a fixed set of outcomes. */
  readonly outcome: string;
}

const NAMES = {
  login: 'postern_directory_logins_total',
  refresh: 'postern_directory_refreshes_total',
  lookup: 'postern_directory_lookups_total',
  test: 'postern_directory_tests_total',
} as const;

/** Reports whether the directory answered; undefined: the server did not query one, or the report does not show it. */
export function hasAnswered({ operation, directory, outcome }: DirectoryReport): boolean | undefined {
  if (directory === undefined || outcome === 'too_many_at_once') return undefined;
  // The outcome of a test is the step that failed, for example a wrong password.
  return operation === 'test' ? undefined : outcome !== 'unavailable';
}

/** Returns the function that counts each report. */
export function directoryReports(metrics: Metrics): (report: DirectoryReport) => void {
  const none = (): Map<string, number> => new Map();
  const counts = { login: none(), refresh: none(), lookup: none(), test: none() };
  const down = new Map<string, boolean>();
  metrics.show('postern_directory_down', () => [...down].map(([directory, isDown]) => [directory, isDown ? 1 : 0]));
  for (const operation of ['login', 'refresh', 'lookup', 'test'] as const) {
    metrics.show(NAMES[operation], () =>
      [...counts[operation]].map(([key, value]) => {
        const [outcome = '', directory = ''] = key.split('\n');
        return [directory, outcome, value];
      }),
    );
  }
  return (report) => {
    const { operation, directory = '', outcome } = report;
    const key = `${outcome}\n${directory}`;
    counts[operation].set(key, (counts[operation].get(key) ?? 0) + 1);
    const answered = hasAnswered(report);
    if (answered !== undefined) down.set(directory, !answered);
  };
}
