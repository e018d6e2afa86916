/** The sinks of the decision log: standard output, a file, or an OpenTelemetry collector. */

import { DecisionFile } from './decision-file.ts';
import { jsonLine } from './decision-json.ts';
import type { DecisionLine } from './decision-line.ts';
import type { DecisionSink } from './decision-log.ts';
import type { Log, Logging } from './log.ts';
import { decisionRecord, logsRequest } from './otlp/decision-record.ts';
import { OtlpExporter, type OtlpTarget } from './otlp/exporter.ts';

export type DecisionTarget =
  | { readonly kind: 'stdout' }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'otlp'; readonly target: OtlpTarget };

/**
 * Returns the sink. Undefined if standard output is the target and the log level is above `info`, because then the log
 * has no lines.
 */
export function sinkFor(
  target: DecisionTarget,
  { log, write }: Pick<Logging, 'log' | 'write'>,
): DecisionSink | undefined {
  switch (target.kind) {
    case 'stdout':
      return log.isLevelEnabled('info') ? { render: jsonLine, deliver: write } : undefined;
    case 'file':
      return new DecisionFile(target.path);
    case 'otlp':
      return otlpSink(target.target, log);
    default:
      return target satisfies never;
  }
}

function otlpSink(target: OtlpTarget, log: Log): DecisionSink {
  const exporter = new OtlpExporter(target, 'v1/logs', (message) => log.warn({ part: 'decisions' }, message));
  return {
    render: (line: DecisionLine, atMs: number) => `${decisionRecord(line, atMs)}\n`,
    deliver: (records) => exporter.send(logsRequest(target.resource, records.toString().trimEnd().split('\n'))),
    close: async () => exporter.close(),
  };
}
