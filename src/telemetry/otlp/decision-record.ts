/** A decision as a record of OpenTelemetry's log signal. */

import type { OutcomeKind } from '../check-outcome.ts';
import type { DecisionLine } from '../decision-line.ts';
import { maskText } from '../masking.ts';
import { attributesOf, type OtlpAttribute, unixNano } from './value.ts';

/** Numbers of the specification: INFO, WARN and ERROR. */
const SEVERITY: Readonly<Record<OutcomeKind, readonly [number: number, text: string]>> = {
  allow: [9, 'INFO'],
  deny: [13, 'WARN'],
  fault: [17, 'ERROR'],
};

/**
 * Returns one log record in JSON, without secrets. Its attributes are the members of the line with the prefix
 * `postern.`. Those of an error are the conventional `exception.type` and `exception.message`.
 */
export function decisionRecord(line: DecisionLine, atMs: number): string {
  const { err, trace_id: traceId, ...members } = line;
  const [severityNumber, severityText] = SEVERITY[line.outcome];
  const timeUnixNano = unixNano(atMs);
  return maskText(
    JSON.stringify({
      timeUnixNano,
      observedTimeUnixNano: timeUnixNano,
      severityNumber,
      severityText,
      eventName: 'postern.decision',
      body: { stringValue: 'decision' },
      attributes: [...prefixed(members), ...exceptionOf(err)],
      ...(traceId === undefined ? {} : { traceId }),
    }),
  );
}

export function logsRequest(resource: readonly OtlpAttribute[], records: readonly string[]): string {
  const scope = JSON.stringify({ name: 'postern.decisions' });
  return `{"resourceLogs":[{"resource":{"attributes":${JSON.stringify(resource)}},"scopeLogs":[{"scope":${scope},"logRecords":[${records.join(',')}]}]}]}`;
}

function prefixed(members: Omit<DecisionLine, 'err' | 'trace_id'>): readonly OtlpAttribute[] {
  return attributesOf({ ...members }).map(({ key, value }) => ({ key: `postern.${key}`, value }));
}

function exceptionOf(err: DecisionLine['err']): readonly OtlpAttribute[] {
  if (err === undefined) return [];
  return typeof err === 'string'
    ? attributesOf({ 'exception.message': err })
    : attributesOf({ 'exception.type': err.type, 'exception.message': err.message });
}
