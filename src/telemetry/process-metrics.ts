/** Metrics of a process and of its supervisor. */

import manifest from '../../package.json' with { type: 'json' };
import { counter, gauge } from './metric-definition.ts';
import type { Metrics } from './metrics.ts';

export const PROCESS_METRICS = {
  postern_build_info: gauge(['version', 'node'], '1, with the versions of Postern and Node as labels.', {
    together: 'max',
  }),
  postern_processes_ready: gauge(['process'], 'Processes of this server that are ready.'),
  postern_process_restarts_total: counter(['process'], 'Processes that exited unexpectedly and were replaced.'),
  postern_local_apply_timeouts_total: counter(
    [],
    'Writes that were answered before every gate worker of this server applied them.',
  ),
  postern_log_dropped_total: counter([], 'Log lines that were dropped because standard output was too slow.'),
} as const;

/** @param droppedLines the number of lines of the log that were dropped */
export function watchProcess(metrics: Metrics, droppedLines: () => number): void {
  metrics.show('postern_build_info', () => [[manifest.version, process.versions.node, 1]]);
  metrics.show('postern_log_dropped_total', droppedLines);
}
