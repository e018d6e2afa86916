/** Logins by directories and refreshes of their sessions, as metrics: by directory and by what they came to. */

import type { Metrics } from './metrics.ts';

export interface DirectoryReport {
  readonly operation: 'login' | 'refresh' | 'lookup' | 'test';
  /** Undefined where none was asked, or none knew the name. */
  readonly directory: string | undefined;
  /** One of a few words. */
  readonly outcome: string;
}

const NAMES = {
  login: { name: 'postern_directory_logins_total', help: 'Logins with a directory, by directory and outcome.' },
  refresh: {
    name: 'postern_directory_refreshes_total',
    help: 'Token refreshes that queried a directory, by directory and outcome.',
  },
  lookup: {
    name: 'postern_directory_lookups_total',
    help: 'Daily lookups of key owners in a directory, by directory and outcome.',
  },
  test: { name: 'postern_directory_tests_total', help: 'Attempts to reach a directory, by directory and outcome.' },
} as const;

const DOWN = 'unavailable';
/** Says nothing of the directory. */
const NOT_ASKED = 'too_many_at_once';

/** Begins to count, and answers with who counts. */
export function directoryReports(metrics: Metrics): (report: DirectoryReport) => void {
  const none = (): Map<string, number> => new Map();
  const counts = { login: none(), refresh: none(), lookup: none(), test: none() };
  const down = new Map<string, boolean>();
  metrics.gauges(
    { name: 'postern_directory_down', help: '1 while a directory does not answer.', together: 'max' },
    ['directory'],
    () => [...down].map(([directory, isDown]) => ({ labels: { directory }, value: isDown ? 1 : 0 })),
  );
  for (const operation of ['login', 'refresh', 'lookup', 'test'] as const) {
    metrics.counters(NAMES[operation], ['directory', 'outcome'], () =>
      [...counts[operation]].map(([key, value]) => {
        const [outcome = '', directory = ''] = key.split('\n');
        return { labels: { directory, outcome }, value };
      }),
    );
  }
  return ({ operation, directory = '', outcome }) => {
    const key = `${outcome}\n${directory}`;
    counts[operation].set(key, (counts[operation].get(key) ?? 0) + 1);
    // A test names the step that failed, which may be a wrong password.
    if (directory !== '' && operation !== 'test' && outcome !== NOT_ASKED) down.set(directory, outcome === DOWN);
  };
}
